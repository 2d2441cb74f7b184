"""Quotients and remainders, rounded as PyTorch rounds them."""

import math

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.arithmetic import magnitude, number
from litert_torch.converter.lowerings.promotion import Operand, as_float, computed
from litert_torch.converter.lowerings.rounding import truncated

aten = torch.ops.aten

_STEPS = 3  # a float32 quotient has 22 good bits or more; three times that exceeds 63


@lowers(
    aten.div.Tensor,
    aten.div.Scalar,
    aten.divide.Tensor,
    aten.divide.Scalar,
    aten.true_divide.Tensor,
    aten.true_divide.Scalar,
)
def div(g: Graph, x: Operand, other: Operand) -> Value:
    """x / other in floats, of integers too; by a power of two as a product, which is as exact."""
    x = as_float(g, x)
    if is_power_of_two(other):
        return x if other == 1 else tfl.mul(g, x, number(x, 1 / other))
    return tfl.div(g, x, as_float(g, other))


def is_power_of_two(x: Operand) -> bool:
    """A number whose reciprocal is exact in float32, and with it every product."""
    if not isinstance(x, (int, float)) or x == 0 or not math.isfinite(x):
        return False
    mantissa, exponent = math.frexp(x)
    return mantissa in (0.5, -0.5) and -100 < exponent < 100


@lowers(
    aten.div.Tensor_mode,
    aten.div.Scalar_mode,
    aten.divide.Tensor_mode,
    aten.divide.Scalar_mode,
)
def div_mode(g: Graph, x: Operand, other: Operand, rounding_mode: str | None) -> Value:
    """The quotient rounded down ("floor"), towards zero ("trunc"), or not at all."""
    if rounding_mode is None:
        return div(g, x, other)
    return computed(g, floor_quotient if rounding_mode == "floor" else _trunc_quotient, x, other)


@lowers(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(g: Graph, x: Operand, other: Operand) -> Value:
    """The quotient rounded down."""
    return computed(g, floor_quotient, x, other)


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(g: Graph, x: Operand, other: Operand) -> Value:
    """x - floor(x / other) * other: the divisor's sign."""
    return computed(g, _floor_remainder, x, other)


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(g: Graph, x: Operand, other: Operand) -> Value:
    """x - trunc(x / other) * other: the dividend's sign."""
    return computed(g, _trunc_remainder, x, other)


def _floor_remainder(g: Graph, x: Value, y: Value) -> Value:
    """FLOOR_MOD, or for floats and a power of two what delegates take, which is as exact."""
    if not (x.dtype.is_float and _is_constant_power_of_two(y)):
        return tfl.floor_mod(g, x, y)
    return tfl.sub(g, x, tfl.mul(g, tfl.floor(g, tfl.div(g, x, y)), y))


def _is_constant_power_of_two(y: Value) -> bool:
    return y.const is not None and y.const.size == 1 and is_power_of_two(float(y.read().item()))


def _trunc_remainder(g: Graph, x: Value, y: Value) -> Value:
    """FLOOR_MOD of the magnitudes, with the dividend's sign."""
    size = tfl.floor_mod(g, magnitude(g, x), magnitude(g, y))
    return tfl.select_v2(g, tfl.less(g, x, number(x, 0)), tfl.neg(g, size), size)


def floor_quotient(g: Graph, x: Value, y: Value) -> Value:
    """x / y rounded down, of float32, int32 or int64; LiteRT divides no int64."""
    if x.dtype == DType.INT32:
        return tfl.floor_div(g, x, y)
    if x.dtype == DType.INT64:
        return _exact_quotient(g, x, y, tfl.floor_mod(g, x, y))
    quotient = tfl.div(g, x, y)
    if _is_constant_power_of_two(y):
        return tfl.floor(g, quotient)
    # x / y may round up to a whole number that y does not reach: take the remainder off first
    whole = tfl.round(g, tfl.div(g, tfl.sub(g, x, tfl.floor_mod(g, x, y)), y))
    if y.const is not None:
        return whole
    return tfl.select_v2(g, tfl.equal(g, y, number(y, 0)), quotient, whole)


def _trunc_quotient(g: Graph, x: Value, y: Value) -> Value:
    if x.dtype == DType.INT32:
        return tfl.div(g, x, y)
    if x.dtype == DType.INT64:
        return _exact_quotient(g, x, y, _trunc_remainder(g, x, y))
    return truncated(g, tfl.div(g, x, y))


def _exact_quotient(g: Graph, x: Value, y: Value, remainder: Value) -> Value:
    """(x - remainder) / y of int64: float32 quotients of what the last one left over.

    x - remainder itself may overflow, what is left after the first step not.
    """
    divisor = as_float(g, y)
    total = _estimate(g, x, divisor)
    left = tfl.sub(g, tfl.sub(g, x, tfl.mul(g, total, y)), remainder)
    for _ in range(_STEPS - 1):
        part = _estimate(g, left, divisor)
        total = tfl.add(g, total, part)
        left = tfl.sub(g, left, tfl.mul(g, part, y))
    return total


def _estimate(g: Graph, x: Value, divisor: Value) -> Value:
    return tfl.cast(g, tfl.round(g, tfl.div(g, as_float(g, x), divisor)), DType.INT64)
