"""Parts of a tensor along an axis: slices, splits, single elements."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_OPEN_END = 1 << 31  # exported slices end at 2**63 - 1 where the source says [start:]
_MOST_PARTS = 4  # of a SPLIT that XNNPACK takes


def sliced(
    g: Graph, x: Value, axis: int, start: Size | None, end: Size | None, step: int = 1
) -> Value:
    """x[start:end:step] along `axis`, with Python's meaning of negative and missing bounds.

    Where x's size along `axis` is dynamic, fixed bounds must lie within it.
    """
    size = x.shape[axis]
    if isinstance(size, int) and not isinstance(start, Dim) and not isinstance(end, Dim):
        begin, limit, _ = slice(start, end, step).indices(size)
        return _sliced_within(g, x, axis, begin, max(limit, begin), step)
    first, stop = _from_front(start, size, 0), _from_front(end, size, size)
    length = stop - first
    length = length if step == 1 else (length + (step - 1)) // step
    if isinstance(start, Dim) or isinstance(end, Dim):
        return _sliced_at(g, x, axis, first, stop, step, length)
    return _sliced_by_masks(g, x, axis, start or 0, end, step, length)


def _from_front(bound: Size | None, size: Size, missing: Size) -> Size:
    """A slice's bound counted from the front; bounds beyond a dynamic size are not clamped."""
    if bound is None:
        return missing
    if isinstance(bound, Dim):
        return bound + size if bound.expr.is_negative else bound
    if bound >= _OPEN_END:
        return size
    return size + bound if bound < 0 else bound


def _sliced_within(g: Graph, x: Value, axis: int, start: int, end: int, step: int) -> Value:
    """Both bounds known and within x."""
    if start == 0 and end == x.shape[axis] and step == 1:
        return x
    length = -(-(end - start) // step)
    if not dims.is_static(x.shape):
        return _sliced_by_masks(g, x, axis, start, end, step, length)
    begin = [start if i == axis else 0 for i in range(x.rank)]
    if step == 1 or length == 1:
        return tfl.slice(g, x, begin, _with(x.shape, axis, length))
    steps = [step if i == axis else 1 for i in range(x.rank)]
    return tfl.strided_slice(g, x, begin, _with(x.shape, axis, end), steps)


def _sliced_by_masks(
    g: Graph, x: Value, axis: int, start: int, end: int | None, step: int, length: Size
) -> Value:
    """A STRIDED_SLICE whose bounds are constants although some size is dynamic."""
    if start == 0 and step == 1 and length == x.shape[axis]:
        return x
    whole = (1 << x.rank) - 1
    others = whole & ~(1 << axis)
    is_open = end is None or end >= _OPEN_END
    zeros = [0] * x.rank
    return tfl.strided_slice(
        g,
        x,
        _with(zeros, axis, start),
        _with(zeros, axis, 0 if end is None or is_open else end),
        [step if i == axis else 1 for i in range(x.rank)],
        begin_mask=others,
        end_mask=whole if is_open else others,
        shape=_with(x.shape, axis, length),
    )


def _sliced_at(
    g: Graph, x: Value, axis: int, start: Size, end: Size, step: int, length: Size
) -> Value:
    """A slice with a bound that is computed when the model runs."""
    begin = _with([0] * x.rank, axis, start)
    steps = [step if i == axis else 1 for i in range(x.rank)]
    others = ((1 << x.rank) - 1) & ~(1 << axis)
    return tfl.strided_slice(
        g,
        x,
        begin,
        _with([0] * x.rank, axis, end),
        steps,
        begin_mask=others,
        end_mask=others,
        shape=_with(x.shape, axis, length),
    )


def _with(values: Sequence[Size], axis: int, value: Size) -> tuple[Size, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


def elements_at(g: Graph, x: Value, axis: int, indices: npt.ArrayLike) -> Value:
    """The elements of x at constant `indices` [K], not negative, along `axis`.

    A SLICE, STRIDED_SLICE or REVERSE_V2 where the indices are in line, else a GATHER.
    """
    at = np.asarray(indices, np.int64)
    steps = set(np.diff(at).tolist())
    if len(at) == 1 or (len(steps) == 1 and min(steps) > 0):
        step = steps.pop() if steps else 1
        return sliced(g, x, axis, int(at[0]), int(at[-1]) + 1, step)
    if steps == {-1}:
        part = sliced(g, x, axis, int(at[-1]), int(at[0]) + 1)
        return tfl.reverse_v2(g, part, [axis])
    return tfl.gather(g, x, const(at, DType.INT32), axis=axis)


@lowers(aten.slice.Tensor)
def slice_tensor(
    g: Graph,
    x: Value,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> Value:
    """x[start:end:step] along `dim`."""
    return sliced(g, x, dim % x.rank, start, end, int(step))


@lowers(aten.select.int)
def select(g: Graph, x: Value, dim: int, index: Size) -> Value:
    """x[index] along `dim`, which is dropped."""
    dim %= x.rank
    end = None if index == -1 else index + 1
    part = sliced(g, x, dim, index, end)
    return tfl.reshape(g, part, (*x.shape[:dim], *x.shape[dim + 1 :]))


@lowers(aten.narrow.default, aten.narrow_copy.default)
def narrow(g: Graph, x: Value, dim: int, start: Size, length: Size) -> Value:
    """`length` elements from `start` along `dim`."""
    dim %= x.rank
    start = _from_front(start, x.shape[dim], 0)
    return sliced(g, x, dim, start, start + length)


@lowers(aten.narrow.Tensor)
def narrow_tensor(g: Graph, x: Value, dim: int, start: Value, length: Size) -> Value:
    """`length` elements from a run-time `start`, which counts from the back if negative."""
    from litert_torch.converter.lowerings.indices import wrapped

    dim %= x.rank
    begin = tfl.reshape(g, wrapped(g, start, x.shape[dim]), (1,))
    zero = const([0], DType.INT32)
    begins = tfl.concatenation(g, [begin if i == dim else zero for i in range(x.rank)], axis=0)
    return tfl.slice_at(g, x, begins, _with(x.shape, dim, length))


def parts(g: Graph, x: Value, axis: int, sizes: Sequence[Size]) -> list[Value]:
    """x cut along `axis` into parts of these sizes: a SPLIT of equal ones, else a SLICE each."""
    if len(sizes) == 1:
        return [x]
    if len(set(sizes)) == 1 and len(sizes) <= _MOST_PARTS and sizes[0] != 0:
        return tfl.split(g, x, len(sizes), axis=axis)
    cuts: list[Size] = [0]
    for size in sizes:
        cuts.append(cuts[-1] + size)
    ends = [*cuts[1:-1], None]
    return [sliced(g, x, axis, a, b) for a, b in zip(cuts[:-1], ends, strict=True)]


def _chunk_sizes(size: Size, each: Size) -> list[Size]:
    """Sizes of chunks of `each` elements, of which the last may be smaller."""
    if size == each:
        return [size]
    total, step = dims.static([size, each])
    if step == 0:
        return [0]
    return [min(step, total - at) for at in range(0, total, step)] or [0]


@lowers(aten.split.Tensor, aten.unsafe_split.Tensor)
def split(g: Graph, x: Value, split_size: Size, dim: int = 0) -> list[Value]:
    """Parts of `split_size`, the last of what is left."""
    return parts(g, x, dim % x.rank, _chunk_sizes(x.shape[dim], split_size))


@lowers(aten.split.sizes)
def split_sizes(g: Graph, x: Value, split_size: Sequence[Size], dim: int = 0) -> list[Value]:
    """Parts of the given sizes."""
    return parts(g, x, dim % x.rank, split_size)


@lowers(aten.split_with_sizes.default, aten.unsafe_split_with_sizes.default)
def split_with_sizes(g: Graph, x: Value, split_sizes: Sequence[Size], dim: int = 0) -> list[Value]:
    """Parts of the given sizes."""
    return parts(g, x, dim % x.rank, split_sizes)


@lowers(aten.chunk.default, aten.unsafe_chunk.default)
def chunk(g: Graph, x: Value, chunks: int, dim: int = 0) -> list[Value]:
    """At most `chunks` parts of equal size, the last of what is left."""
    size = x.shape[dim] if chunks == 1 else int(x.shape[dim])
    if size == 0:
        return [x] * chunks
    return parts(g, x, dim % x.rank, _chunk_sizes(size, -(-size // chunks) if chunks > 1 else size))


@lowers(aten.tensor_split.sections)
def tensor_split_sections(g: Graph, x: Value, sections: int, dim: int = 0) -> list[Value]:
    """`sections` parts, the first of which are larger by one where they cannot be equal."""
    each, larger = divmod(int(x.shape[dim]), int(sections))
    return parts(g, x, dim % x.rank, [each + (i < larger) for i in range(int(sections))])


@lowers(aten.tensor_split.indices)
def tensor_split_indices(g: Graph, x: Value, indices: Sequence[Size], dim: int = 0) -> list[Value]:
    """Parts between the given positions."""
    bounds = [0, *indices, None]
    return [sliced(g, x, dim % x.rank, a, b) for a, b in pairwise(bounds)]


@lowers(aten.unbind.int)
def unbind(g: Graph, x: Value, dim: int = 0) -> list[Value]:
    """The elements along `dim`, which is dropped."""
    dim %= x.rank
    count = x.shape[dim]
    if not isinstance(count, int):
        raise UnsupportedCaseError(f"the number of results is dynamic ({count}); fix that size")
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    return [tfl.reshape(g, part, shape) for part in parts(g, x, dim, [1] * count)]
