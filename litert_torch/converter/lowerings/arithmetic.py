"""Sums, products, bounds and signs, of floats and integers alike."""

import math
from collections.abc import Callable

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.kernel_dtypes import computed_wide
from litert_torch.converter.lowerings.promotion import (
    Operand,
    as_float,
    compared,
    computed,
    result_dtype,
)

aten = torch.ops.aten

_LARGEST, _SMALLEST = 3.4028234663852886e38, 1.1754943508222875e-38  # normal float32

_Binary = Callable[[Graph, Value, Value], Value]
_OF_BOOL: dict[_Binary, _Binary] = {
    tfl.add: tfl.logical_or,
    tfl.mul: tfl.logical_and,
    tfl.maximum: tfl.logical_or,
    tfl.minimum: tfl.logical_and,
}


def number(x: Value, value: float) -> Value:
    """A scalar constant of x's dtype."""
    return const(value, x.dtype)


def scaled(g: Graph, x: Value, factor: float) -> Value:
    """x times a number that is often 1."""
    return x if factor == 1 else tfl.mul(g, x, number(x, factor))


def _arithmetic(g: Graph, emit: _Binary, x: Operand, y: Operand) -> Value:
    """`emit` of x and y promoted; of bools, the logical op that PyTorch means by it."""
    if isinstance(x, Value) and isinstance(y, Value) and x.dtype == y.dtype == DType.BOOL:
        return _OF_BOOL[emit](g, x, y)
    return computed(g, emit, x, y)


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(g: Graph, x: Operand, other: Operand, alpha: float = 1) -> Value:
    """x + alpha * other."""
    if alpha == 1:
        return _arithmetic(g, tfl.add, x, other)
    return computed(g, lambda g, x, y: tfl.add(g, x, scaled(g, y, alpha)), x, other)


@lowers(aten.sub.Tensor, aten.sub.Scalar, aten.subtract.Tensor, aten.subtract.Scalar)
def sub(g: Graph, x: Operand, other: Operand, alpha: float = 1) -> Value:
    """x - alpha * other."""
    return computed(g, lambda g, x, y: tfl.sub(g, x, scaled(g, y, alpha)), x, other)


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(g: Graph, x: Operand, other: Operand, alpha: float = 1) -> Value:
    """Other - alpha * x."""
    return computed(g, lambda g, x, y: tfl.sub(g, y, scaled(g, x, alpha)), x, other)


@lowers(aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.multiply.Scalar)
def mul(g: Graph, x: Operand, other: Operand) -> Value:
    """x * other."""
    return _arithmetic(g, tfl.mul, x, other)


@lowers(aten.maximum.default, aten.max.other)
def maximum(g: Graph, x: Value, other: Value) -> Value:
    """The larger; NaN where `other` is NaN, but not where only x is (LiteRT's kernels)."""
    return _arithmetic(g, tfl.maximum, x, other)


@lowers(aten.minimum.default, aten.min.other)
def minimum(g: Graph, x: Value, other: Value) -> Value:
    """The smaller; NaN where `other` is NaN, but not where only x is (LiteRT's kernels)."""
    return _arithmetic(g, tfl.minimum, x, other)


@lowers(aten.fmax.default)
def fmax(g: Graph, x: Value, other: Value) -> Value:
    """The larger, or the one that is no NaN."""
    return computed(g, lambda g, x, y: _ignoring_nan(g, tfl.maximum, x, y), x, other)


@lowers(aten.fmin.default)
def fmin(g: Graph, x: Value, other: Value) -> Value:
    """The smaller, or the one that is no NaN."""
    return computed(g, lambda g, x, y: _ignoring_nan(g, tfl.minimum, x, y), x, other)


def _ignoring_nan(g: Graph, emit: _Binary, x: Value, y: Value) -> Value:
    """LiteRT's MAXIMUM and MINIMUM already drop a NaN in their first operand."""
    both = emit(g, x, y)
    return tfl.select_v2(g, tfl.equal(g, y, y), both, x) if x.dtype.is_float else both


@lowers(aten.clamp.default, aten.clamp.Tensor, aten.clip.default, aten.clip.Tensor)
def clamp(g: Graph, x: Value, min: Operand = None, max: Operand = None) -> Value:
    """x within its bounds; `max` wins where they cross."""
    dtype = result_dtype(*(v for v in (x, min, max) if v is not None))
    if dtype.is_float and not isinstance(min, Value) and not isinstance(max, Value):
        return bounded(g, as_float(g, x), min, max)
    if min is not None:
        x = computed(g, lambda g, x, bound: tfl.maximum(g, bound, x), x, min)
    if max is not None:
        x = computed(g, lambda g, x, bound: tfl.minimum(g, bound, x), x, max)
    return x


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(g: Graph, x: Value, min: Operand) -> Value:
    """x, or `min` where that is larger."""
    return clamp(g, x, min)


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(g: Graph, x: Value, max: Operand) -> Value:
    """x, or `max` where that is smaller."""
    return clamp(g, x, None, max)


def bounded(g: Graph, x: Value, low: Operand, high: Operand) -> Value:
    """x of float32 within numbers; NaN stays NaN, which LiteRT keeps in a second operand only."""
    if (low, high) == (-1, 1):
        return tfl.relu_n1_to_1(g, x)
    if (low, high) == (0, 6):
        return tfl.relu6(g, x)
    if low is not None:
        x = tfl.relu(g, x) if low == 0 else tfl.maximum(g, as_float(g, low), x)
    return x if high is None else tfl.minimum(g, as_float(g, high), x)


@lowers(aten.neg.default, aten.negative.default)
def neg(g: Graph, x: Value) -> Value:
    """-x."""
    return computed_wide(g, x, lambda x: tfl.neg(g, x))


@lowers(aten.abs.default, aten.absolute.default)
def abs(g: Graph, x: Value) -> Value:
    """|x|."""
    return computed_wide(g, x, lambda x: magnitude(g, x))


def magnitude(g: Graph, x: Value) -> Value:
    """|x| of float32, int32 or int64; ABS has no kernel for the last."""
    return tfl.maximum(g, x, tfl.neg(g, x)) if x.dtype == DType.INT64 else tfl.abs(g, x)


@lowers(aten.sign.default, aten.sgn.default)
def sign(g: Graph, x: Value) -> Value:
    """-1, 0 or 1."""
    return x if x.dtype == DType.BOOL else computed_wide(g, x, lambda x: _sign(g, x))


def _sign(g: Graph, x: Value) -> Value:
    if x.dtype != DType.INT64:
        return tfl.sign(g, x)
    return tfl.maximum(g, number(x, -1), tfl.minimum(g, number(x, 1), x))


@lowers(aten.addcmul.default)
def addcmul(g: Graph, x: Value, tensor1: Value, tensor2: Value, value: float = 1) -> Value:
    """x + value * tensor1 * tensor2."""
    return computed(
        g,
        lambda g, x, a, b: tfl.add(g, x, scaled(g, tfl.mul(g, a, b), value)),
        x,
        tensor1,
        tensor2,
    )


@lowers(aten.addcdiv.default)
def addcdiv(g: Graph, x: Value, tensor1: Value, tensor2: Value, value: float = 1) -> Value:
    """x + value * tensor1 / tensor2, of floats."""
    quotient = tfl.div(g, as_float(g, tensor1), as_float(g, tensor2))
    return tfl.add(g, as_float(g, x), scaled(g, quotient, value))


@lowers(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(g: Graph, x: Value, end: Value, weight: Operand) -> Value:
    """x + weight * (end - x), from the nearer end where the weight is a number."""
    if not isinstance(weight, Value) and weight >= 0.5:
        return tfl.sub(g, end, scaled(g, tfl.sub(g, end, x), 1 - weight))
    return tfl.add(g, x, tfl.mul(g, tfl.sub(g, end, x), as_float(g, weight)))


@lowers(aten.hypot.default)
def hypot(g: Graph, x: Value, other: Value) -> Value:
    """Root of the sum of squares, which themselves may overflow."""
    return computed(g, _hypot, x, other)


def _hypot(g: Graph, x: Value, y: Value) -> Value:
    x, y = tfl.abs(g, x), tfl.abs(g, y)
    larger, smaller = tfl.maximum(g, x, y), tfl.minimum(g, x, y)
    divisor = tfl.maximum(g, tfl.minimum(g, larger, number(x, _LARGEST)), number(x, _SMALLEST))
    ratio = tfl.square(g, tfl.div(g, smaller, divisor))
    root = tfl.mul(g, larger, tfl.sqrt(g, tfl.add(g, ratio, number(x, 1.0))))
    infinity = number(x, math.inf)
    infinite = tfl.logical_or(g, tfl.equal(g, x, infinity), tfl.equal(g, y, infinity))
    return tfl.select_v2(g, infinite, infinity, root)


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(g: Graph, x: Value, other: Operand) -> Value:
    """|x| with the sign of `other`, also where that is -0."""
    size, signed = tfl.abs(g, as_float(g, x)), as_float(g, other)
    return tfl.select_v2(g, sign_bit(g, signed), tfl.neg(g, size), size)


@lowers(aten.signbit.default)
def signbit(g: Graph, x: Value) -> Value:
    """Whether the sign is minus, -0 included."""
    if x.dtype.is_float:
        return sign_bit(g, x)
    return compared(g, tfl.less, x, 0)


def sign_bit(g: Graph, x: Value) -> Value:
    """Where the sign bit of a float32 is set."""
    return tfl.less(g, tfl.bitcast(g, x, DType.INT32), const(0, DType.INT32))
