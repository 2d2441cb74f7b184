"""Reading elements at given positions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Shape, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indices import (
    as_index,
    flattened,
    merged,
    transposed_from_last,
    transposed_to_last,
    wrapped,
)
from litert_torch.converter.lowerings.slicing import elements_at, sliced
from litert_torch.converter.lowerings.views import broadcast, transposed
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

MASK_DTYPES = frozenset({DType.BOOL, DType.UINT8})


@dataclass(frozen=True)
class Indexed:
    """x[..., i, j, ...] with the indexed axes side by side and merged.

    Attributes:
        x: x with its indexed axes next to each other, from `axis` on; not merged yet.
        axis: Where they begin.
        sizes: Their sizes.
        index: One int32 index into them, of the shape that all index tensors broadcast to.
        perm: The transpose that brought them there; None where they were there.
    """

    x: Value
    axis: int
    sizes: Shape
    index: Value
    perm: tuple[int, ...] | None

    @property
    def lead(self) -> Shape:
        """Sizes in front of the indexed axes."""
        return self.x.shape[: self.axis]

    @property
    def rest(self) -> Shape:
        """Sizes behind the indexed axes."""
        return self.x.shape[self.axis + len(self.sizes) :]

    @property
    def result_shape(self) -> Shape:
        """The shape of the elements read."""
        return (*self.lead, *self.index.shape, *self.rest)


def resolved_index(g: Graph, x: Value, indices: Sequence[Value | None]) -> Indexed:
    """What x[indices] means: axes indexed apart from each other move to the front."""
    axes, tensors = [], []
    for axis, index in enumerate(without_masks(indices)):
        if index is not None:
            axes.append(axis)
            tensors.append(index)
    together = axes == list(range(axes[0], axes[0] + len(axes)))
    perm = None
    if not together:
        perm = (*axes, *(a for a in range(x.rank) if a not in axes))
        x, axes = transposed(g, x, perm), list(range(len(axes)))
    sizes = x.shape[axes[0] : axes[0] + len(axes)]
    return Indexed(x, axes[0], sizes, merged(g, tensors, sizes), perm)


def without_masks(indices: Sequence[Value | None]) -> list[Value | None]:
    """Constant masks as the positions where they hold."""
    plain: list[Value | None] = []
    for index in indices:
        if index is None or index.dtype not in MASK_DTYPES:
            plain.append(index)
        elif index.const is None:
            raise UnsupportedCaseError(
                "indexes with a mask computed at run time, so that the result's size depends on "
                "data: use torch.where, or multiply by the mask"
            )
        else:
            plain += [const(at, DType.INT32) for at in np.nonzero(index.read())]
    return plain


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index_tensor(g: Graph, x: Value, indices: Sequence[Value | None]) -> Value:
    """x[indices]: a GATHER along the indexed axes merged into one, or a slice."""
    if all(i is None for i in indices):
        return x
    at = resolved_index(g, x, indices)
    flat = tfl.reshape(g, at.x, (*at.lead, dims.numel(at.sizes), *at.rest))
    if at.index.const is not None:
        picked = elements_at(g, flat, at.axis, at.index.read().reshape(-1))
        return tfl.reshape(g, picked, at.result_shape)
    return tfl.gather(g, flat, at.index, axis=at.axis)


@lowers(aten.index_select.default)
def index_select(g: Graph, x: Value, dim: int, index: Value) -> Value:
    """Slices of x along `dim` at the positions in a vector."""
    index = tfl.reshape(g, index, (dims.numel(index.shape),))
    if x.rank == 0:
        return x
    dim %= x.rank
    if index.const is not None and isinstance(x.shape[dim], int):
        return elements_at(g, x, dim, index.read())
    return tfl.gather(g, x, as_index(g, index), axis=dim)


@lowers(aten.gather.default)
def gather(g: Graph, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """x[i][index[i][j]] for the axes i other than `dim`: a GATHER whose other axes go together."""
    if x.rank == 0 or index.rank == 0:
        flat = tfl.gather(g, flattened(g, x), as_index(g, flattened(g, index)), axis=0)
        return tfl.reshape(g, flat, index.shape)
    dim %= x.rank
    rows = row_index(index, dim, x.shape)
    if rows is not None:
        rows = as_index(g, tfl.reshape(g, rows, rows.shape[: dim + 1]))
        return tfl.gather(g, x, rows, axis=dim, batch_dims=dim)
    for axis, size in enumerate(index.shape):
        if axis != dim and size != x.shape[axis]:
            x = sliced(g, x, axis, 0, size)
    return _gathered(g, x, dim, as_index(g, index))


def row_index(index: Value, dim: int, shape: Shape) -> Value | None:
    """The index before it was expanded over the axes behind `dim`, where it names whole slices.

    `shape` is that of the tensor it reads or writes.
    """
    op = index.producer
    small = op.inputs[0] if op is not None and op.kind == "BROADCAST_TO" else index
    if small is None or small.rank != index.rank:
        return None
    is_row = all(s == 1 for s in small.shape[dim + 1 :])
    whole = small.shape[:dim] == shape[:dim] and index.shape[dim + 1 :] == shape[dim + 1 :]
    return small if is_row and whole else None


def _gathered(g: Graph, x: Value, dim: int, index: Value) -> Value:
    """Gather where all axes but `dim` are equal."""
    to_last = transposed_to_last(x.rank, dim)
    last = x.rank - 1
    x, index = transposed(g, x, to_last), transposed(g, index, to_last)
    shape = index.shape
    lead = dims.numel(shape[:-1])
    x = tfl.reshape(g, x, (lead, x.shape[-1]))
    index = tfl.reshape(g, index, (lead, shape[-1]))
    picked = tfl.reshape(g, tfl.gather(g, x, index, axis=1, batch_dims=1), shape)
    return transposed(g, picked, transposed_from_last(last + 1, dim))


@lowers(aten.take.default)
def take(g: Graph, x: Value, index: Value) -> Value:
    """Elements of x flattened; negative positions count from the end."""
    flat = flattened(g, x)
    return tfl.gather(g, flat, wrapped(g, index, flat.shape[0]), axis=0)


@lowers(aten.take_along_dim.default)
def take_along_dim(g: Graph, x: Value, indices: Value, dim: int | None = None) -> Value:
    """Gather with both broadcast over the axes other than `dim`; negative ones from the end."""
    if dim is None:
        return take(g, x, flattened(g, indices))
    dim %= x.rank
    indices = wrapped(g, indices, x.shape[dim])
    other = [1 if a == dim else s for a, s in enumerate(x.shape)]
    shape = dims.broadcast(other, [1 if a == dim else s for a, s in enumerate(indices.shape)])
    x = broadcast(g, x, _with(shape, dim, x.shape[dim]))
    return gather(g, x, dim, broadcast(g, indices, _with(shape, dim, indices.shape[dim])))


def _with(shape: Shape, axis: int, size: Size) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


@lowers(aten.embedding.default)
def embedding(
    g: Graph,
    weight: Value,
    indices: Value,
    padding_idx: Size = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """EMBEDDING_LOOKUP of a constant table, which may be quantized later; else GATHER."""
    index = as_index(g, indices)
    if weight.const is None or not weight.dtype.is_float:
        return tfl.gather(g, weight, index, axis=0)
    rows = tfl.embedding_lookup(g, flattened(g, index), weight)
    return tfl.reshape(g, rows, (*indices.shape, *weight.shape[1:]))


@lowers(aten.one_hot.default)
def one_hot(g: Graph, x: Value, num_classes: int = -1) -> Value:
    """Int64 [..., num_classes], 1 at each index."""
    if num_classes == -1:
        raise UnsupportedCaseError("the number of classes depends on data: pass num_classes")
    return tfl.one_hot(g, as_index(g, x), int(num_classes), dtype=DType.INT64)
