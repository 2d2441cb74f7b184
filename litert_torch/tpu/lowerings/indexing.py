"""Elements and rows at given places."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.errors import UnsupportedCaseError
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, Array

aten = torch.ops.aten

_INT32_MAX = 2**31 - 1


def as_index(index: Array) -> Array:
    """An int32 index: places in a tensor of TPU memory fit."""
    return jnp.asarray(index).astype(INT32)


def full_index(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """What jax takes for PyTorch's indices: None is a whole axis."""
    if any(i is not None and i.dtype == bool for i in indices):
        raise UnsupportedCaseError(
            "a mask picks as many elements as the data says; use torch.where, or fixed sizes"
        )
    return tuple(jnp.s_[:] if i is None else as_index(i) for i in indices)


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Array, indices: Sequence[Array | None]) -> Array:
    """Elements at places along the axes whose index is not None; negative ones from the end."""
    return x.at[full_index(indices)].get(mode="clip")


@lowers(aten.index_select.default)
def index_select(x: Array, dim: int, index: Array) -> Array:
    """Parts of x at places along an axis."""
    if not x.ndim:
        return x
    places = as_index(index).reshape(-1)
    return jnp.take(x, places, axis=dim % x.ndim, mode="clip")


@lowers(aten.embedding.default)
def embedding(
    weight: Array,
    indices: Array,
    padding_idx: Any = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Rows of weight."""
    return jnp.take(weight, as_index(indices), axis=0, mode="clip")


@lowers(aten.gather.default)
def gather(x: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """For each place of `index`, the element of x there, with the index along the axis instead."""
    if not x.ndim:
        return jnp.broadcast_to(x, index.shape)
    return gathered(x, dim % x.ndim, index)


def gathered(x: Array, axis: int, index: Array) -> Array:
    """Gather along an axis from the front; the other axes of index may be shorter."""
    places = as_index(index)
    if not index.ndim:
        return x[places.reshape(1)].reshape(())
    for i in range(x.ndim):
        if i != axis and x.shape[i] != index.shape[i]:
            x = lax.slice_in_dim(x, 0, index.shape[i], 1, i)
    return jnp.take_along_axis(x, places, axis=axis, mode="clip")


@lowers(aten.take_along_dim.default)
def take_along_dim(x: Array, indices: Array, dim: int | None = None) -> Array:
    """As gather, of shapes that broadcast; of the flattened x without an axis."""
    if dim is None:
        return jnp.take(x.reshape(-1), as_index(indices).reshape(-1), mode="clip")
    axis = dim % x.ndim
    shapes = [[*t.shape[:axis], 1, *t.shape[axis + 1 :]] for t in (x, indices)]
    common = list(jnp.broadcast_shapes(*map(tuple, shapes)))
    wide = [
        jnp.broadcast_to(t, [*common[:axis], t.shape[axis], *common[axis + 1 :]])
        for t in (x, indices)
    ]
    return gathered(wide[0], axis, wide[1])


@lowers(aten.take.default)
def take(x: Array, index: Array) -> Array:
    """Elements of the flattened x."""
    return x.reshape(-1).at[as_index(index)].get(mode="clip")


@lowers(aten.nonzero_static.default)
def nonzero_static(x: Array, *, size: int, fill_value: int = -1) -> Array:
    """Places of the first `size` elements that are not 0, [size, rank]."""
    if not x.ndim:
        return jnp.zeros((size, 0), jnp.int64)
    places = jnp.nonzero(x, size=size, fill_value=fill_value)
    return jnp.stack(places, axis=1).astype(jnp.int64)
