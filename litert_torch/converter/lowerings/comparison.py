"""Comparisons, and choices by them."""

import math
from collections.abc import Callable

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.arithmetic import bounded, number
from litert_torch.converter.lowerings.kernel_dtypes import is_nonzero, widened
from litert_torch.converter.lowerings.promotion import (
    Operand,
    as_float,
    as_value,
    compared,
    computed,
    promoted,
    result_dtype,
)

aten = torch.ops.aten

_LARGEST = 3.4028234663852886e38  # float32


def _comparison(
    emit: Callable[[Graph, Value, Value], Value],
) -> Callable[[Graph, Value, Operand], Value]:
    def lowering(g: Graph, x: Value, other: Operand) -> Value:
        if emit in (tfl.equal, tfl.not_equal) and result_dtype(x, other) == DType.BOOL:
            return emit(g, *promoted(g, x, other))  # the two that have a kernel for bool
        return compared(g, emit, x, other)

    return lowering


for _emit, _packets in {
    tfl.equal: (aten.eq,),
    tfl.not_equal: (aten.ne, aten.not_equal),
    tfl.less: (aten.lt, aten.less),
    tfl.less_equal: (aten.le, aten.less_equal),
    tfl.greater: (aten.gt, aten.greater),
    tfl.greater_equal: (aten.ge, aten.greater_equal),
}.items():
    lowers(*(p.Tensor for p in _packets), *(p.Scalar for p in _packets))(_comparison(_emit))


@lowers(aten.isnan.default)
def isnan(g: Graph, x: Value) -> Value:
    """Where x differs from itself."""
    x = widened(g, x)
    return tfl.not_equal(g, x, x)


@lowers(aten.isinf.default)
def isinf(g: Graph, x: Value) -> Value:
    """Where x is infinite."""
    return tfl.equal(g, tfl.abs(g, as_float(g, x)), const(math.inf, DType.FLOAT32))


@lowers(aten.isposinf.default)
def isposinf(g: Graph, x: Value) -> Value:
    """Where x is plus infinity."""
    return tfl.equal(g, as_float(g, x), const(math.inf, DType.FLOAT32))


@lowers(aten.isneginf.default)
def isneginf(g: Graph, x: Value) -> Value:
    """Where x is minus infinity."""
    return tfl.equal(g, as_float(g, x), const(-math.inf, DType.FLOAT32))


@lowers(aten.isfinite.default)
def isfinite(g: Graph, x: Value) -> Value:
    """Where x is neither infinite nor NaN, which is less than nothing."""
    return tfl.less(g, tfl.abs(g, as_float(g, x)), const(math.inf, DType.FLOAT32))


@lowers(aten.nan_to_num.default)
def nan_to_num(
    g: Graph,
    x: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    """NaN and the infinities replaced; float32's largest numbers stand in for None."""
    if not x.dtype.is_float:
        return x
    y = tfl.select_v2(g, tfl.not_equal(g, x, x), number(x, nan or 0.0), x)
    for infinity, value in ((math.inf, posinf), (-math.inf, neginf)):
        if value is not None:
            y = tfl.select_v2(g, tfl.equal(g, x, number(x, infinity)), number(x, value), y)
    return bounded(
        g,
        y,
        -_LARGEST if neginf is None else None,
        _LARGEST if posinf is None else None,
    )


@lowers(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def where(g: Graph, condition: Value, x: Operand, other: Operand) -> Value:
    """x where the condition holds, else `other`."""
    return tfl.select_v2(g, is_nonzero(g, condition), *promoted(g, x, other))


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(g: Graph, x: Value, mask: Value, value: Operand) -> Value:
    """`value` where the mask holds, else x."""
    return tfl.select_v2(g, is_nonzero(g, mask), as_value(g, value, x.dtype), x)


@lowers(aten.heaviside.default)
def heaviside(g: Graph, x: Value, values: Value) -> Value:
    """0 below zero, 1 above, and `values` at zero."""
    return computed(g, _heaviside, x, values)


def _heaviside(g: Graph, x: Value, values: Value) -> Value:
    zero = number(x, 0)
    step = tfl.cast(g, tfl.greater(g, x, zero), x.dtype)
    return tfl.select_v2(g, tfl.equal(g, x, zero), values, step)
