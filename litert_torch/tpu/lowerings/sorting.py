"""Order along an axis; NaN is greater than all numbers."""

from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT8, INT32, INT64, Array, is_float

aten = torch.ops.aten


def ordered(x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """(values, int64 places) in order along an axis; equals keep their order."""
    if not x.ndim:
        return x, jnp.zeros((), INT64)
    axis = dim % x.ndim
    key = x.astype(INT8) if x.dtype == bool else x
    places = lax.broadcasted_iota(INT32, x.shape, axis)
    if descending:  # from the back, so that equals keep their order
        key, places = jnp.flip(key, axis), jnp.flip(places, axis)
    values, places = lax.sort((key, places), dimension=axis, is_stable=True, num_keys=1)
    if descending:
        values, places = jnp.flip(values, axis), jnp.flip(places, axis)
    return values.astype(x.dtype), places.astype(INT64)


@lowers(aten.sort.default)
def sort(x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """(values, places) in order along an axis."""
    return ordered(x, dim, descending)


@lowers(aten.sort.stable)
def sort_stable(
    x: Array, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Array, Array]:
    """(values, places) in order along an axis; equals keep their order."""
    return ordered(x, dim, descending)


@lowers(aten.argsort.default)
def argsort(x: Array, dim: int = -1, descending: bool = False) -> Array:
    """Places in the order of their elements."""
    return ordered(x, dim, descending)[1]


@lowers(aten.argsort.stable)
def argsort_stable(x: Array, *, stable: bool, dim: int = -1, descending: bool = False) -> Array:
    """Places in the order of their elements; equals keep their order."""
    return ordered(x, dim, descending)[1]


@lowers(aten.topk.default)
def topk(
    x: Array, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """The k greatest or least elements along an axis, (values, places)."""
    if not x.ndim:
        return x, jnp.zeros((), INT64)
    axis = dim % x.ndim
    if largest and is_float(x) and axis == x.ndim - 1:
        values, places = lax.top_k(x, k)
        return values, places.astype(INT64)
    values, places = ordered(x, dim, largest)
    return lax.slice_in_dim(values, 0, k, 1, axis), lax.slice_in_dim(places, 0, k, 1, axis)


def _at(parts: tuple[Array, Array], place: Any, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """One element of each along an axis."""
    values, places = parts
    if not values.ndim:
        return values, places
    axis = dim % values.ndim
    return (
        lax.index_in_dim(values, place, axis, keepdims=keepdim),
        lax.index_in_dim(places, place, axis, keepdims=keepdim),
    )


@lowers(aten.kthvalue.default)
def kthvalue(x: Array, k: Any, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The k-th least element along an axis, and its place."""
    return _at(ordered(x, dim, False), k - 1, dim, keepdim)


@lowers(aten.median.dim)
def median_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower of the middle elements along an axis, and its place; NaN if there is one."""
    if not x.ndim:
        return x, jnp.zeros((), INT64)
    axis = dim % x.ndim
    middle = _at(ordered(x, dim, False), (x.shape[axis] - 1) // 2, dim, keepdim)
    if not is_float(x):
        return middle
    first = jnp.expand_dims(lax.argmax(x != x, axis, jnp.int32), axis)
    value = jnp.take_along_axis(x, first, axis)
    place = first.astype(INT64)
    if not keepdim:
        value, place = jnp.squeeze(value, axis), jnp.squeeze(place, axis)
    missing = value != value
    return jnp.where(missing, value, middle[0]), jnp.where(missing, place, middle[1])


@lowers(aten.nanmedian.dim)
def nanmedian_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """As median, of the elements that are not NaN."""
    if not x.ndim or not is_float(x):
        return median_dim(x, dim, keepdim)
    axis = dim % x.ndim
    count = jnp.sum(x == x, axis, keepdims=True, dtype=INT32)
    middle = jnp.maximum(count - 1, 0) // 2
    parts = [jnp.take_along_axis(t, middle, axis) for t in ordered(x, dim, False)]
    value, place = parts if keepdim else [jnp.squeeze(t, axis) for t in parts]
    return value, place


@lowers(aten.median.default)
def median(x: Array) -> Array:
    """The lower of the middle elements; NaN if there is one."""
    return _of_flat(median_dim, x)


@lowers(aten.nanmedian.default)
def nanmedian(x: Array) -> Array:
    """The lower of the middle elements that are not NaN."""
    return _of_flat(nanmedian_dim, x)


def _of_flat(function: Any, x: Array) -> Array:
    flat = x.reshape(-1)
    if flat.shape[0] == 0:
        return jnp.asarray(jnp.nan, x.dtype)
    return function(flat, 0)[0]


@lowers(aten.mode.default)
def mode(x: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The least of the most frequent elements along an axis, and the last place it has."""
    if not x.ndim:
        return x, jnp.zeros((), INT64)
    axis = dim % x.ndim
    values, places = (jnp.moveaxis(t, axis, -1) for t in ordered(x, dim, False))
    counts = jnp.sum(values[..., :, None] == values[..., None, :], -1, dtype=INT32)
    first = lax.argmax(counts, counts.ndim - 1, jnp.int32)[..., None]
    size = jnp.take_along_axis(counts, first, -1)
    last = first + jnp.maximum(size, 1) - 1  # equals are in the order of their places
    chosen = [jnp.take_along_axis(t, last, -1) for t in (values, places)]
    kept = [jnp.moveaxis(t, -1, axis) for t in chosen]
    value, place = kept if keepdim else [jnp.squeeze(t, axis) for t in kept]
    return value, place
