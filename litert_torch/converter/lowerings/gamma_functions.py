"""The gamma function's logarithm and derivatives, and the Hurwitz zeta function.

Arguments are shifted up until Stirling's and Euler-Maclaurin's series (Abramowitz and Stegun
6.1.41, 6.3.18, 23.2) give seven digits; negative ones are reflected.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.elementwise import f32, polynomial
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.series import reciprocal

aten = torch.ops.aten

_SHIFT = 8  # from where on the asymptotic series hold
_ZETA_TERMS = 20  # summed one by one, so that the zeta function is right from -10 on
_STIRLING = (1 / 12, -1 / 360, 1 / 1260)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252)
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240)  # B(2k) / (2k)!


def _is_whole(g: Graph, x: Value) -> Value:
    return tfl.equal(g, tfl.floor(g, x), x)


def _sine_and_cosine(g: Graph, x: Value) -> tuple[Value, Value]:
    """Of pi x, by the distance to the nearest whole number; both with the sign of that number."""
    angle = tfl.mul(g, tfl.sub(g, x, tfl.round(g, x)), f32(math.pi))
    return tfl.sin(g, angle), tfl.cos(g, angle)


@lowers(aten.lgamma.default, aten.special_gammaln.default)
def lgamma(g: Graph, x: Value) -> Value:
    """Log |gamma(x)|; infinite at 0, -1, -2, ..."""
    x = as_float(g, x)
    negative = tfl.less(g, x, f32(0.5))
    value = _log_gamma(g, tfl.select_v2(g, negative, tfl.sub(g, f32(1.0), x), x))
    sine, _ = _sine_and_cosine(g, x)
    reflected = tfl.log(g, reciprocal(g, tfl.abs(g, sine), math.pi))
    reflected = tfl.sub(g, reflected, value)
    poles = tfl.logical_and(g, tfl.less_equal(g, x, f32(0.0)), _is_whole(g, x))
    value = tfl.select_v2(g, negative, reflected, value)
    return tfl.select_v2(g, poles, f32(math.inf), value)


def _log_gamma(g: Graph, x: Value) -> Value:
    """Of x >= 0.5: Stirling's series at x + 8, or at x where that is large."""
    small = tfl.less(g, x, f32(float(_SHIFT)))
    at = tfl.select_v2(g, small, tfl.add(g, x, f32(float(_SHIFT))), x)
    product = tfl.minimum(g, f32(float(_SHIFT)), x)
    for k in range(1, _SHIFT):
        product = tfl.mul(g, product, tfl.add(g, tfl.minimum(g, f32(8.0), x), f32(float(k))))
    inverse = reciprocal(g, at)
    tail = tfl.mul(g, inverse, polynomial(g, tfl.square(g, inverse), _STIRLING))
    log = tfl.log(g, at)
    leading = tfl.mul(g, tfl.sub(g, log, f32(1.0)), tfl.sub(g, at, f32(0.5)))
    total = tfl.add(g, tfl.add(g, leading, tail), f32(0.5 * math.log(2 * math.pi) - 0.5))
    return tfl.select_v2(g, small, tfl.sub(g, total, tfl.log(g, product)), total)


@lowers(aten.digamma.default, aten.special_digamma.default, aten.special_psi.default)
def digamma(g: Graph, x: Value) -> Value:
    """The derivative of log gamma; -inf at 0, NaN at -1, -2, ..."""
    x = as_float(g, x)
    negative = tfl.less(g, x, f32(0.0))
    value = _digamma(g, tfl.select_v2(g, negative, tfl.sub(g, f32(1.0), x), x))
    sine, cosine = _sine_and_cosine(g, x)
    cotangent = tfl.div(g, tfl.mul(g, cosine, f32(math.pi)), sine)
    poles = tfl.select_v2(g, _is_whole(g, x), f32(math.nan), tfl.sub(g, value, cotangent))
    value = tfl.select_v2(g, negative, poles, value)
    return tfl.select_v2(g, tfl.equal(g, x, f32(0.0)), tfl.neg(g, reciprocal(g, x)), value)


def _digamma(g: Graph, x: Value) -> Value:
    """Of x >= 0."""
    steps: Value | None = None
    for k in range(_SHIFT):
        step = reciprocal(g, tfl.add(g, x, f32(float(k))))
        steps = step if steps is None else tfl.add(g, steps, step)
    assert steps is not None
    at = tfl.add(g, x, f32(float(_SHIFT)))
    square = tfl.square(g, reciprocal(g, at))
    tail = tfl.mul(g, square, polynomial(g, square, _DIGAMMA))
    half = reciprocal(g, at, 0.5)
    series = tfl.sub(g, tfl.sub(g, tfl.log(g, at), half), tail)
    return tfl.sub(g, series, steps)


@lowers(aten.polygamma.default, aten.special_polygamma.default)
def polygamma(g: Graph, n: int, x: Value) -> Value:
    """The n-th derivative of digamma: (-1)**(n + 1) n! zeta(n + 1, x), reflected below 0.

    psi(n, x) = (-1)**n psi(n, 1 - x) - (the n-th derivative of pi / tan(pi x)).
    """
    if n == 0:
        return digamma(g, x)
    x = as_float(g, x)
    sign = 1.0 if n % 2 else -1.0
    negative = tfl.less(g, x, f32(0.0))
    at = tfl.select_v2(g, negative, tfl.sub(g, f32(1.0), x), x)
    value = tfl.mul(g, _zeta(g, n + 1, at, 9), f32(sign * math.factorial(n)))
    sine, cosine = _sine_and_cosine(g, x)
    cotangent = tfl.div(g, cosine, sine)
    slope = polynomial(g, cotangent, _cotangent_derivative(n))
    slope = tfl.mul(g, slope, f32(math.pi ** (n + 1)))
    reflected = tfl.sub(g, tfl.mul(g, value, f32(-sign)), slope)
    poles = tfl.logical_and(g, tfl.less_equal(g, x, f32(0.0)), _is_whole(g, x))
    value = tfl.select_v2(g, negative, reflected, value)
    return tfl.select_v2(g, poles, f32(sign * math.inf), value)


def _cotangent_derivative(n: int) -> Sequence[float]:
    """The n-th derivative of cot as a polynomial in cot: c' = -(1 + c * c)."""
    coefficients = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(coefficients)][1:]
        coefficients = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            coefficients[k] -= c
            coefficients[k + 2] -= c
    return coefficients


@lowers(aten.special_zeta.default, aten.special_zeta.other_scalar)
def zeta(g: Graph, x: Value, other: Any) -> Value:
    """The sum of (other + k) ** -x over k >= 0; NaN for x < 1 and where `other` is below -10."""
    s, q = as_float(g, x), as_float(g, other)
    value = _zeta(g, s, q, _ZETA_TERMS)
    nan = f32(math.nan)
    value = tfl.select_v2(g, tfl.less(g, q, f32(float(9 - _ZETA_TERMS))), nan, value)
    fraction = tfl.select_v2(g, _is_whole(g, s), value, nan)
    below = tfl.select_v2(g, _is_whole(g, q), f32(math.inf), fraction)
    value = tfl.select_v2(g, tfl.less_equal(g, q, f32(0.0)), below, value)
    value = tfl.select_v2(g, tfl.equal(g, s, f32(1.0)), f32(math.inf), value)
    return tfl.select_v2(g, tfl.less(g, s, f32(1.0)), nan, value)


@lowers(aten.special_zeta.self_scalar)
def zeta_of_number(g: Graph, x: float, other: Value) -> Value:
    """As `zeta`."""
    return zeta(g, f32(float(x)), other)


def _zeta(g: Graph, s: Any, q: Value, terms: int) -> Value:
    """Euler-Maclaurin after `terms` terms, for q + terms >= 9 and s > 1."""
    exponent = as_float(g, s)
    power = tfl.neg(g, exponent)
    total = tfl.pow(g, q, power)
    for k in range(1, terms):
        total = tfl.add(g, total, tfl.pow(g, tfl.add(g, q, f32(float(k))), power))
    at = tfl.add(g, q, f32(float(terms)))
    last = tfl.pow(g, at, power)
    integral = tfl.div(g, tfl.mul(g, last, at), tfl.sub(g, exponent, f32(1.0)))
    total = tfl.add(g, tfl.add(g, total, integral), tfl.mul(g, last, f32(0.5)))
    factor = tfl.div(g, tfl.mul(g, last, exponent), at)
    for k, bernoulli in enumerate(_BERNOULLI):
        total = tfl.add(g, total, tfl.mul(g, factor, f32(bernoulli)))
        rising = tfl.add(g, exponent, f32(2.0 * k + 1))
        rising = tfl.mul(g, rising, tfl.add(g, exponent, f32(2.0 * k + 2)))
        factor = tfl.div(g, tfl.mul(g, factor, rising), tfl.square(g, at))
    return total
