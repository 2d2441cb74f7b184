"""Parts of a tensor replaced: what functionalization makes of assignments to views."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indices import flattened
from litert_torch.converter.lowerings.rearranging import diagonal_indices
from litert_torch.converter.lowerings.slicing import sliced
from litert_torch.converter.lowerings.views import broadcast, moved
from litert_torch.converter.lowerings.writing import next_under_mask, rows_replaced_at

aten = torch.ops.aten


@lowers(aten.copy.default)
def copy(g: Graph, x: Value, src: Value, non_blocking: bool = False) -> Value:
    """`src` in the shape and dtype of x."""
    return broadcast(g, tfl.cast(g, src, x.dtype), x.shape)


@lowers(aten.slice_scatter.default)
def slice_scatter(
    g: Graph,
    x: Value,
    src: Value,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> Value:
    """x with x[start:end:step] along `dim` replaced by `src`: slices around it, joined."""
    dim %= x.rank
    src = tfl.cast(g, src, x.dtype)
    size = x.shape[dim]
    if isinstance(size, int) and not isinstance(start, Dim) and not isinstance(end, Dim):
        at = np.arange(size)[slice(start, end, step)]
        if len(at) == 0:
            return x
        shape = (*x.shape[:dim], len(at), *x.shape[dim + 1 :])
        return rows_replaced_at(g, x, dim, at, broadcast(g, src, shape))
    return _run_within_dynamic(g, x, src, dim, start, end, int(step))


def _run_within_dynamic(
    g: Graph, x: Value, src: Value, dim: int, start: Size | None, end: Size | None, step: int
) -> Value:
    """The bounds or the size are dynamic; only a run without gaps can be cut out."""
    if step != 1:
        dims.static([x.shape[dim]])
    first: Size = 0 if start is None else start
    pieces = [src] if first == 0 else [sliced(g, x, dim, 0, first), src]
    whole = x.shape[dim]
    if not (end is None or end == whole or (isinstance(end, int) and end >= 1 << 31)):
        pieces.append(sliced(g, x, dim, end, None))
    return tfl.concatenation(g, pieces, axis=dim)


@lowers(aten.select_scatter.default)
def select_scatter(g: Graph, x: Value, src: Value, dim: int, index: Size) -> Value:
    """x with x[index] along `dim` replaced by `src`."""
    dim %= x.rank
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    row = tfl.reshape(g, src, shape)
    return slice_scatter(g, x, row, dim, index, None if index == -1 else index + 1)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(
    g: Graph, x: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """x with a diagonal of two axes replaced by `src`, whose last axis runs along it."""
    matrix = moved(g, x, [dim1, dim2], [-2, -1])
    rows, columns = dims.static(matrix.shape[-2:])
    lead = matrix.shape[:-2]
    flat = tfl.reshape(g, matrix, (*lead, rows * columns))
    at = np.array(diagonal_indices(rows, columns, offset))
    result = rows_replaced_at(g, flat, len(lead), at, tfl.cast(g, src, x.dtype))
    return moved(g, tfl.reshape(g, result, matrix.shape), [-2, -1], [dim1, dim2])


@lowers(aten.masked_scatter.default)
def masked_scatter(g: Graph, x: Value, mask: Value, source: Value) -> Value:
    """x with the elements of `source`, in order, where the mask holds.

    The running count of the mask says which; a mask over whole rows counts rows.
    """
    shape = dims.broadcast(x.shape, mask.shape)
    x = broadcast(g, x, shape)
    if mask.const is not None and dims.is_static(shape):
        return _masked_scatter_at(g, x, mask, source)
    mask = tfl.cast(g, mask, DType.BOOL)
    small = _row_mask(mask, shape)
    width: Sequence[Size] = shape[-1:] if small is not None else ()
    if small is None or source.shape[-1:] != width:
        small, width = broadcast(g, mask, shape), ()
    per_row = dims.numel(width)
    count = dims.numel(source.shape[:-1]) if width else dims.numel(source.shape)
    values = tfl.reshape(g, source, (count, per_row) if width else (count,))
    found = next_under_mask(g, flattened(g, small), values)
    return tfl.select_v2(g, small, tfl.reshape(g, found, shape), x)


def _row_mask(mask: Value, shape: Sequence[Size]) -> Value | None:
    """The mask [..., 1] that was expanded over the last axis."""
    op = mask.producer
    small = op.inputs[0] if op is not None and op.kind == "BROADCAST_TO" else mask
    if small is None or small.rank != len(shape) or small.shape != (*shape[:-1], 1):
        return None
    return small


def _masked_scatter_at(g: Graph, x: Value, mask: Value, source: Value) -> Value:
    """A constant mask: known elements replaced."""
    held = np.broadcast_to(mask.read().astype(bool), dims.static(x.shape))
    at = np.flatnonzero(held)
    if len(at) == 0:
        return x
    values = sliced(g, flattened(g, source), 0, 0, len(at))
    return tfl.reshape(g, rows_replaced_at(g, flattened(g, x), 0, at, values), x.shape)
