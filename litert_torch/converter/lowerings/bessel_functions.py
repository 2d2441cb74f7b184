"""Bessel functions of orders 0 and 1, and Airy's: a series near 0, an asymptotic form beyond.

The series are fitted to 1e-7; the asymptotic forms are those of Abramowitz and Stegun, chapter 9.
"""

import math
from collections.abc import Sequence

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings import series_coefficients as fit
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.converter.lowerings.series import (
    Function,
    chebyshev_sum,
    floats,
    linear,
    reciprocal,
)

aten = torch.ops.aten

_FAR, _FAR_K, _FAR_AIRY = 8.0, 2.0, 5.0  # where the asymptotic forms begin


def _joined(g: Graph, t: Value, at: float, near: Function, far: Function) -> Value:
    """`near` of t up to `at`, `far` beyond; each sees only what it is good for."""
    low = near(g, tfl.minimum(g, f32(at), t))
    high = far(g, tfl.maximum(g, f32(at), t))
    return tfl.select_v2(g, tfl.less_equal(g, t, f32(at)), low, high)


def _over_root(g: Graph, y: Value, t: Value) -> Value:
    return tfl.mul(g, y, tfl.rsqrt(g, t))


def _with_sign(g: Graph, y: Value, x: Value) -> Value:
    return tfl.mul(g, y, tfl.sign(g, x))


def i0e(g: Graph, x: Value) -> Value:
    """exp(-|x|) I0(x)."""

    def near(g: Graph, t: Value) -> Value:
        return chebyshev_sum(g, linear(g, t, 0.25, -1.0), fit.I0_NEAR)

    def far(g: Graph, t: Value) -> Value:
        y = tfl.sub(g, reciprocal(g, t, 16.0), f32(1.0))
        return _over_root(g, chebyshev_sum(g, y, fit.I0_FAR), t)

    return _joined(g, tfl.abs(g, x), _FAR, near, far)


def i1e(g: Graph, x: Value) -> Value:
    """exp(-|x|) I1(x)."""

    def near(g: Graph, t: Value) -> Value:
        return tfl.mul(g, t, chebyshev_sum(g, linear(g, t, 0.25, -1.0), fit.I1_NEAR))

    def far(g: Graph, t: Value) -> Value:
        y = tfl.sub(g, reciprocal(g, t, 16.0), f32(1.0))
        return _over_root(g, chebyshev_sum(g, y, fit.I1_FAR), t)

    return _with_sign(g, _joined(g, tfl.abs(g, x), _FAR, near, far), x)


def i0(g: Graph, x: Value) -> Value:
    """The modified Bessel function of the first kind, of order 0."""
    return tfl.mul(g, i0e(g, x), tfl.exp(g, tfl.abs(g, x)))


def i1(g: Graph, x: Value) -> Value:
    """The modified Bessel function of the first kind, of order 1."""
    return tfl.mul(g, i1e(g, x), tfl.exp(g, tfl.abs(g, x)))


def _second_kind(order: int, *, scaled: bool) -> Function:
    """K of order 0 or 1: infinite at 0, NaN below; `scaled` is times exp(x)."""

    def near(g: Graph, t: Value) -> Value:
        y = linear(g, tfl.square(g, t), 0.5, -1.0)
        log = tfl.log(g, tfl.mul(g, t, f32(0.5)))
        if order == 0:
            value = tfl.sub(g, chebyshev_sum(g, y, fit.K0_NEAR), tfl.mul(g, log, i0(g, t)))
        else:
            regular = tfl.div(g, chebyshev_sum(g, y, fit.K1_NEAR), t)
            value = tfl.add(g, regular, tfl.mul(g, log, i1(g, t)))
            value = tfl.select_v2(g, tfl.equal(g, t, f32(0.0)), f32(math.inf), value)
        return tfl.mul(g, value, tfl.exp(g, t)) if scaled else value

    def far(g: Graph, t: Value) -> Value:
        y = tfl.sub(g, reciprocal(g, t, 4.0), f32(1.0))
        value = _over_root(g, chebyshev_sum(g, y, (fit.K0_FAR, fit.K1_FAR)[order]), t)
        return value if scaled else tfl.mul(g, value, tfl.exp(g, tfl.neg(g, t)))

    def function(g: Graph, x: Value) -> Value:
        value = _joined(g, x, _FAR_K, near, far)
        return tfl.select_v2(g, tfl.less(g, x, f32(0.0)), f32(math.nan), value)

    return function


def _wave(order: int, *, second: bool) -> Function:
    """The asymptotic form of J or Y: a cosine or sine, falling as 1 / sqrt(t)."""
    cosine, sine = ((fit.P0_FAR, fit.Q0_FAR), (fit.P1_FAR, fit.Q1_FAR))[order]

    def far(g: Graph, t: Value) -> Value:
        inverse = reciprocal(g, t, _FAR)
        y = linear(g, tfl.square(g, inverse), 2.0, -1.0)
        p = chebyshev_sum(g, y, cosine)
        q = tfl.mul(g, inverse, chebyshev_sum(g, y, sine))
        angle = tfl.sub(g, t, f32(math.pi / 4 + order * math.pi / 2))
        c, s = tfl.cos(g, angle), tfl.sin(g, angle)
        if second:
            wave = tfl.add(g, tfl.mul(g, p, s), tfl.mul(g, q, c))
        else:
            wave = tfl.sub(g, tfl.mul(g, p, c), tfl.mul(g, q, s))
        return _over_root(g, tfl.mul(g, wave, f32(math.sqrt(2 / math.pi))), t)

    return far


def _of_square(g: Graph, t: Value, coefficients: Sequence[float]) -> Value:
    return chebyshev_sum(g, linear(g, tfl.square(g, t), 1 / 32, -1.0), coefficients)


def _j0_near(g: Graph, t: Value) -> Value:
    return _of_square(g, t, fit.J0_NEAR)


def _j1_near(g: Graph, t: Value) -> Value:
    return tfl.mul(g, t, _of_square(g, t, fit.J1_NEAR))


def j0(g: Graph, x: Value) -> Value:
    """The Bessel function of the first kind, of order 0."""
    return _joined(g, tfl.abs(g, x), _FAR, _j0_near, _wave(0, second=False))


def j1(g: Graph, x: Value) -> Value:
    """The Bessel function of the first kind, of order 1."""
    value = _joined(g, tfl.abs(g, x), _FAR, _j1_near, _wave(1, second=False))
    return _with_sign(g, value, x)


def _y0_near(g: Graph, t: Value) -> Value:
    log = tfl.mul(g, tfl.log(g, t), f32(2 / math.pi))
    return tfl.add(g, _of_square(g, t, fit.Y0_NEAR), tfl.mul(g, log, _j0_near(g, t)))


def _y1_near(g: Graph, t: Value) -> Value:
    log = tfl.mul(g, tfl.log(g, t), _j1_near(g, t))
    pole = tfl.mul(g, tfl.sub(g, log, reciprocal(g, t)), f32(2 / math.pi))
    value = tfl.add(g, tfl.mul(g, t, _of_square(g, t, fit.Y1_NEAR)), pole)
    return tfl.select_v2(g, tfl.equal(g, t, f32(0.0)), f32(-math.inf), value)


def _positive_only(near: Function, far: Function) -> Function:
    def function(g: Graph, x: Value) -> Value:
        value = _joined(g, x, _FAR, near, far)
        return tfl.select_v2(g, tfl.less(g, x, f32(0.0)), f32(math.nan), value)

    return function


def spherical_bessel_j0(g: Graph, x: Value) -> Value:
    """sin(x) / x, 1 at 0 and 0 at infinity."""
    size = tfl.abs(g, x)
    bounded = tfl.minimum(g, f32(3e38), size)
    ratio = tfl.div(g, tfl.sin(g, bounded), bounded)
    return tfl.select_v2(g, tfl.equal(g, x, f32(0.0)), f32(1.0), ratio)


def airy_ai(g: Graph, x: Value) -> Value:
    """Airy's function: a wave left of -5, a decay right of 5."""
    t = tfl.maximum(g, f32(_FAR_AIRY), tfl.abs(g, x))
    fourth_root = tfl.sqrt(g, tfl.sqrt(g, t))
    z = tfl.mul(g, tfl.mul(g, t, tfl.sqrt(g, t)), f32(2 / 3))
    near = tfl.minimum(g, f32(_FAR_AIRY), tfl.maximum(g, f32(-_FAR_AIRY), x))
    centre = chebyshev_sum(g, tfl.mul(g, near, f32(1 / _FAR_AIRY)), fit.AIRY_NEAR)
    inverse = reciprocal(g, z, 2 / 3 * _FAR_AIRY**1.5)
    right = _airy_decay(g, z, inverse)
    left = _airy_wave(g, z, inverse)
    outer = tfl.select_v2(g, tfl.less(g, x, f32(0.0)), left, right)
    outer = tfl.div(g, outer, fourth_root)
    is_near = tfl.less_equal(g, tfl.abs(g, x), f32(_FAR_AIRY))
    return tfl.select_v2(g, is_near, centre, outer)


def _airy_decay(g: Graph, z: Value, inverse: Value) -> Value:
    factor = chebyshev_sum(g, linear(g, inverse, 2.0, -1.0), fit.AIRY_RIGHT)
    decay = tfl.exp(g, tfl.neg(g, z))
    return tfl.mul(g, tfl.mul(g, factor, decay), f32(0.5 / math.sqrt(math.pi)))


def _airy_wave(g: Graph, z: Value, inverse: Value) -> Value:
    y = linear(g, tfl.square(g, inverse), 2.0, -1.0)
    angle = tfl.add(g, z, f32(math.pi / 4))
    p = tfl.mul(g, tfl.sin(g, angle), chebyshev_sum(g, y, fit.AIRY_P))
    q = tfl.mul(g, inverse, chebyshev_sum(g, y, fit.AIRY_Q))
    wave = tfl.sub(g, p, tfl.mul(g, tfl.cos(g, angle), q))
    return tfl.mul(g, wave, f32(1 / math.sqrt(math.pi)))


lowers.one_to_one(
    {
        op: floats(function)
        for op, function in {
            aten.i0.default: i0,
            aten.special_i0.default: i0,
            aten.special_i0e.default: i0e,
            aten.special_i1.default: i1,
            aten.special_i1e.default: i1e,
            aten.special_modified_bessel_i0.default: i0,
            aten.special_modified_bessel_i1.default: i1,
            aten.special_modified_bessel_k0.default: _second_kind(0, scaled=False),
            aten.special_modified_bessel_k1.default: _second_kind(1, scaled=False),
            aten.special_scaled_modified_bessel_k0.default: _second_kind(0, scaled=True),
            aten.special_scaled_modified_bessel_k1.default: _second_kind(1, scaled=True),
            aten.special_bessel_j0.default: j0,
            aten.special_bessel_j1.default: j1,
            aten.special_bessel_y0.default: _positive_only(_y0_near, _wave(0, second=True)),
            aten.special_bessel_y1.default: _positive_only(_y1_near, _wave(1, second=True)),
            aten.special_spherical_bessel_j0.default: spherical_bessel_j0,
            aten.special_airy_ai.default: airy_ai,
        }.items()
    }
)
