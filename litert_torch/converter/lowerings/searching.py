"""Where values belong among sorted ones."""

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indexing import gather
from litert_torch.converter.lowerings.kernel_dtypes import widened
from litert_torch.converter.lowerings.promotion import promoted

aten = torch.ops.aten


@lowers(aten.searchsorted.Tensor)
def searchsorted(
    g: Graph,
    sorted_sequence: Value,
    x: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """How many elements of each sorted row come before each value: comparisons, summed."""
    if sorter is not None:
        sorted_sequence = gather(g, sorted_sequence, -1, sorter)
    if sorted_sequence.rank == 1:
        rows = sorted_sequence
    else:
        rows = tfl.expand_dims(g, sorted_sequence, sorted_sequence.rank - 1)
    return _count_before(g, rows, x, right or side == "right", out_int32)


@lowers(aten.searchsorted.Scalar)
def searchsorted_scalar(
    g: Graph,
    sorted_sequence: Value,
    x: float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """As searchsorted, of one number."""
    if sorter is not None:
        sorted_sequence = gather(g, sorted_sequence, -1, sorter)
    value = _number(x)
    return _count_before(g, sorted_sequence, value, right or side == "right", out_int32)


@lowers(aten.bucketize.Tensor)
def bucketize(
    g: Graph, x: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    """How many boundaries come before each value."""
    return _count_before(g, boundaries, x, right, out_int32)


@lowers(aten.bucketize.Scalar)
def bucketize_scalar(
    g: Graph, x: float, boundaries: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    """How many boundaries come before a number."""
    return _count_before(g, boundaries, _number(x), right, out_int32)


def _number(x: float) -> Value:
    """A Python number as a tensor of PyTorch's default dtype for it."""
    return const(x, DType.FLOAT32 if isinstance(x, float) else DType.INT64)


def _count_before(g: Graph, rows: Value, values: Value, right: bool, out_int32: bool) -> Value:
    """The count of rows [..., N] below (at, if `right`) each of values [...]; NaN is above all."""
    rows, column = promoted(g, rows, tfl.expand_dims(g, values, values.rank))
    rows, column = widened(g, rows), widened(g, column)
    compare = tfl.greater if right else tfl.greater_equal
    before = tfl.logical_not(g, compare(g, rows, column))
    count = tfl.sum(g, tfl.cast(g, before, DType.INT32), [-1], False)
    return count if out_int32 else tfl.cast(g, count, DType.INT64)
