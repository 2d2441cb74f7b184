"""Tensors one after another, stacked or repeated."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.dynamic_positions import positions
from litert_torch.converter.lowerings.promotion import promoted
from litert_torch.converter.lowerings.slicing import elements_at
from litert_torch.converter.lowerings.views import broadcast
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_MOST_CONCATENATED = 5  # operands of a CONCATENATION that XNNPACK takes


def joined(g: Graph, tensors: Sequence[Value], axis: int) -> Value:
    """The tensors, brought to one dtype, one after another; empty ones add nothing."""
    values = promoted(g, *tensors)
    full = [v for v in values if v.shape != (0,) and v.shape[axis] != 0]
    if not full:
        return max(values, key=lambda v: v.rank)
    return tfl.concatenation(g, full, axis=axis)


@lowers(aten.cat.default, aten.concat.default, aten.concatenate.default)
def cat(g: Graph, tensors: Sequence[Value], dim: int = 0) -> Value:
    """CONCATENATION of the operands that are not empty."""
    return joined(g, tensors, dim)


@lowers(aten.stack.default)
def stack(g: Graph, tensors: Sequence[Value], dim: int = 0) -> Value:
    """RESHAPE and CONCATENATION, which delegates take, where PACK is left to the CPU."""
    axis = dim % (tensors[0].rank + 1)
    return joined(g, [tfl.expand_dims(g, t, axis) for t in tensors], axis)


def _at_least(g: Graph, x: Value, rank: int) -> Value:
    """x with axes of size 1 in front, or behind the second, as atleast_1d, _2d and _3d add them."""
    if x.rank >= rank:
        return x
    if rank == 3:
        shape = (*_at_least(g, x, 2).shape, 1)
    else:
        shape = (1,) * (rank - x.rank) + x.shape
    return tfl.reshape(g, x, shape)


@lowers(aten.hstack.default)
def hstack(g: Graph, tensors: Sequence[Value]) -> Value:
    """Along the second axis, or the only one."""
    values = [_at_least(g, t, 1) for t in tensors]
    return joined(g, values, min(values[0].rank - 1, 1))


@lowers(aten.vstack.default)
def vstack(g: Graph, tensors: Sequence[Value]) -> Value:
    """Along the first axis of at least two."""
    return joined(g, [_at_least(g, t, 2) for t in tensors], 0)


@lowers(aten.dstack.default)
def dstack(g: Graph, tensors: Sequence[Value]) -> Value:
    """Along the third axis."""
    return joined(g, [_at_least(g, t, 3) for t in tensors], 2)


@lowers(aten.column_stack.default)
def column_stack(g: Graph, tensors: Sequence[Value]) -> Value:
    """Vectors as columns, along the second axis."""
    columns = [t if t.rank >= 2 else tfl.reshape(g, t, (dims.numel(t.shape), 1)) for t in tensors]
    return joined(g, columns, 1)


def repeated(g: Graph, x: Value, multiples: Sequence[Size]) -> Value:
    """x multiples[i] times along axis i, with axes of size 1 in front where it has fewer axes.

    BROADCAST_TO of axes of size 1, which passes can leave to the consumers; else CONCATENATION of
    few copies, which delegates take; else TILE.
    """
    x = tfl.reshape(g, x, (1,) * (len(multiples) - x.rank) + x.shape)
    axes = [i for i, m in enumerate(multiples) if m != 1]
    if all(x.shape[i] == 1 for i in axes):
        return broadcast(g, x, [s * m for s, m in zip(x.shape, multiples, strict=True)])
    if len(axes) == 1:
        return _copies(g, x, axes[0], multiples[axes[0]])
    return tfl.tile(g, x, multiples)


def _copies(g: Graph, x: Value, axis: int, count: Size) -> Value:
    """x `count` times along `axis`."""
    if isinstance(count, int) and 1 <= count <= _MOST_CONCATENATED:
        return tfl.concatenation(g, [x] * count, axis=axis)
    return tfl.tile(g, x, [count if a == axis else 1 for a in range(x.rank)])


@lowers(aten.repeat.default)
def repeat(g: Graph, x: Value, repeats: Sequence[Size]) -> Value:
    """x repeated along each axis."""
    return repeated(g, x, repeats)


@lowers(aten.tile.default)
def tile(g: Graph, x: Value, dims: Sequence[Size]) -> Value:
    """x repeated along its last axes, or along new ones in front."""
    return repeated(g, x, (1,) * (x.rank - len(dims)) + tuple(dims))


@lowers(aten.repeat_interleave.self_int)
def repeat_interleave(
    g: Graph, x: Value, repeats: Size, dim: int | None = None, *, output_size: Size | None = None
) -> Value:
    """Each element along `dim` `repeats` times in a row; of x flattened where `dim` is None."""
    if dim is None:
        x, dim = tfl.reshape(g, x, (dims.numel(x.shape),)), 0
    dim %= x.rank
    outer, inner = dims.numel(x.shape[: dim + 1]), dims.numel(x.shape[dim + 1 :])
    rows = _copies(g, tfl.reshape(g, x, (outer, 1, inner)), 1, repeats)
    return tfl.reshape(g, rows, (*x.shape[:dim], x.shape[dim] * repeats, *x.shape[dim + 1 :]))


@lowers(aten.repeat_interleave.self_Tensor)
def repeat_interleave_each(
    g: Graph, x: Value, repeats: Value, dim: int | None = None, *, output_size: Size | None = None
) -> Value:
    """Each element along `dim` as often as `repeats` [size of dim] says."""
    if repeats.const is None and output_size is not None:
        if dim is None:
            x, dim = tfl.reshape(g, x, (dims.numel(x.shape),)), 0
        each = tfl.broadcast_to(g, repeats, (x.shape[dim],))
        index = repeat_interleave_indices(g, each, output_size=output_size)
        return tfl.gather(g, x, tfl.cast(g, index, DType.INT32), axis=dim % x.rank)
    if repeats.const is None:
        raise UnsupportedCaseError(
            "the result's size depends on data: pass repeats as a number or a constant tensor"
        )
    if dim is None:
        x, dim = tfl.reshape(g, x, (dims.numel(x.shape),)), 0
    dim %= x.rank
    size = int(x.shape[dim])
    counts = np.broadcast_to(repeats.read().reshape(-1), (size,))
    return elements_at(g, x, dim, np.repeat(np.arange(size), counts))


@lowers(aten.repeat_interleave.Tensor)
def repeat_interleave_indices(
    g: Graph, repeats: Value, *, output_size: Size | None = None
) -> Value:
    """Each place as often as its number says: how many running totals do not exceed it."""
    if output_size is not None:
        totals = tfl.cumsum(g, tfl.cast(g, repeats, DType.INT32), 0)
        places = tfl.reshape(g, positions(g, output_size), (output_size, 1))
        passed = tfl.cast(g, tfl.less_equal(g, totals, places), DType.INT32)
        return tfl.cast(g, tfl.sum(g, passed, [1], False), repeats.dtype)
    raise UnsupportedCaseError(
        "the result's size depends on data: pass repeats as a number or a constant tensor"
    )


@lowers(aten.meshgrid.default)
def meshgrid(g: Graph, tensors: Sequence[Value]) -> list[Value]:
    """Coordinate grids; axis i runs over tensors[i]."""
    return _grids(g, tensors)


@lowers(aten.meshgrid.indexing)
def meshgrid_indexing(g: Graph, tensors: Sequence[Value], *, indexing: str) -> list[Value]:
    """Coordinate grids; with "xy" the first two axes change places."""
    if indexing == "ij" or len(tensors) < 2:
        return _grids(g, tensors)
    first, second, *rest = tensors
    grids: list[Any] = _grids(g, [second, first, *rest])
    return [grids[1], grids[0], *grids[2:]]


def _grids(g: Graph, tensors: Sequence[Value]) -> list[Value]:
    shape = [dims.numel(t.shape) for t in tensors]
    grids = []
    for axis, tensor in enumerate(tensors):
        own = [s if i == axis else 1 for i, s in enumerate(shape)]
        grids.append(broadcast(g, tfl.reshape(g, tensor, own), shape))
    return grids
