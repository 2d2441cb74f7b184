"""Places in sorted rows, and counts of values."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, INT64, Array, Operand, as_dtype, promoted

aten = torch.ops.aten


def _searched(row: Array, values: Array, right: bool) -> Array:
    """Places in rows [..., N] of values [..., M], or of any values in one row [N]."""

    def one(row: Array, values: Array) -> Array:
        return jnp.searchsorted(row, values, side="right" if right else "left").astype(INT32)

    search: Callable[[Array, Array], Array] = one
    if row.ndim > 1:
        for _ in range(row.ndim - 1):
            search = jax.vmap(search)
    return search(row, values)


@lowers(aten.searchsorted.Tensor, aten.searchsorted.Scalar)
def searchsorted(
    sorted_sequence: Array,
    x: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Where in sorted rows values belong."""
    row = sorted_sequence
    if sorter is not None:
        row = jnp.take_along_axis(row, sorter.astype(INT32), axis=-1)
    row, values = promoted(row, x)
    places = _searched(row, values, right or side == "right")
    return places.astype(INT32 if out_int32 else INT64)


@lowers(aten.bucketize.Tensor, aten.bucketize.Scalar)
def bucketize(
    x: Operand, boundaries: Array, *, out_int32: bool = False, right: bool = False
) -> Array:
    """Between which boundaries values are."""
    row, values = promoted(boundaries, x)
    return _searched(row, values, right).astype(INT32 if out_int32 else INT64)


@lowers(aten.histc.default)
def histc(x: Array, bins: int = 100, min: Any = 0, max: Any = 0) -> Array:
    """How many elements are in each of so many equal intervals."""
    low, high = as_dtype(min, x.dtype), as_dtype(max, x.dtype)
    if min == max:
        low, high = jnp.min(x), jnp.max(x)
        single = low == high
        low, high = jnp.where(single, low - 1, low), jnp.where(single, high + 1, high)
    inside = (x >= low) & (x <= high)
    at = ((x - low) / (high - low) * bins).astype(INT32)
    at = jnp.where(inside, jnp.minimum(at, bins - 1), bins)
    return jnp.zeros(bins, x.dtype).at[at.reshape(-1)].add(1, mode="drop")
