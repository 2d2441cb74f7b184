"""Running sums, products and extremes along an axis."""

from collections.abc import Callable

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.dynamic_positions import positions
from litert_torch.converter.lowerings.kernel_dtypes import accumulated, widened
from litert_torch.converter.lowerings.reduction import dtype_given
from litert_torch.converter.lowerings.slicing import sliced
from litert_torch.converter.lowerings.statistics import finite

aten = torch.ops.aten


def scanned(g: Graph, x: Value, axis: int, op: Callable[[Graph, Value, Value], Value]) -> Value:
    """Running results of an associative `op`, in log2(size) steps: each doubles what is covered."""
    size, covered = int(x.shape[axis]), 1
    while covered < size:
        head = sliced(g, x, axis, 0, covered)
        earlier = sliced(g, x, axis, 0, size - covered)
        later = sliced(g, x, axis, covered, None)
        x = tfl.concatenation(g, [head, op(g, earlier, later)], axis=axis)
        covered *= 2
    return x


@lowers(aten.cumsum.default)
def cumsum(g: Graph, x: Value, dim: int, *, dtype: torch.dtype | None = None) -> Value:
    """CUMSUM; of integers, in int64."""
    x = accumulated(g, x, dtype_given(dtype))
    if x.rank == 0:
        return x
    return tfl.cast(g, tfl.cumsum(g, widened(g, x), dim % x.rank), x.dtype)


@lowers(aten.cumprod.default)
def cumprod(g: Graph, x: Value, dim: int, *, dtype: torch.dtype | None = None) -> Value:
    """Running product; of integers, in int64."""
    x = accumulated(g, x, dtype_given(dtype))
    if x.rank == 0:
        return x
    return tfl.cast(g, scanned(g, widened(g, x), dim % x.rank, tfl.mul), x.dtype)


@lowers(aten.cummax.default)
def cummax(g: Graph, x: Value, dim: int) -> list[Value]:
    """Running maxima and the last places so far where they are."""
    return _running_extreme(g, x, dim, tfl.maximum)


@lowers(aten.cummin.default)
def cummin(g: Graph, x: Value, dim: int) -> list[Value]:
    """Running minima and the last places so far where they are."""
    return _running_extreme(g, x, dim, tfl.minimum)


def _running_extreme(
    g: Graph, x: Value, dim: int, op: Callable[[Graph, Value, Value], Value]
) -> list[Value]:
    if x.rank == 0:
        return [x, const(0, DType.INT64)]
    axis = dim % x.rank
    wide = widened(g, x)
    values = scanned(g, wide, axis, op)
    place = positions(g, x.shape[axis])
    place = tfl.reshape(g, place, [s if a == axis else 1 for a, s in enumerate(x.shape)])
    reached = tfl.select_v2(g, tfl.equal(g, wide, values), place, const(0, DType.INT32))
    indices = scanned(g, reached, axis, tfl.maximum)
    return [tfl.cast(g, values, x.dtype), tfl.cast(g, indices, DType.INT64)]


@lowers(aten.logcumsumexp.default)
def logcumsumexp(g: Graph, x: Value, dim: int) -> Value:
    """Running log(sum(exp(x)))."""
    return x if x.rank == 0 else scanned(g, x, dim % x.rank, _log_add_exp)


def _log_add_exp(g: Graph, a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b)), from the larger down."""
    largest = tfl.maximum(g, a, b)
    top = finite(g, largest)
    total = tfl.add(g, tfl.exp(g, tfl.sub(g, a, top)), tfl.exp(g, tfl.sub(g, b, top)))
    return tfl.maximum(g, tfl.add(g, tfl.log(g, total), top), largest)
