"""Making complex numbers, taking them apart, and functions of one of them."""

from typing import Any

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.complex_values import ComplexValue, from_interleaved, interleaved
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import casting, lowers, lowers_complex
from litert_torch.converter.lowerings.complex_arithmetic import squared_abs
from litert_torch.converter.lowerings.complex_parts import as_complex
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten


@lowers_complex(aten.view_as_complex.default)
def view_as_complex(g: Graph, x: Value) -> ComplexValue:
    """[..., 2] as a complex tensor."""
    return from_interleaved(g, x)


@lowers_complex(aten.view_as_real.default)
def view_as_real(g: Graph, x: ComplexValue) -> Value:
    """A complex tensor as [..., 2]."""
    return interleaved(g, x)


@lowers_complex(aten.complex.default)
def complex_(g: Graph, real: Value, imag: Value) -> ComplexValue:
    """Real + i * imag."""
    shape = dims.broadcast(real.shape, imag.shape)
    return ComplexValue(broadcast(g, real, shape), broadcast(g, imag, shape))


@lowers_complex(aten.polar.default)
def polar(g: Graph, abs: Value, angle: Value) -> ComplexValue:
    """Abs * exp(i * angle)."""
    real, imag = tfl.mul(g, abs, tfl.cos(g, angle)), tfl.mul(g, abs, tfl.sin(g, angle))
    return ComplexValue(real, imag)


@lowers(aten.real.default, aten.conj.default, aten._conj.default, aten.conj_physical.default)
def of_real(g: Graph, x: Value) -> Value:
    """x, which is real already."""
    return x


@lowers_complex(aten.real.default)
def real(g: Graph, x: ComplexValue) -> Value:
    """The real part."""
    return x.real


@lowers_complex(aten.imag.default)
def imag(g: Graph, x: ComplexValue) -> Value:
    """The imaginary part."""
    return x.imag


@lowers_complex(
    aten.conj.default,
    aten._conj.default,
    aten._conj_physical.default,
    aten.conj_physical.default,
)
def conj(g: Graph, x: ComplexValue) -> ComplexValue:
    """The imaginary part negated."""
    return ComplexValue(x.real, tfl.neg(g, x.imag))


@lowers_complex(aten.abs.default, aten.absolute.default)
def abs_(g: Graph, x: ComplexValue) -> Value:
    """The distance from 0; the parts' squares must not overflow (1e19)."""
    return tfl.sqrt(g, squared_abs(g, x))


@lowers_complex(aten.angle.default)
def angle(g: Graph, x: ComplexValue) -> Value:
    """The angle in (-pi, pi]."""
    return tfl.atan2(g, x.imag, x.real)


@lowers_complex(aten.sgn.default)
def sgn(g: Graph, x: ComplexValue) -> ComplexValue:
    """x / abs(x), and 0 at 0."""
    size = abs_(g, x)
    is_zero = tfl.equal(g, size, const(0.0, DType.FLOAT32))
    divisor = tfl.select_v2(g, is_zero, const(1.0, DType.FLOAT32), size)
    return x.map(lambda part: tfl.div(g, part, divisor))


@lowers_complex(aten.exp.default)
def exp(g: Graph, x: ComplexValue) -> ComplexValue:
    """The absolute value is that of exp of the real part, the angle the imaginary part."""
    return polar(g, tfl.exp(g, x.real), x.imag)


@lowers_complex(aten.log.default)
def log(g: Graph, x: ComplexValue) -> ComplexValue:
    """The logarithm of the absolute value, and the angle."""
    half = const(0.5, DType.FLOAT32)
    return ComplexValue(tfl.mul(g, tfl.log(g, squared_abs(g, x)), half), angle(g, x))


@lowers_complex(aten.sqrt.default)
def sqrt(g: Graph, x: ComplexValue) -> ComplexValue:
    """The root with an angle in (-pi/2, pi/2]."""
    half = const(0.5, DType.FLOAT32)
    return polar(g, tfl.sqrt(g, abs_(g, x)), tfl.mul(g, angle(g, x), half))


@lowers_complex(aten.eq.Tensor, aten.eq.Scalar)
def eq(g: Graph, x: Any, other: Any) -> Value:
    """Where both parts are equal."""
    a, b = (_dense(as_complex(g, v)) for v in (x, other))
    return tfl.logical_and(g, tfl.equal(g, a.real, b.real), tfl.equal(g, a.imag, b.imag))


def _dense(x: ComplexValue | complex) -> ComplexValue:
    if isinstance(x, ComplexValue):
        return x
    return ComplexValue(const(x.real, DType.FLOAT32), const(x.imag, DType.FLOAT32))


def _converted(g: Graph, x: ComplexValue | Value, dtype: torch.dtype | None) -> Any:
    """x as `dtype`: PyTorch drops the imaginary part on the way to real numbers."""
    if dtype is None or dtype.is_complex:
        return as_complex(g, x)
    real = x.real if isinstance(x, ComplexValue) else x
    return casting.to_dtype(g, real, dtype)


@lowers_complex(aten.to.dtype)
def to_dtype(
    g: Graph,
    x: ComplexValue | Value,
    dtype: torch.dtype,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """To and from complex."""
    return _converted(g, x, dtype)


@lowers_complex(aten.to.device)
def to_device(
    g: Graph,
    x: ComplexValue | Value,
    device: torch.device,
    dtype: torch.dtype,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """To and from complex; a file has no devices."""
    return _converted(g, x, dtype)


@lowers_complex(aten.to.dtype_layout)
def to_dtype_layout(
    g: Graph,
    x: ComplexValue | Value,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """To and from complex; a file has no devices."""
    return _converted(g, x, dtype)


@lowers_complex(aten._to_copy.default)
def to_copy(
    g: Graph,
    x: ComplexValue | Value,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    """To and from complex."""
    return _converted(g, x, dtype)
