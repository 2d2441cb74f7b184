"""Exponentials, logarithms, trigonometric and error functions, in floats also of integers."""

import math
from collections.abc import Callable, Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

_LARGEST, _SMALLEST = 3.4028234663852886e38, 1.1754943508222875e-38  # normal float32

# erf(x) = tanh(x * P(x * x)): a least-squares fit on [0, 4], error below 1.4e-7 everywhere.
_ERF = (
    1.128379225730896,
    0.10276985913515091,
    -0.0001952832390088588,
    -0.0006148435641080141,
    8.45992544782348e-05,
    -4.795256700163009e-06,
    2.7650129297285275e-08,
    5.418507864618505e-09,
)
# erfc(x) = exp(-x * x) * t * P(t) with t = 1 / (1 + x / 2): a least-squares fit on [0, 10],
# relative error below 3e-7.
_ERFC = (
    0.28208643198013306,
    0.2823750078678131,
    0.2431057244539261,
    0.20267991721630096,
    -0.026610814034938812,
    0.2780471444129944,
    -0.4871830940246582,
    0.28456681966781616,
    -0.059067219495773315,
)


def f32(value: float) -> Value:
    """A float32 scalar."""
    return const(value, DType.FLOAT32)


def polynomial(g: Graph, x: Value, coefficients: Sequence[float]) -> Value:
    """coefficients[i] * x**i summed, by Horner's rule."""
    *lower, result = map(f32, coefficients)
    for c in reversed(lower):
        result = tfl.add(g, tfl.mul(g, result, x), c)
    return result


def _float_unary(emit: Callable[[Graph, Value], Value]) -> Callable[[Graph, Value], Value]:
    def lowering(g: Graph, x: Value) -> Value:
        return emit(g, as_float(g, x))

    return lowering


def expm1(g: Graph, x: Value) -> Value:
    """exp(x) - 1, accurate near 0: ELU is that below 0, and exp(x) - 1 = (1 - exp(-x)) exp(x)."""
    above = tfl.relu(g, x)
    positive = tfl.mul(g, tfl.elu(g, tfl.neg(g, above)), tfl.exp(g, above))
    return tfl.sub(g, tfl.elu(g, tfl.minimum(g, f32(0.0), x)), positive)


def log1p(g: Graph, x: Value) -> Value:
    """log(1 + x): what 1 + x rounds off is added back at the slope there.

    The error is that of LOG, about 1e-7, and none where 1 + x is 1.
    """
    u = tfl.add(g, x, f32(1.0))
    lost = tfl.sub(g, tfl.minimum(g, f32(_LARGEST), x), tfl.sub(g, u, f32(1.0)))
    not_zero = tfl.maximum(g, f32(_SMALLEST), u)  # 0 / 0 at x = -1 otherwise
    return tfl.add(g, tfl.log(g, u), tfl.div(g, lost, not_zero))


def log2(g: Graph, x: Value) -> Value:
    """The logarithm to base 2."""
    return tfl.mul(g, tfl.log(g, x), f32(1 / math.log(2)))


def log10(g: Graph, x: Value) -> Value:
    """The logarithm to base 10."""
    return tfl.mul(g, tfl.log(g, x), f32(1 / math.log(10)))


def exp2(g: Graph, x: Value) -> Value:
    """2 ** x; POW is exact at whole numbers, where exp(x * log 2) is not."""
    return tfl.pow(g, f32(2.0), x)


def tan(g: Graph, x: Value) -> Value:
    """Sin / cos."""
    return tfl.div(g, tfl.sin(g, x), tfl.cos(g, x))


def _cosine_of_asin(g: Graph, x: Value) -> Value:
    """sqrt(1 - x * x), accurate near 1; NaN outside [-1, 1]."""
    one = f32(1.0)
    return tfl.sqrt(g, tfl.mul(g, tfl.sub(g, one, x), tfl.add(g, x, one)))


def asin(g: Graph, x: Value) -> Value:
    """The angle whose sine is x."""
    return tfl.atan2(g, x, _cosine_of_asin(g, x))


def acos(g: Graph, x: Value) -> Value:
    """The angle whose cosine is x."""
    return tfl.atan2(g, _cosine_of_asin(g, x), x)


def atan(g: Graph, x: Value) -> Value:
    """The angle whose tangent is x."""
    return tfl.atan2(g, x, filled(g, x.shape, 1.0, DType.FLOAT32))


def sinh(g: Graph, x: Value) -> Value:
    """(exp(x) - exp(-x)) / 2, accurate near 0."""
    up, down = expm1(g, x), expm1(g, tfl.neg(g, x))
    return tfl.mul(g, tfl.sub(g, up, down), f32(0.5))


def cosh(g: Graph, x: Value) -> Value:
    """(exp(x) + exp(-x)) / 2."""
    return tfl.mul(g, tfl.add(g, tfl.exp(g, x), tfl.exp(g, tfl.neg(g, x))), f32(0.5))


def asinh(g: Graph, x: Value) -> Value:
    """log(|x| + sqrt(x * x + 1)) with x's sign, accurate near 0."""
    size, square = tfl.abs(g, x), tfl.square(g, x)
    root = tfl.sqrt(g, tfl.add(g, square, f32(1.0)))
    excess = tfl.div(g, square, tfl.add(g, root, f32(1.0)))
    return tfl.mul(g, log1p(g, tfl.add(g, size, excess)), tfl.sign(g, x))


def acosh(g: Graph, x: Value) -> Value:
    """log(x + sqrt(x * x - 1)), accurate near 1; NaN below."""
    t = tfl.sub(g, x, f32(1.0))
    root = tfl.sqrt(g, tfl.mul(g, t, tfl.add(g, t, f32(2.0))))
    return log1p(g, tfl.add(g, t, root))


def atanh(g: Graph, x: Value) -> Value:
    """(log(1 + x) - log(1 - x)) / 2."""
    difference = tfl.sub(g, log1p(g, x), log1p(g, tfl.neg(g, x)))
    return tfl.mul(g, difference, f32(0.5))


def erf(g: Graph, x: Value) -> Value:
    """The error function."""
    return tfl.tanh(g, tfl.mul(g, x, polynomial(g, tfl.square(g, x), _ERF)))


def erfc(g: Graph, x: Value) -> Value:
    """1 - erf(x), accurate also where that is tiny."""
    size = tfl.abs(g, x)
    t = tfl.div(g, f32(1.0), tfl.add(g, tfl.mul(g, size, f32(0.5)), f32(1.0)))
    tail = tfl.mul(
        g, tfl.exp(g, tfl.neg(g, tfl.square(g, x))), tfl.mul(g, t, polynomial(g, t, _ERFC))
    )
    return tfl.select_v2(g, tfl.less(g, x, f32(0.0)), tfl.sub(g, f32(2.0), tail), tail)


def erfinv(g: Graph, x: Value) -> Value:
    """The inverse of erf: M. Giles, Approximating the erfinv function (2010), single precision."""
    one = f32(1.0)
    w = tfl.neg(g, tfl.log(g, tfl.mul(g, tfl.sub(g, one, x), tfl.add(g, x, one))))
    centre = polynomial(g, tfl.sub(g, w, f32(2.5)), _ERFINV_CENTRE)
    tail = polynomial(g, tfl.sub(g, tfl.sqrt(g, w), f32(3.0)), _ERFINV_TAIL)
    factor = tfl.select_v2(g, tfl.less(g, w, f32(5.0)), centre, tail)
    finite = tfl.mul(g, x, factor)
    at_end = tfl.equal(g, tfl.abs(g, x), one)
    return tfl.select_v2(g, at_end, tfl.mul(g, x, f32(math.inf)), finite)


_ERFINV_CENTRE = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_ERFINV_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)

lowers.one_to_one(
    {
        op: _float_unary(emit)
        for op, emit in {
            aten.acos.default: acos,
            aten.acosh.default: acosh,
            aten.asin.default: asin,
            aten.asinh.default: asinh,
            aten.atan.default: atan,
            aten.atanh.default: atanh,
            aten.cos.default: tfl.cos,
            aten.cosh.default: cosh,
            aten.erf.default: erf,
            aten.erfc.default: erfc,
            aten.erfinv.default: erfinv,
            aten.exp.default: tfl.exp,
            aten.exp2.default: exp2,
            aten.expm1.default: expm1,
            aten.log.default: tfl.log,
            aten.log10.default: log10,
            aten.log1p.default: log1p,
            aten.log2.default: log2,
            aten.sin.default: tfl.sin,
            aten.sinh.default: sinh,
            aten.tan.default: tan,
        }.items()
    }
)


@lowers(aten.angle.default)
def angle(g: Graph, x: Value) -> Value:
    """Pi where x is negative, else 0; NaN stays."""
    x = as_float(g, x)
    number = tfl.select_v2(g, tfl.equal(g, x, x), f32(0.0), x)
    return tfl.select_v2(g, tfl.less(g, x, f32(0.0)), f32(math.pi), number)


@lowers(aten.atan2.default, aten.arctan2.default)
def atan2(g: Graph, x: Value, other: Value) -> Value:
    """The angle of the point (other, x); ATAN2 broadcasts nothing."""
    y, x = as_float(g, x), as_float(g, other)
    shape = dims.broadcast(y.shape, x.shape)
    return tfl.atan2(g, broadcast(g, y, shape), broadcast(g, x, shape))
