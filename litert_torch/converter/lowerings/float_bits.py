"""Functions of a float32's bits: sign, 8 bits of exponent plus 127, 23 of fraction."""

import math

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

_FRACTION = 1 << 23
_HALF = 126  # the exponent's bits of 0.5
_SMALLEST_NORMAL = 2.0**-126


def _i32(value: int) -> Value:
    return const(value, DType.INT32)


@lowers(aten.frexp.Tensor)
def frexp(g: Graph, x: Value) -> list[Value]:
    """Mantissas of magnitude 0.5 to 1 and int32 exponents.

    Zero, infinity, NaN and numbers below 2**-126 are their own mantissa, of exponent 0.
    """
    x = as_float(g, x)
    size = tfl.abs(g, x)
    bits = tfl.bitcast(g, size, DType.INT32)
    exponent = tfl.sub(g, tfl.floor_div(g, bits, _i32(_FRACTION)), _i32(_HALF))
    mantissa = tfl.bitcast(
        g, tfl.sub(g, bits, tfl.mul(g, exponent, _i32(_FRACTION))), DType.FLOAT32
    )
    mantissa = tfl.mul(g, mantissa, tfl.sign(g, x))
    at_least = tfl.greater_equal(g, size, f32(_SMALLEST_NORMAL))
    plain = tfl.logical_and(g, at_least, tfl.less(g, size, f32(math.inf)))
    return [
        tfl.select_v2(g, plain, mantissa, x),
        tfl.select_v2(g, plain, exponent, _i32(0)),
    ]


@lowers(aten.nextafter.default)
def nextafter(g: Graph, x: Value, other: Value) -> Value:
    """The float32 next to x in the direction of `other`."""
    shape = dims.broadcast(x.shape, other.shape)
    x, other = broadcast(g, as_float(g, x), shape), broadcast(g, as_float(g, other), shape)
    bits = tfl.bitcast(g, x, DType.INT32)
    away = tfl.equal(g, tfl.less(g, x, other), tfl.greater(g, x, f32(0.0)))
    step = tfl.select_v2(g, away, _i32(1), _i32(-1))
    moved = tfl.bitcast(g, tfl.add(g, bits, step), DType.FLOAT32)
    smallest = tfl.select_v2(g, tfl.greater(g, other, f32(0.0)), _i32(1), _i32(-(1 << 31) + 1))
    smallest = tfl.bitcast(g, broadcast(g, smallest, shape), DType.FLOAT32)
    moved = tfl.select_v2(g, tfl.equal(g, x, f32(0.0)), smallest, moved)
    moved = tfl.select_v2(g, tfl.equal(g, x, other), other, moved)
    is_number = tfl.logical_and(g, tfl.equal(g, x, x), tfl.equal(g, other, other))
    return tfl.select_v2(g, is_number, moved, tfl.add(g, x, other))
