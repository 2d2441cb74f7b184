"""Running sums, products and extremes."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    INT32,
    INT64,
    Array,
    as_dtype,
    as_float,
    is_integral,
    to_numpy,
    wide,
)

aten = torch.ops.aten


def _running(function: Callable[..., Array]) -> Callable[..., Array]:
    def lowering(x: Array, dim: int, *, dtype: Any = None) -> Array:
        own = INT64 if is_integral(x) else x.dtype
        want = own if dtype is None else to_numpy(dtype)
        x = as_dtype(x, want)
        return as_dtype(function(wide(x), axis=dim % x.ndim), want) if x.ndim else x

    return lowering


lowers.one_to_one(
    {aten.cumsum.default: _running(lax.cumsum), aten.cumprod.default: _running(lax.cumprod)}
)


@lowers(aten.logcumsumexp.default)
def logcumsumexp(x: Array, dim: int) -> Array:
    """The logarithm of the running sum of exponentials."""
    x = as_float(x)
    return as_dtype(lax.cumlogsumexp(wide(x), axis=dim % x.ndim), x.dtype) if x.ndim else x


def _extremes(later_wins: Callable[[Array, Array], Array]) -> Callable[..., tuple[Array, Array]]:
    """(running extreme, its last place); from the first NaN on, the last NaN."""

    def lowering(x: Array, dim: int) -> tuple[Array, Array]:
        if not x.ndim:
            return x, jnp.zeros((), INT64)
        axis = dim % x.ndim

        def joined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
            second = later_wins(b[0], a[0]) | (b[0] != b[0])
            return jnp.where(second, b[0], a[0]), jnp.where(second, b[1], a[1])

        start = x, lax.broadcasted_iota(INT32, x.shape, axis)
        values, places = lax.associative_scan(joined, start, axis=axis)
        return values, places.astype(INT64)

    return lowering


lowers.one_to_one(
    {
        aten.cummax.default: _extremes(jnp.greater_equal),
        aten.cummin.default: _extremes(jnp.less_equal),
    }
)
