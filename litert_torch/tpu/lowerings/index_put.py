"""Writes at places of several axes, to whole parts of one axis, and under masks."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.indexing import as_index, full_index
from litert_torch.tpu.lowerings.promotion import INT32, Array, Operand, as_dtype
from litert_torch.tpu.lowerings.scatter import reduced

aten = torch.ops.aten


def _put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool) -> Array:
    values = as_dtype(values, x.dtype)
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype == bool:
        return _under_mask(x, indices[0], values, accumulate)
    places = x.at[full_index(indices)]
    return places.add(values, mode="drop") if accumulate else places.set(values, mode="drop")


def _under_mask(x: Array, mask: Array, values: Array, accumulate: bool) -> Array:
    """One value for all of the mask's elements, or a value for each in turn."""
    rest = x.ndim - mask.ndim
    shown = mask.reshape(mask.shape + (1,) * rest)
    per_element = values.ndim > rest and values.shape[0] != 1
    if per_element:
        order = jnp.cumsum(mask.reshape(-1).astype(INT32)).reshape(mask.shape) - 1
        values = jnp.take(values, order, axis=0, mode="clip")
    elif values.ndim > rest:
        values = values.reshape(values.shape[1:])
    return jnp.where(shown, x + values if accumulate else values, x).astype(x.dtype)


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False
) -> Array:
    """X with values at places along the axes whose index is not None."""
    return _put(x, indices, values, accumulate)


@lowers(aten._index_put_impl.default)
def index_put_impl(
    x: Array,
    indices: Sequence[Array | None],
    values: Array,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Array:
    """X with values at places along the axes whose index is not None."""
    return _put(x, indices, values, accumulate)


def _along(x: Array, dim: int, index: Array) -> Any:
    """The parts of x at places of an axis, to be written."""
    return x.at[(*[jnp.s_[:]] * (dim % x.ndim), as_index(index).reshape(-1))]


@lowers(aten.index_add.default)
def index_add(x: Array, dim: int, index: Array, source: Array, *, alpha: Any = 1) -> Array:
    """X with alpha * source added to its parts at places along an axis."""
    if not x.ndim:
        return index_add(x.reshape(1), 0, index, source.reshape(-1), alpha=alpha).reshape(())
    source = as_dtype(source, x.dtype)
    source = source if alpha == 1 else source * as_dtype(alpha, x.dtype)
    return _along(x, dim, index).add(source.reshape(_like(x, dim, index)))


def _like(x: Array, dim: int, index: Array) -> tuple[Any, ...]:
    axis = dim % x.ndim
    return (*x.shape[:axis], index.reshape(-1).shape[0], *x.shape[axis + 1 :])


@lowers(aten.index_copy.default)
def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    """X with source in place of its parts at places along an axis."""
    if not x.ndim:
        return index_copy(x.reshape(1), 0, index, source.reshape(-1)).reshape(())
    return _along(x, dim, index).set(as_dtype(source, x.dtype).reshape(_like(x, dim, index)))


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(x: Array, dim: int, index: Array, value: Operand) -> Array:
    """X with one value in its parts at places along an axis."""
    if not x.ndim:
        return index_fill(x.reshape(1), 0, index, value).reshape(())
    return _along(x, dim, index).set(as_dtype(value, x.dtype))


@lowers(aten.index_reduce.default)
def index_reduce(
    x: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """X with source reduced into its parts at places along an axis."""
    if not x.ndim:
        flat = (x.reshape(1), 0, index, source.reshape(-1), reduce)
        return index_reduce(*flat, include_self=include_self).reshape(())

    def write(onto: Array, values: Operand, how: str) -> Array:
        return getattr(_along(onto, dim, index), how)(values)

    return reduced(x, source.reshape(_like(x, dim, index)), reduce, include_self, write)


@lowers(aten.masked_scatter.default)
def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    """X with the elements of source, in order, where the mask holds."""
    shape = jnp.broadcast_shapes(x.shape, mask.shape)
    x, mask = jnp.broadcast_to(x, shape), jnp.broadcast_to(mask, shape)
    flat = source.reshape(-1)
    if isinstance(flat.shape[0], int) and flat.shape[0] == 0:
        return x
    order = jnp.cumsum(mask.reshape(-1).astype(INT32)).reshape(shape) - 1
    return jnp.where(mask, jnp.take(flat, order, mode="clip").astype(x.dtype), x)


@lowers(aten.put.default)
def put(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """X with values at places of its flattened form."""
    places = x.reshape(-1).at[as_index(index).reshape(-1)]
    values = source.reshape(-1)
    written = places.add(values) if accumulate else places.set(values)
    return written.reshape(x.shape)
