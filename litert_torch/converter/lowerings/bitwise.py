"""Logic on bools, and on the bits of integers.

LiteRT has a bitwise AND for every integer; OR and XOR follow from it and sums, which are exact as
integers wrap around.
"""

from collections.abc import Callable

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.arithmetic import number
from litert_torch.converter.lowerings.division import floor_quotient
from litert_torch.converter.lowerings.kernel_dtypes import computed_wide, is_nonzero
from litert_torch.converter.lowerings.powers import integer_power
from litert_torch.converter.lowerings.promotion import Operand, as_value, computed, result_dtype
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

_Binary = Callable[[Graph, Value, Value], Value]


def _bits_and(g: Graph, x: Value, y: Value) -> Value:
    """AND of integers; the kernel broadcasts nothing."""
    shape = dims.broadcast(x.shape, y.shape)
    return tfl.stablehlo_and(g, broadcast(g, x, shape), broadcast(g, y, shape))


def _bits_or(g: Graph, x: Value, y: Value) -> Value:
    return tfl.sub(g, tfl.add(g, x, y), _bits_and(g, x, y))


def _bits_xor(g: Graph, x: Value, y: Value) -> Value:
    if x.dtype == DType.INT32:
        return tfl.bitwise_xor(g, x, y)
    both = _bits_and(g, x, y)
    return tfl.sub(g, tfl.add(g, x, y), tfl.add(g, both, both))


def _bitwise(of_bool: _Binary, of_integer: _Binary) -> Callable[[Graph, Operand, Operand], Value]:
    def lowering(g: Graph, x: Operand, other: Operand) -> Value:
        if result_dtype(x, other) == DType.BOOL:
            return of_bool(g, as_value(g, x, DType.BOOL), as_value(g, other, DType.BOOL))
        return computed(g, of_integer, x, other)

    return lowering


def _logical(emit: _Binary) -> Callable[[Graph, Value, Value], Value]:
    def lowering(g: Graph, x: Value, other: Value) -> Value:
        return emit(g, is_nonzero(g, x), is_nonzero(g, other))

    return lowering


_AND = _bitwise(tfl.logical_and, _bits_and)
_OR = _bitwise(tfl.logical_or, _bits_or)
_XOR = _bitwise(tfl.not_equal, _bits_xor)

lowers(
    aten.bitwise_and.Tensor,
    aten.bitwise_and.Scalar,
    aten.bitwise_and.Scalar_Tensor,
    aten.__and__.Tensor,
    aten.__and__.Scalar,
)(_AND)
lowers(
    aten.bitwise_or.Tensor,
    aten.bitwise_or.Scalar,
    aten.bitwise_or.Scalar_Tensor,
    aten.__or__.Tensor,
    aten.__or__.Scalar,
)(_OR)
lowers(
    aten.bitwise_xor.Tensor,
    aten.bitwise_xor.Scalar,
    aten.bitwise_xor.Scalar_Tensor,
    aten.__xor__.Tensor,
    aten.__xor__.Scalar,
)(_XOR)
lowers(aten.logical_and.default)(_logical(tfl.logical_and))
lowers(aten.logical_or.default)(_logical(tfl.logical_or))
lowers(aten.logical_xor.default)(_logical(tfl.not_equal))


@lowers(aten.logical_not.default)
def logical_not(g: Graph, x: Value) -> Value:
    """Where x is zero."""
    return tfl.logical_not(g, is_nonzero(g, x))


@lowers(aten.bitwise_not.default)
def bitwise_not(g: Graph, x: Value) -> Value:
    """Every bit flipped: -x - 1."""
    if x.dtype == DType.BOOL:
        return tfl.logical_not(g, x)
    return computed_wide(g, x, lambda x: tfl.sub(g, number(x, -1), x))


@lowers(
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
    aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor,
    aten.__lshift__.Scalar,
)
def bitwise_left_shift(g: Graph, x: Operand, other: Operand) -> Value:
    """x times 2 ** other, for shifts of fewer bits than x has."""
    return computed(g, _shifted_left, x, other)


@lowers(
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
    aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor,
    aten.__rshift__.Scalar,
)
def bitwise_right_shift(g: Graph, x: Operand, other: Operand) -> Value:
    """x over 2 ** other, rounded down, for shifts of fewer bits than x has."""
    return computed(g, _shifted_right, x, other)


def _shifted_left(g: Graph, x: Value, y: Value) -> Value:
    if x.dtype == DType.INT64 or _is_number(y):
        return tfl.mul(g, x, _power_of_two(g, y))
    shape = dims.broadcast(x.shape, y.shape)
    return tfl.stablehlo_shift_left(g, broadcast(g, x, shape), broadcast(g, y, shape))


def _shifted_right(g: Graph, x: Value, y: Value) -> Value:
    if x.dtype == DType.INT32:
        return tfl.right_shift(g, x, y)
    return floor_quotient(g, x, _power_of_two(g, y))


def _is_number(y: Value) -> bool:
    return y.const is not None and y.const.size == 1


def _power_of_two(g: Graph, y: Value) -> Value:
    """2 ** y; as a constant where y is one, wrapped around like the sign bit."""
    if not _is_number(y):
        return integer_power(g, number(y, 2), y)
    bits, shift = y.dtype.bits, int(y.read().item())
    if not 0 <= shift < bits:
        return number(y, 0)
    return const(1 << shift if shift < bits - 1 else -(1 << shift), y.dtype)
