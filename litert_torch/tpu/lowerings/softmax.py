"""Softmax and its logarithm."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import FLOAT32, Array, as_dtype, as_float, wide

aten = torch.ops.aten


def softmax_of(x: Array, axis: int = -1) -> Array:
    """The softmax along an axis, computed in float32 at least."""
    return jax.nn.softmax(wide(x), axis)


def _along(function: Callable[[Array, int], Array], x: Array, dim: int) -> Array:
    return function(wide(x), dim) if x.ndim else function(wide(x).reshape(1), 0).reshape(())


def _int_form(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    def lowering(x: Array, dim: int, dtype: torch.dtype | None = None) -> Array:
        x = as_float(x) if dtype is None else as_dtype(x, dtype)
        return as_dtype(_along(function, x, dim), x.dtype)

    return lowering


def _core_form(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    def lowering(x: Array, dim: int, half_to_float: bool) -> Array:
        return as_dtype(_along(function, x, dim), FLOAT32 if half_to_float else x.dtype)

    return lowering


lowers.one_to_one(
    {
        aten.softmax.int: _int_form(jax.nn.softmax),
        aten.log_softmax.int: _int_form(jax.nn.log_softmax),
        aten._softmax.default: _core_form(jax.nn.softmax),
        aten._log_softmax.default: _core_form(jax.nn.log_softmax),
    }
)


@lowers(aten._safe_softmax.default)
def safe_softmax(x: Array, dim: int, dtype: Any = None) -> Array:
    """Softmax that is 0 where all elements along the axis are -inf."""
    x = as_float(x) if dtype is None else as_dtype(x, dtype)
    nothing = jnp.all(x == -jnp.inf, axis=dim, keepdims=True)
    return jnp.where(nothing, 0, _along(jax.nn.softmax, x, dim)).astype(x.dtype)
