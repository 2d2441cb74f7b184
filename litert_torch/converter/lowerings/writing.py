"""Rows of a tensor replaced by others, as index_put, index_copy and slice assignments do."""

from dataclasses import dataclass

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings.indices import added, as_index, wrapped
from litert_torch.converter.lowerings.slicing import elements_at, sliced

LARGEST_COMPARISON = 1 << 24
"""Elements of the mask that finds which index writes where; beyond it, indices must be unique."""


@dataclass(frozen=True)
class Rows:
    """Which rows along an axis are written: int32 or int64 index [N] that may be negative."""

    index: Value
    may_be_negative: bool

    def within(self, g: Graph, size: Size) -> Value:
        """The index as int32, not negative."""
        return wrapped(g, self.index, size) if self.may_be_negative else as_index(g, self.index)


def rows_replaced(g: Graph, x: Value, axis: int, rows: Rows, values: Value) -> Value:
    """x with its rows along `axis` replaced by `values`, of x's shape but N along `axis`.

    Where an index occurs twice the later row stays, as in eager PyTorch on the CPU.
    """
    size = x.shape[axis]
    if rows.index.const is not None and isinstance(size, int):
        at = rows.within(g, size).read().reshape(-1)
        return rows_replaced_at(g, x, axis, at, values)
    start = run_start(g, rows.index)
    if start is not None:
        return run_replaced(g, x, axis, Rows(start, rows.may_be_negative).within(g, size), values)
    writer = _last_writer(g, rows.within(g, size), int(size))
    read = tfl.maximum(g, tfl.sub(g, writer, const(1, DType.INT32)), const(0, DType.INT32))
    written = tfl.greater(g, writer, const(0, DType.INT32))
    column = tfl.reshape(g, written, (size, *(1,) * (x.rank - axis - 1)))
    return tfl.select_v2(g, column, tfl.gather(g, values, read, axis=axis), x)


def _last_writer(g: Graph, index: Value, size: int) -> Value:
    """For each of `size` rows, 1 + the last place in `index` [N] that names it; else 0. Int32."""
    count = int(index.shape[0])
    order = const(np.arange(1, count + 1), DType.INT32)
    if count * size > LARGEST_COMPARISON:
        sums = tfl.scatter_nd(g, tfl.reshape(g, index, (count, 1)), order, (size,))
        return tfl.minimum(g, sums, const(count, DType.INT32))
    named = tfl.one_hot(g, index, size, dtype=DType.INT32)
    numbered = tfl.mul(g, named, tfl.reshape(g, order, (count, 1)))
    return tfl.reduce_max(g, numbered, [0], False)


def run_start(g: Graph, index: Value) -> Value | None:
    """The first, of one element, of run-time indices [N] that are known to be consecutive."""
    if index.shape == (1,):
        return index
    source = index
    while source.producer is not None and source.producer.kind in {"CAST", "RESHAPE"}:
        inner = source.producer.inputs[0]
        if inner is None or not inner.dtype.is_integer:
            return None
        source = inner
    if source.rank > 1 or source.shape != index.shape:
        return None
    op = source.producer
    return _sum_with_run(g, op.inputs) if op and op.kind == "ADD" else _first_of_run(source)


def _first_of_run(index: Value) -> Value | None:
    """The first of constant or counted indices [N] that are consecutive."""
    if index.const is not None:
        values = index.read().reshape(-1)
        is_run = len(values) > 0 and bool((np.diff(values) == 1).all())
        return const(values[:1], index.dtype) if is_run else None
    op = index.producer
    if op is None or op.kind != "RANGE" or op.inputs[2] is None or op.inputs[2].const is None:
        return None
    return op.inputs[0] if int(op.inputs[2].read()) == 1 else None


def _sum_with_run(g: Graph, operands: list[Value | None]) -> Value | None:
    """Start + [first, first + 1, ...] as start + first."""
    for run, start in (operands, operands[::-1]):
        if run is None or start is None or start.shape not in {(), (1,)}:
            continue
        first = _first_of_run(run)
        if first is not None:
            is_zero = first.const is not None and not first.read().any()
            return start if is_zero else tfl.add(g, start, tfl.reshape(g, first, start.shape))
    return None


def run_replaced(g: Graph, x: Value, axis: int, start: Value, values: Value) -> Value:
    """DYNAMIC_UPDATE_SLICE of consecutive rows from a run-time int32 `start` of one element."""
    start, zero = tfl.reshape(g, start, (1,)), const([0], DType.INT32)
    begin = tfl.concatenation(g, [start if i == axis else zero for i in range(x.rank)], axis=0)
    return tfl.dynamic_update_slice(g, x, values, begin)


def rows_replaced_at(g: Graph, x: Value, axis: int, at: Array, values: Value) -> Value:
    """Rows at constant positions replaced: a run by CONCATENATION, else by GATHER from both."""
    size = int(x.shape[axis])
    if len(at) and (np.diff(at) == 1).all():
        first, end = int(at[0]), int(at[-1]) + 1
        pieces = [sliced(g, x, axis, 0, first)] if first else []
        pieces += [values]
        pieces += [sliced(g, x, axis, end, None)] if end < size else []
        return tfl.concatenation(g, pieces, axis=axis)
    source = np.arange(size)
    for place, row in enumerate(at.tolist()):
        source[row] = size + place
    if (source == np.arange(size)).all():
        return x
    if (source >= size).all():
        return elements_at(g, values, axis, source - size)
    return elements_at(g, tfl.concatenation(g, [x, values], axis=axis), axis, source)


def next_under_mask(g: Graph, mask: Value, values: Value) -> Value:
    """For a bool mask [N], the rows of `values` [K, ...] in turn where it holds, as [N, ...].

    Where it does not hold, any row.
    """
    count = tfl.cumsum(g, tfl.cast(g, mask, DType.INT32), 0)
    last = values.shape[0]
    place = added(g, count, const(-1, DType.INT32))
    place = tfl.maximum(g, place, const(0, DType.INT32))
    if isinstance(last, int):
        place = tfl.minimum(g, place, const(last - 1, DType.INT32))
    return tfl.gather(g, values, place, axis=0)
