"""Products, quotients and matrix products of complex numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.complex_values import ComplexValue
from litert_torch.converter.dims import Shape
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import linear, lowers_complex
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.views import broadcast
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

Operand = Any  # ComplexValue, Value, or a Python number
Product = Callable[[Graph, Value, Value], Value]

_MOST_FACTORS = 8  # of a power written as products


@dataclass(frozen=True, eq=False)
class _Parts:
    """Real and imaginary part of an operand; None is zero everywhere."""

    real: Value | None
    imag: Value | None
    shape: Shape


def _parts(g: Graph, x: Operand) -> _Parts:
    if isinstance(x, ComplexValue):
        return _Parts(x.real, x.imag, x.shape)
    if isinstance(x, Value):
        return _Parts(as_float(g, x), None, x.shape)
    number = complex(x)
    real, imag = (const(v, DType.FLOAT32) if v != 0 else None for v in (number.real, number.imag))
    return _Parts(real, imag, ())


def _times(g: Graph, emit: Product, x: Value | None, y: Value | None) -> Value | None:
    return None if x is None or y is None else emit(g, x, y)


def _sum(g: Graph, x: Value | None, y: Value | None) -> Value | None:
    return y if x is None else x if y is None else tfl.add(g, x, y)


def _difference(g: Graph, x: Value | None, y: Value | None) -> Value | None:
    if y is None:
        return x
    return tfl.neg(g, y) if x is None else tfl.sub(g, x, y)


def _complete(g: Graph, real: Value | None, imag: Value | None, shape: Shape) -> ComplexValue:
    parts = (filled(g, shape, 0.0, DType.FLOAT32) if v is None else v for v in (real, imag))
    return ComplexValue(*(broadcast(g, v, shape) for v in parts))


def product(g: Graph, emit: Product, x: Operand, y: Operand) -> tuple[Value | None, Value | None]:
    """Real and imaginary part of a bilinear `emit` of x and y; None is zero."""
    a, b = _parts(g, x), _parts(g, y)
    real = _difference(g, _times(g, emit, a.real, b.real), _times(g, emit, a.imag, b.imag))
    imag = _sum(g, _times(g, emit, a.real, b.imag), _times(g, emit, a.imag, b.real))
    return real, imag


@lowers_complex(aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor)
def mul(g: Graph, x: Operand, other: Operand) -> ComplexValue:
    """x * other."""
    shape = dims.broadcast(*(_parts(g, v).shape for v in (x, other)))
    return _complete(g, *product(g, tfl.mul, x, other), shape)


@lowers_complex(aten.div.Tensor, aten.div.Scalar, aten.divide.Tensor, aten.true_divide.Tensor)
def div(g: Graph, x: Operand, other: Operand) -> ComplexValue:
    """x / other, as x * conj(other) / abs(other)**2, which may overflow beyond 1e19."""
    if not isinstance(other, (ComplexValue, Value)):
        return mul(g, x, 1 / complex(other))
    if isinstance(other, Value):
        divisor = as_float(g, other)
        a = _parts(g, x)
        shape = dims.broadcast(a.shape, other.shape)
        return _complete(
            g, _times(g, tfl.div, a.real, divisor), _times(g, tfl.div, a.imag, divisor), shape
        )
    return mul(g, x, reciprocal(g, other))


@lowers_complex(aten.reciprocal.default)
def reciprocal(g: Graph, x: ComplexValue) -> ComplexValue:
    """conj(x) / abs(x)**2."""
    size = squared_abs(g, x)
    return ComplexValue(tfl.div(g, x.real, size), tfl.div(g, tfl.neg(g, x.imag), size))


def squared_abs(g: Graph, x: ComplexValue) -> Value:
    """abs(x)**2."""
    return tfl.add(g, tfl.square(g, x.real), tfl.square(g, x.imag))


@lowers_complex(aten.square.default)
def square(g: Graph, x: ComplexValue) -> ComplexValue:
    """x * x."""
    return mul(g, x, x)


@lowers_complex(aten.pow.Tensor_Scalar)
def pow_scalar(g: Graph, x: ComplexValue, exponent: complex) -> ComplexValue:
    """x to a whole power, as products."""
    count = int(exponent.real)
    if count != exponent or not 0 < abs(count) <= _MOST_FACTORS:
        raise UnsupportedCaseError(
            f"raises complex numbers to the power {exponent}; use whole powers up to "
            f"{_MOST_FACTORS}, or exp(log(x) * p)"
        )
    result = x
    for _ in range(abs(count) - 1):
        result = mul(g, result, x)
    return result if count > 0 else reciprocal(g, result)


@lowers_complex(aten.matmul.default)
def matmul(g: Graph, x: Operand, other: Operand) -> ComplexValue:
    """x @ other."""
    real, imag = product(g, linear.matmul, x, other)
    known = real if real is not None else imag
    assert known is not None
    return _complete(g, real, imag, known.shape)


@lowers_complex(aten.mm.default)
def mm(g: Graph, x: Operand, mat2: Operand) -> ComplexValue:
    """x @ mat2."""
    return matmul(g, x, mat2)


@lowers_complex(aten.bmm.default)
def bmm(g: Graph, x: Operand, mat2: Operand) -> ComplexValue:
    """x @ mat2."""
    return matmul(g, x, mat2)


@lowers_complex(aten.mv.default)
def mv(g: Graph, x: Operand, vec: Operand) -> ComplexValue:
    """x @ vec."""
    return matmul(g, x, vec)


@lowers_complex(aten.linear.default)
def linear_(
    g: Graph, x: Operand, weight: ComplexValue, bias: ComplexValue | None = None
) -> ComplexValue:
    """x @ weight.T + bias."""
    y = matmul(g, x, weight.map(lambda v: linear.swapped(g, v)))
    if bias is None:
        return y
    return ComplexValue(tfl.add(g, y.real, bias.real), tfl.add(g, y.imag, bias.imag))
