"""Writing single elements along an axis: scatter, scatter_add, scatter_reduce."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Shape, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indexing import row_index
from litert_torch.converter.lowerings.indices import (
    as_index,
    transposed_to_last,
    with_batch,
)
from litert_torch.converter.lowerings.kernel_dtypes import widened
from litert_torch.converter.lowerings.promotion import as_value
from litert_torch.converter.lowerings.slicing import elements_at, sliced
from litert_torch.converter.lowerings.views import broadcast, transposed
from litert_torch.converter.lowerings.writing import LARGEST_COMPARISON
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


@dataclass(frozen=True)
class Lines:
    """A write of src [B, N, R] into x [B, S, R] at int32 index [B, N], and the way back.

    The caller's x transposed by `perm` has `shape`, which is [B, S, R] with its axes split.
    """

    x: Value
    index: Value
    src: Value
    shape: Shape
    perm: tuple[int, ...]

    @classmethod
    def of_rows(cls, g: Graph, x: Value, axis: int, index: Value, rows: Value) -> "Lines":
        """Whole rows [.., N, ..] along `axis` at index [N]: B is 1."""
        perm = (axis, *(a for a in range(x.rank) if a != axis))
        x, rows = transposed(g, x, perm), transposed(g, rows, perm)
        inner = dims.numel(x.shape[1:])
        return cls(
            tfl.reshape(g, x, (1, x.shape[0], inner)),
            tfl.reshape(g, as_index(g, index), (1, index.shape[0])),
            tfl.reshape(g, rows, (1, rows.shape[0], inner)),
            x.shape,
            perm,
        )

    @classmethod
    def of_elements(cls, g: Graph, x: Value, dim: int, index: Value, src: Value) -> "Lines":
        """Elements along `dim`; x and index have equal sizes elsewhere, src has index's shape."""
        rows = row_index(index, dim, x.shape)
        if rows is not None:
            perm = tuple(range(x.rank))
            lead, inner = dims.numel(x.shape[:dim]), dims.numel(x.shape[dim + 1 :])
            index = rows
        else:
            perm = tuple(transposed_to_last(x.rank, dim))
            x, index, src = (transposed(g, v, perm) for v in (x, index, src))
            lead, inner, dim = dims.numel(x.shape[:-1]), 1, x.rank - 1
        return cls(
            tfl.reshape(g, x, (lead, x.shape[dim], inner)),
            tfl.reshape(g, as_index(g, index), (lead, index.shape[dim])),
            tfl.reshape(g, src, (lead, src.shape[dim], inner)),
            x.shape,
            perm,
        )

    def back(self, g: Graph, y: Value) -> Value:
        """[B, S, R] in the caller's shape and order of axes."""
        order = [self.perm.index(a) for a in range(len(self.perm))]
        return transposed(g, tfl.reshape(g, y, self.shape), order)

    @property
    def size(self) -> int:
        """Of the axis that is written along."""
        return int(self.x.shape[1])

    def hits(self, g: Graph, of: Size = 1) -> Value:
        """Bool [B, N, S]: which source goes where; refused where `of` of them are too many."""
        elements = dims.numel((*self.index.shape, self.size, of))
        if isinstance(elements, int) and elements > LARGEST_COMPARISON:
            raise UnsupportedCaseError(
                f"compares {elements} pairs of sources and places; "
                "use fewer or smaller operands, or sum instead"
            )
        return tfl.one_hot(g, self.index, self.size, dtype=DType.BOOL)

    def replaced(self, g: Graph) -> Value:
        """x with sources in place of its elements; the last source for a place stays."""
        writer = self._last_writer(g)
        read = tfl.maximum(g, tfl.sub(g, writer, const(1, DType.INT32)), const(0, DType.INT32))
        found = tfl.gather(g, self.src, read, axis=1, batch_dims=1)
        written = tfl.expand_dims(g, tfl.greater(g, writer, const(0, DType.INT32)), 2)
        return self.back(g, tfl.select_v2(g, written, found, self.x))

    def _last_writer(self, g: Graph) -> Value:
        """Int32 [B, S]: 1 + the last of the N sources that goes there; 0 where none does."""
        count = int(self.index.shape[1])
        order = const(np.arange(1, count + 1)[None, :, None], DType.INT32)
        pairs = dims.numel((*self.index.shape, self.size))
        if not isinstance(pairs, int) or pairs <= LARGEST_COMPARISON:
            numbered = tfl.select_v2(g, self.hits(g), order, const(0, DType.INT32))
            return tfl.reduce_max(g, numbered, [1], False)
        batches = int(self.x.shape[0])
        numbers = const(np.tile(np.arange(1, count + 1), batches)[:, None], DType.INT32)
        sums = tfl.reshape(g, self._scattered(g, numbers), (batches, self.size))
        return tfl.minimum(g, sums, const(count, DType.INT32))

    def filled(self, g: Graph, value: Value) -> Value:
        """x with one number wherever an index points."""
        written = tfl.expand_dims(g, tfl.reduce_any(g, self.hits(g), [1], False), 2)
        return self.back(g, tfl.select_v2(g, written, value, self.x))

    def _scattered(self, g: Graph, updates: Value) -> Value:
        """Updates [B*N, R] summed where the index points, zeros elsewhere: [B*S, R]."""
        batches, count = dims.static(self.index.shape)
        at = with_batch(g, self.index, batches, self.size) if batches > 1 else self.index
        at = tfl.reshape(g, at, (batches * count, 1))
        shape = (batches * self.size, updates.shape[1])
        return tfl.scatter_nd(g, at, updates, shape)

    def summed(self, g: Graph, *, include_self: bool) -> Value:
        """x plus its sources; without `include_self`, the sum of sources where there are any."""
        src = widened(g, self.src)
        total = self._scattered(g, tfl.reshape(g, src, (_rows(src), src.shape[2])))
        total = tfl.reshape(g, total, self.x.shape)
        if include_self:
            result = tfl.cast(g, tfl.add(g, widened(g, self.x), total), self.x.dtype)
        else:
            result = self._where_written(g, tfl.cast(g, total, self.x.dtype))
        return self.back(g, result)

    def _where_written(self, g: Graph, value: Value) -> Value:
        written = tfl.greater(g, self._counts(g), const(0, DType.INT32))
        return tfl.select_v2(g, written, value, self.x)

    def _counts(self, g: Graph) -> Value:
        """Int32 [B, S, 1]: how many sources go there."""
        batches, count = dims.static(self.index.shape)
        ones = const(np.ones((batches * count, 1)), DType.INT32)
        return tfl.reshape(g, self._scattered(g, ones), (batches, self.size, 1))

    def averaged(self, g: Graph, *, include_self: bool) -> Value:
        """The mean of sources, and of x's own element if it counts; of integers, rounded down."""
        counts = self._counts(g)
        src = widened(g, self.src)
        total = self._scattered(g, tfl.reshape(g, src, (_rows(src), src.shape[2])))
        total = tfl.reshape(g, total, self.x.shape)
        one = const(1, DType.INT32)
        terms = tfl.add(g, counts, one) if include_self else tfl.maximum(g, counts, one)
        if include_self:
            total = tfl.add(g, total, widened(g, self.x))
        if src.dtype == DType.FLOAT32:
            mean = tfl.div(g, total, tfl.cast(g, terms, DType.FLOAT32))
        else:
            mean = tfl.floor_div(g, tfl.cast(g, total, DType.INT32), terms)
        mean = tfl.cast(g, mean, self.x.dtype)
        return self.back(g, mean if include_self else self._where_written(g, mean))

    def folded(
        self,
        g: Graph,
        reduce: Callable[..., Value],
        combine: Callable[..., Value],
        neutral: float,
        *,
        include_self: bool,
    ) -> Value:
        """A product, maximum or minimum of the sources of each place, by comparing all pairs."""
        hits = tfl.expand_dims(g, self.hits(g, self.x.shape[2]), 3)
        src = tfl.expand_dims(g, widened(g, self.src), 2)
        chosen = tfl.select_v2(g, hits, src, const(neutral, src.dtype))
        result = reduce(g, chosen, [1], False)
        if include_self:
            result = combine(g, widened(g, self.x), result)
            return self.back(g, tfl.cast(g, result, self.x.dtype))
        return self.back(g, self._where_written(g, tfl.cast(g, result, self.x.dtype)))

    def reduced(self, g: Graph, reduce: str, *, include_self: bool) -> Value:
        """By PyTorch's name of the reduction."""
        if reduce == "sum":
            return self.summed(g, include_self=include_self)
        if reduce == "mean":
            return self.averaged(g, include_self=include_self)
        folds = {
            "prod": (tfl.reduce_prod, tfl.mul, 1.0),
            "amax": (tfl.reduce_max, tfl.maximum, _lowest(self.src)),
            "amin": (tfl.reduce_min, tfl.minimum, _highest(self.src)),
        }
        return self.folded(g, *folds[reduce], include_self=include_self)


def _rows(src: Value) -> Size:
    return src.shape[0] * src.shape[1]


def _lowest(x: Value) -> float:
    return -np.inf if x.dtype.is_float else int(np.iinfo(_wide(x)).min)


def _highest(x: Value) -> float:
    return np.inf if x.dtype.is_float else int(np.iinfo(_wide(x)).max)


def _wide(x: Value) -> str:
    return "int64" if x.dtype == DType.INT64 else "int32"


def _on_covered(
    g: Graph, x: Value, dim: int, covered: Shape, function: Callable[[Value], Value]
) -> Value:
    """`function` of the part of x that an index of shape `covered` reaches; the rest as it is."""
    for axis, size in enumerate(covered):
        if axis != dim and size != x.shape[axis]:
            head = sliced(g, x, axis, 0, size)
            rest = sliced(g, x, axis, size, None)
            return tfl.concatenation(
                g, [_on_covered(g, head, dim, covered, function), rest], axis=axis
            )
    return function(x)


def _cut_to(g: Graph, src: Value, shape: Shape) -> Value:
    for axis, size in enumerate(shape):
        if size != src.shape[axis]:
            src = sliced(g, src, axis, 0, size)
    return src


def _scatter(
    g: Graph, x: Value, dim: int, index: Value, src: Value, write: Callable[[Lines], Value]
) -> Value:
    """`write` along `dim` of the part of x that the index reaches."""
    if x.rank == 0:
        shape = (1,)
        index, src = tfl.reshape(g, index, shape), tfl.reshape(g, src, shape)
        return tfl.reshape(g, _scatter(g, tfl.reshape(g, x, shape), 0, index, src, write), ())
    if 0 in index.shape:
        return x
    dim %= x.rank
    src = _cut_to(g, src, index.shape)

    def along(part: Value) -> Value:
        return write(Lines.of_elements(g, part, dim, index, src))

    return _on_covered(g, x, dim, index.shape, along)


@lowers(aten.scatter.src)
def scatter_src(g: Graph, x: Value, dim: int, index: Value, src: Value) -> Value:
    """x with elements of `src` at `index` along `dim`; a GATHER where the index is constant."""
    if index.const is not None and dims.is_static(x.shape) and x.rank:
        return _scatter_at(g, x, dim % x.rank, index, src)
    return _scatter(g, x, dim, index, src, lambda lines: lines.replaced(g))


def _scatter_at(g: Graph, x: Value, dim: int, index: Value, src: Value) -> Value:
    """Constant index: each element of the result is a known one of x or src."""
    source = np.arange(int(dims.numel(x.shape))).reshape(dims.static(x.shape))
    at = list(np.indices(dims.static(index.shape)))
    places = np.arange(int(dims.numel(src.shape))).reshape(dims.static(src.shape))[tuple(at)]
    at[dim] = index.read()
    source[tuple(at)] = places + source.size
    both = [tfl.reshape(g, v, (dims.numel(v.shape),)) for v in (x, src)]
    joined = tfl.concatenation(g, both, axis=0)
    return tfl.reshape(g, elements_at(g, joined, 0, source.reshape(-1)), x.shape)


@lowers(aten.scatter.value)
def scatter_value(g: Graph, x: Value, dim: int, index: Value, value: float) -> Value:
    """x with one number at `index` along `dim`."""
    filler = as_value(g, value, x.dtype)
    return _scatter(g, x, dim, index, index, lambda lines: lines.filled(g, filler))


@lowers(aten.scatter_add.default)
def scatter_add(g: Graph, x: Value, dim: int, index: Value, src: Value) -> Value:
    """x plus elements of `src` at `index` along `dim`, by SCATTER_ND."""
    return _scatter(g, x, dim, index, src, lambda lines: lines.summed(g, include_self=True))


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    g: Graph,
    x: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    """x combined with elements of `src` at `index` along `dim`."""

    def write(lines: Lines) -> Value:
        return lines.reduced(g, reduce, include_self=include_self)

    return _scatter(g, x, dim, index, src, write)


@lowers(aten.scatter.reduce)
def scatter_with_reduction(
    g: Graph, x: Value, dim: int, index: Value, src: Value, *, reduce: str
) -> Value:
    """The older spelling: reduce is "add" or "multiply"."""
    name = {"add": "sum", "multiply": "prod"}[reduce]
    return scatter_reduce(g, x, dim, index, src, name)


@lowers(aten.scatter.value_reduce)
def scatter_value_reduce(
    g: Graph, x: Value, dim: int, index: Value, value: float, *, reduce: str
) -> Value:
    """As scatter.reduce, with one number everywhere."""
    src = broadcast(g, as_value(g, value, x.dtype), index.shape)
    return scatter_with_reduction(g, x, dim, index, src, reduce=reduce)
