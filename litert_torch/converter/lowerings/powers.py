"""Powers and roots."""

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.arithmetic import number
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.indices import is_non_negative
from litert_torch.converter.lowerings.kernel_dtypes import computed_wide
from litert_torch.converter.lowerings.promotion import (
    Operand,
    as_float,
    computed,
    result_dtype,
)

aten = torch.ops.aten

_MOST_FACTORS = 16  # larger whole exponents lose to POW in accuracy
_EXPONENT_BITS = 6  # 2**63 is the largest power that an int64 does not overflow


@lowers(aten.sqrt.default)
def sqrt(g: Graph, x: Value) -> Value:
    """The square root, in floats."""
    return tfl.sqrt(g, as_float(g, x))


@lowers(aten.rsqrt.default)
def rsqrt(g: Graph, x: Value) -> Value:
    """1 / sqrt(x), in floats; RSQRT only where x cannot be 0, of which XNNPACK makes NaN."""
    x = as_float(g, x)
    return tfl.rsqrt(g, x) if _is_shifted_up(x) else tfl.div(g, const(1.0, x.dtype), tfl.sqrt(g, x))


def _is_shifted_up(x: Value) -> bool:
    """x is a sum with a small positive constant, as the variance plus epsilon of a norm."""
    if x.producer is None or x.producer.kind != "ADD":
        return False
    shifts = (v for v in x.producer.inputs if v is not None and v.const is not None)
    return any(v.const is not None and v.const.size == 1 and v.read().item() > 0 for v in shifts)


@lowers(aten.reciprocal.default)
def reciprocal(g: Graph, x: Value) -> Value:
    """1 / x, in floats."""
    return tfl.div(g, const(1.0, DType.FLOAT32), as_float(g, x))


@lowers(aten.square.default)
def square(g: Graph, x: Value) -> Value:
    """x * x; of bools, as int64."""
    if x.dtype == DType.BOOL:
        return tfl.cast(g, x, DType.INT64)
    return computed_wide(g, x, lambda x: _squared(g, x))


def _squared(g: Graph, x: Value) -> Value:
    return tfl.square(g, x) if x.dtype.is_float else tfl.mul(g, x, x)


@lowers(aten.pow.Tensor_Scalar)
def pow_scalar(g: Graph, x: Value, exponent: Operand) -> Value:
    """x ** exponent, by products and roots where there are few."""
    if isinstance(exponent, (int, float)):
        return computed(g, lambda g, x, _: _power(g, x, exponent), x, exponent)
    return computed(g, _general_power, x, exponent)


@lowers(aten.pow.Tensor_Tensor)
def pow_tensor(g: Graph, x: Value, exponent: Value) -> Value:
    """x ** exponent."""
    return computed(g, _general_power, x, exponent)


@lowers(aten.pow.Scalar)
def pow_of_scalar(g: Graph, x: Operand, exponent: Value) -> Value:
    """A number to the powers of a tensor."""
    if x == 1:
        return filled(g, exponent.shape, 1, result_dtype(x, exponent))
    return computed(g, _general_power, x, exponent)


def _power(g: Graph, x: Value, exponent: float) -> Value:
    """x of float32, int32 or int64 to a fixed exponent."""
    if exponent == 0:
        return filled(g, x.shape, 1, x.dtype)
    if exponent == 0.5:
        return tfl.sqrt(g, x)
    if exponent == -0.5:
        return rsqrt(g, x)
    if int(exponent) != exponent or abs(exponent) > _MOST_FACTORS:
        return _general_power(g, x, number(x, exponent))
    product = _product(g, x, abs(int(exponent)))
    return product if exponent > 0 else tfl.div(g, number(x, 1), product)


def _product(g: Graph, x: Value, count: int) -> Value:
    """x times itself, `count` factors."""
    if count == 1:
        return x
    half = _squared(g, _product(g, x, count // 2))
    return tfl.mul(g, half, x) if count % 2 else half


def _general_power(g: Graph, x: Value, exponent: Value) -> Value:
    """POW, which LiteRT has for float32, and for int32 with exponents that are not negative."""
    if x.dtype.is_float or (x.dtype == DType.INT32 and is_non_negative(exponent)):
        return tfl.pow(g, x, exponent)
    power = integer_power(g, x, exponent)
    return power if is_non_negative(exponent) else _or_reciprocal(g, x, exponent, power)


def _or_reciprocal(g: Graph, x: Value, exponent: Value, power: Value) -> Value:
    """`power`, and where the exponent is negative 1 / power, which is 0 but for 1 and -1."""
    zero, one = number(x, 0), number(x, 1)
    odd = tfl.not_equal(g, tfl.floor_mod(g, exponent, number(x, 2)), zero)
    sign = tfl.select_v2(g, odd, x, one)
    is_unit = tfl.equal(g, tfl.mul(g, x, x), one)
    inverse = tfl.select_v2(g, is_unit, sign, zero)
    return tfl.select_v2(g, tfl.less(g, exponent, zero), inverse, power)


def integer_power(g: Graph, x: Value, exponent: Value) -> Value:
    """x ** exponent of integers for exponents of 0 to 63, by the exponent's bits."""
    one = number(x, 1)
    left = tfl.cast(g, exponent, DType.INT32)
    zero, two = const(0, DType.INT32), const(2, DType.INT32)
    result = one
    for i in range(_EXPONENT_BITS):
        odd = tfl.not_equal(g, tfl.floor_mod(g, left, two), zero)
        factor = tfl.select_v2(g, odd, x, one)
        result = factor if i == 0 else tfl.mul(g, result, factor)
        left = tfl.floor_div(g, left, two)
        x = tfl.mul(g, x, x)
    return result
