"""Sorting and selection by rank, all by TOPK_V2, which keeps equal elements in order."""

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.dynamic_positions import positions
from litert_torch.converter.lowerings.indexing import gather
from litert_torch.converter.lowerings.indices import transposed_from_last, transposed_to_last
from litert_torch.converter.lowerings.kernel_dtypes import widened
from litert_torch.converter.lowerings.slicing import sliced
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_LARGEST_PAIRWISE = 1 << 24


def ranked(g: Graph, x: Value, k: Size, dim: int, *, largest: bool) -> tuple[Value, Value]:
    """The first `k` along `dim` in descending (or ascending) order, and their int32 places."""
    if x.rank == 0:
        return x, const(0, DType.INT32)
    axis = dim % x.rank
    key = tfl.transpose(g, widened(g, x), transposed_to_last(x.rank, axis))
    values, places = tfl.topk_v2(g, key if largest else _reversed(g, key), k)
    values = values if largest else _reversed(g, values)
    back = transposed_from_last(x.rank, axis)
    values, places = tfl.transpose(g, values, back), tfl.transpose(g, places, back)
    return tfl.cast(g, values, x.dtype), places


def _reversed(g: Graph, x: Value) -> Value:
    """Elements in the opposite order: -x, or -1 - x of integers, which cannot overflow."""
    return tfl.neg(g, x) if x.dtype.is_float else tfl.sub(g, const(-1, x.dtype), x)


def _with_long_places(g: Graph, result: tuple[Value, Value]) -> list[Value]:
    return [result[0], tfl.cast(g, result[1], DType.INT64)]


@lowers(aten.topk.default)
def topk(
    g: Graph, x: Value, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[Value]:
    """The `k` largest or smallest along `dim`, in order, and their int64 indices."""
    return _with_long_places(g, ranked(g, x, k, dim, largest=largest))


@lowers(aten.sort.default)
def sort(g: Graph, x: Value, dim: int = -1, descending: bool = False) -> list[Value]:
    """All elements along `dim` in order, stably, and their int64 indices."""
    size = x.shape[dim] if x.rank else 1
    return _with_long_places(g, ranked(g, x, size, dim, largest=descending))


@lowers(aten.sort.stable)
def sort_stable(
    g: Graph, x: Value, *, stable: bool | None, dim: int = -1, descending: bool = False
) -> list[Value]:
    """As sort, which is stable in any case."""
    return sort(g, x, dim, descending)


@lowers(aten.msort.default)
def msort(g: Graph, x: Value) -> Value:
    """Sorted along the first axis."""
    return sort(g, x, 0)[0]


@lowers(aten.argsort.default)
def argsort(g: Graph, x: Value, dim: int = -1, descending: bool = False) -> Value:
    """Int64 indices that sort x along `dim`."""
    return sort(g, x, dim, descending)[1]


@lowers(aten.argsort.stable)
def argsort_stable(
    g: Graph, x: Value, *, stable: bool, dim: int = -1, descending: bool = False
) -> Value:
    """As argsort, which is stable in any case."""
    return sort(g, x, dim, descending)[1]


@lowers(aten.kthvalue.default)
def kthvalue(g: Graph, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> list[Value]:
    """The k-th smallest along `dim`, from 1, and its int64 index."""
    found = ranked(g, x, k, dim, largest=False)
    if x.rank:
        axis = dim % x.rank
        found = (sliced(g, found[0], axis, k - 1, k), sliced(g, found[1], axis, k - 1, k))
        if not keepdim:
            shape = (*x.shape[:axis], *x.shape[axis + 1 :])
            found = (tfl.reshape(g, found[0], shape), tfl.reshape(g, found[1], shape))
    return _with_long_places(g, found)


@lowers(aten.median.dim)
def median_dim(g: Graph, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """The lower median along `dim` and its int64 index."""
    size = int(x.shape[dim]) if x.rank else 1
    return kthvalue(g, x, (size + 1) // 2, dim, keepdim)


@lowers(aten.median.default)
def median(g: Graph, x: Value) -> Value:
    """The lower median of all elements."""
    return median_dim(g, tfl.reshape(g, x, (dims.numel(x.shape),)), 0)[0]


@lowers(aten.nanmedian.dim)
def nanmedian_dim(g: Graph, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """The lower median of the numbers along `dim`, NaN where there are none; and its index."""
    if not x.dtype.is_float or x.rank == 0:
        return median_dim(g, x, dim, keepdim)
    is_number = tfl.equal(g, x, x)
    last = tfl.select_v2(g, is_number, x, const(float("inf"), x.dtype))
    values, places = ranked(g, last, x.shape[dim], dim, largest=False)
    counts = tfl.sum(g, tfl.cast(g, is_number, DType.INT32), [dim], True)
    middle = tfl.sub(g, counts, const(1, DType.INT32))
    middle = tfl.maximum(g, middle, const(0, DType.INT32))
    middle = tfl.floor_div(g, middle, const(2, DType.INT32))
    value, place = gather(g, values, dim, middle), gather(g, places, dim, middle)
    none = tfl.equal(g, counts, const(0, DType.INT32))
    value = tfl.select_v2(g, none, const(float("nan"), x.dtype), value)
    if not keepdim:
        axis = dim % x.rank
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        value, place = tfl.reshape(g, value, shape), tfl.reshape(g, place, shape)
    return _with_long_places(g, (value, place))


@lowers(aten.nanmedian.default)
def nanmedian(g: Graph, x: Value) -> Value:
    """The lower median of all numbers among the elements."""
    return nanmedian_dim(g, tfl.reshape(g, x, (dims.numel(x.shape),)), 0)[0]


@lowers(aten.mode.default)
def mode(g: Graph, x: Value, dim: int = -1, keepdim: bool = False) -> list[Value]:
    """The most frequent value along `dim`, the least of several, and its last int64 index."""
    if x.rank == 0:
        return [x, const(0, DType.INT64)]
    axis = dim % x.rank
    line = tfl.transpose(g, widened(g, x), transposed_to_last(x.rank, axis))
    size = int(line.shape[-1])
    _require_pairwise(line, size)
    ahead = tfl.expand_dims(g, line, line.rank)
    same = tfl.equal(g, ahead, tfl.expand_dims(g, line, line.rank - 1))
    counts = tfl.sum(g, tfl.cast(g, same, DType.INT32), [-1], False)
    often = tfl.equal(g, counts, tfl.reduce_max(g, counts, [-1], True))
    candidates = tfl.select_v2(g, often, line, tfl.reduce_max(g, line, [-1], True))
    least = tfl.reduce_min(g, candidates, [-1], True)
    here = tfl.select_v2(g, tfl.equal(g, line, least), positions(g, size), const(0, DType.INT32))
    shape = [s for a, s in enumerate(x.shape) if a != axis or keepdim]
    if keepdim:
        shape[axis] = 1
    values = tfl.cast(g, tfl.reshape(g, least, shape), x.dtype)
    places = tfl.reshape(g, tfl.reduce_max(g, here, [-1], True), shape)
    return _with_long_places(g, (values, places))


def _require_pairwise(line: Value, size: int) -> None:
    pairs = dims.numel(line.shape) * size
    if isinstance(pairs, int) and pairs > _LARGEST_PAIRWISE:
        raise UnsupportedCaseError(f"mode compares {pairs} pairs of elements: too many")
