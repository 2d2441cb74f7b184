"""Variances, deviations and norms over axes."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, real_dtype, wide
from litert_torch.tpu.lowerings.reduction import Dims, axes_of, count_of

aten = torch.ops.aten


def _variance(x: Array, dim: Dims, correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """(variance, mean) along axes; NaN where there are not more elements than the correction."""
    axes = axes_of(dim, x.ndim)
    values = wide(x)
    mean = jnp.mean(values, axes, keepdims=True)
    squares = jnp.sum(jnp.square(jnp.abs(values - mean)), axes, keepdims=keepdim)
    correction = 1 if correction is None else correction
    left = count_of(x, axes) - correction
    left = as_dtype(max(left, 0) if isinstance(left, (int, float)) else left, squares.dtype)
    result = squares / left
    mean = mean if keepdim else jnp.squeeze(mean, axes)
    return as_dtype(result, real_dtype(x.dtype)), as_dtype(mean, x.dtype)


def _root(x: Array) -> Array:
    return jnp.sqrt(x)


def _same(x: Array) -> Array:
    return x


def _register(one: Any, both: Any, finish: Callable[[Array], Array]) -> None:
    @lowers(one.correction)
    def correction(
        x: Array, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
    ) -> Array:
        return finish(_variance(x, dim, correction, keepdim)[0])

    @lowers(both.correction)
    def mean_correction(
        x: Array, dim: Dims = None, *, correction: Any = None, keepdim: bool = False
    ) -> tuple[Array, Array]:
        variance, mean = _variance(x, dim, correction, keepdim)
        return finish(variance), mean


_register(aten.var, aten.var_mean, _same)
_register(aten.std, aten.std_mean, _root)
