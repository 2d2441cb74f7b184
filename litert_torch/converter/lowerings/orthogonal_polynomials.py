"""Chebyshev, Hermite, Laguerre and Legendre polynomials of degree n, itself a number or a tensor.

Chebyshev polynomials have closed forms. The others are summed by their recurrences, up to degree 32
where n is a tensor; beyond, the result is NaN.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.elementwise import acos, acosh, cosh, f32, sinh
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.series import linear

aten = torch.ops.aten

_MOST = 32

Step = Callable[[Graph, Value, int, Value, Value], Value]
Polynomial = Callable[[Graph, Value, Value], Value]


def _degree(g: Graph, n: Any) -> Value:
    """N as PyTorch takes it: towards zero."""
    if not isinstance(n, Value):
        return f32(float(int(n)))
    n = as_float(g, n)
    return tfl.mul(g, tfl.floor(g, tfl.abs(g, n)), tfl.sign(g, n))


def _alternating(g: Graph, n: Value) -> Value:
    """(-1) ** n."""
    half = tfl.mul(g, n, f32(0.5))
    odd = tfl.sub(g, half, tfl.floor(g, half))
    return linear(g, odd, -4.0, 1.0)


def _where_negative(g: Graph, n: Value, value: Value) -> Value:
    return tfl.select_v2(g, tfl.less(g, n, f32(0.0)), f32(0.0), value)


def _signed(g: Graph, x: Value, n: Value, value: Value) -> Value:
    """The value at |x| as that at x: even or odd as n is."""
    other = tfl.mul(g, value, _alternating(g, n))
    return tfl.select_v2(g, tfl.less(g, x, f32(0.0)), other, value)


def _t(g: Graph, x: Value, n: Value) -> Value:
    """cos(n acos x) within [-1, 1], cosh(n acosh x) beyond."""
    size = tfl.abs(g, x)
    inside = tfl.cos(g, tfl.mul(g, n, acos(g, tfl.minimum(g, f32(1.0), size))))
    outside = cosh(g, tfl.mul(g, n, acosh(g, tfl.maximum(g, f32(1.0), size))))
    value = tfl.select_v2(g, tfl.less_equal(g, size, f32(1.0)), inside, outside)
    return _signed(g, x, n, value)


def _u(g: Graph, x: Value, n: Value) -> Value:
    """sin((n + 1) acos x) / sin(acos x), or as that by sinh; n + 1 at 1."""
    size, m = tfl.abs(g, x), tfl.add(g, n, f32(1.0))
    angle = acos(g, tfl.minimum(g, f32(1.0), size))
    inside = tfl.div(g, tfl.sin(g, tfl.mul(g, m, angle)), tfl.sin(g, angle))
    area = acosh(g, tfl.maximum(g, f32(1.0), size))
    outside = tfl.div(g, sinh(g, tfl.mul(g, m, area)), sinh(g, area))
    value = tfl.select_v2(g, tfl.less(g, size, f32(1.0)), inside, outside)
    value = tfl.select_v2(g, tfl.equal(g, size, f32(1.0)), m, value)
    return _signed(g, x, n, value)


def _v(g: Graph, x: Value, n: Value) -> Value:
    """The third kind: U(n) - U(n - 1)."""
    return tfl.sub(g, _u(g, x, n), _u(g, x, tfl.sub(g, n, f32(1.0))))


def _w(g: Graph, x: Value, n: Value) -> Value:
    """The fourth kind: U(n) + U(n - 1)."""
    return tfl.add(g, _u(g, x, n), _u(g, x, tfl.sub(g, n, f32(1.0))))


def _shifted(polynomial: Polynomial) -> Polynomial:
    return lambda g, x, n: polynomial(g, linear(g, x, 2.0, -1.0), n)


def _recurrent(first: Callable[[Graph, Value], Value], step: Step) -> Polynomial:
    """P(0) = 1, P(1) = first(x), P(k + 1) = step(x, k, P(k), P(k - 1))."""

    def polynomial(g: Graph, x: Value, n: Value) -> Value:
        most = int(n.read()) if n.const is not None and n.rank == 0 else _MOST
        shape = dims.broadcast(x.shape, n.shape)
        before, last = f32(1.0), first(g, x)
        value = filled(g, shape, math.nan, x.dtype)
        for k in range(most + 1):
            if k > 1:
                before, last = last, step(g, x, k - 1, last, before)
            value = tfl.select_v2(g, tfl.equal(g, n, f32(float(k))), last if k else before, value)
        return value

    return polynomial


def _hermite_h(g: Graph, x: Value, k: int, last: Value, before: Value) -> Value:
    """2 x H(k) - 2 k H(k - 1)."""
    up = tfl.mul(g, tfl.mul(g, x, f32(2.0)), last)
    return tfl.sub(g, up, tfl.mul(g, before, f32(2.0 * k)))


def _hermite_he(g: Graph, x: Value, k: int, last: Value, before: Value) -> Value:
    """x He(k) - k He(k - 1)."""
    return tfl.sub(g, tfl.mul(g, x, last), tfl.mul(g, before, f32(float(k))))


def _laguerre(g: Graph, x: Value, k: int, last: Value, before: Value) -> Value:
    """((2 k + 1 - x) L(k) - k L(k - 1)) / (k + 1)."""
    up = tfl.mul(g, linear(g, x, -1.0, 2.0 * k + 1), last)
    down = tfl.mul(g, before, f32(float(k)))
    return tfl.mul(g, tfl.sub(g, up, down), f32(1 / (k + 1)))


def _legendre(g: Graph, x: Value, k: int, last: Value, before: Value) -> Value:
    """((2 k + 1) x P(k) - k P(k - 1)) / (k + 1)."""
    up = tfl.mul(g, tfl.mul(g, x, f32(2.0 * k + 1)), last)
    down = tfl.mul(g, before, f32(float(k)))
    return tfl.mul(g, tfl.sub(g, up, down), f32(1 / (k + 1)))


_POLYNOMIALS: dict[Any, Polynomial] = {
    aten.special_chebyshev_polynomial_t: _t,
    aten.special_chebyshev_polynomial_u: _u,
    aten.special_chebyshev_polynomial_v: _v,
    aten.special_chebyshev_polynomial_w: _w,
    aten.special_shifted_chebyshev_polynomial_t: _shifted(_t),
    aten.special_shifted_chebyshev_polynomial_u: _shifted(_u),
    aten.special_shifted_chebyshev_polynomial_v: _shifted(_v),
    aten.special_shifted_chebyshev_polynomial_w: _shifted(_w),
    aten.special_hermite_polynomial_h: _recurrent(lambda g, x: linear(g, x, 2.0, 0.0), _hermite_h),
    aten.special_hermite_polynomial_he: _recurrent(lambda g, x: x, _hermite_he),
    aten.special_laguerre_polynomial_l: _recurrent(lambda g, x: linear(g, x, -1.0, 1.0), _laguerre),
    aten.special_legendre_polynomial_p: _recurrent(lambda g, x: x, _legendre),
}


def _lowering(polynomial: Polynomial) -> Callable[[Graph, Any, Any], Value]:
    def lowering(g: Graph, x: Any, n: Any) -> Value:
        degree = _degree(g, n)
        return _where_negative(g, degree, polynomial(g, as_float(g, x), degree))

    return lowering


for _packet, _polynomial in _POLYNOMIALS.items():
    lowers(_packet.default, _packet.x_scalar, _packet.n_scalar)(_lowering(_polynomial))
