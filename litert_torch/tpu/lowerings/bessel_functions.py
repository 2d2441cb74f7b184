"""Bessel functions of orders 0 and 1, and Airy's.

XLA has only the modified ones of the first kind. The others are a series near 0 and an asymptotic
form beyond, with the coefficients that the LiteRT lowerings use.
"""

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import torch
from jax import lax
from jax.scipy import special

from litert_torch.converter.lowerings import series_coefficients as fit
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.elementwise import of_floats
from litert_torch.tpu.lowerings.promotion import Array

aten = torch.ops.aten

Function = Callable[[Array], Array]

_FAR, _FAR_K, _FAR_AIRY = 8.0, 2.0, 5.0  # where the asymptotic forms begin


def chebyshev_sum(y: Array, coefficients: Sequence[float]) -> Array:
    """coefficients[k] * T_k(y) summed by Clenshaw's recurrence; y in [-1, 1]."""
    last, before = jnp.zeros_like(y), jnp.zeros_like(y)
    for c in reversed(coefficients[1:]):
        last, before = c + 2 * y * last - before, last
    return coefficients[0] + y * last - before


def _joined(t: Array, at: float, near: Function, far: Function) -> Array:
    """`near` of t up to `at`, `far` beyond; each sees only what it is good for."""
    return jnp.where(t <= at, near(jnp.minimum(t, at)), far(jnp.maximum(t, at)))


def _positive_only(near: Function, far: Function, at: float) -> Function:
    return lambda x: jnp.where(x < 0, jnp.nan, _joined(x, at, near, far))


def _k(order: int, scaled: bool) -> Function:
    """The modified function of the second kind; `scaled` is times exp(x)."""
    regular, wave = ((fit.K0_NEAR, fit.K0_FAR), (fit.K1_NEAR, fit.K1_FAR))[order]

    def near(t: Array) -> Array:
        series = chebyshev_sum(t * t * 0.5 - 1, regular)
        log = jnp.log(t * 0.5)
        if order == 0:
            value = series - log * special.i0(t)
        else:
            value = jnp.where(t == 0, jnp.inf, series / t + log * special.i1(t))
        return value * jnp.exp(t) if scaled else value

    def far(t: Array) -> Array:
        value = chebyshev_sum(4 / t - 1, wave) * lax.rsqrt(t)
        return value if scaled else value * jnp.exp(-t)

    return _positive_only(near, far, _FAR_K)


def _wave(order: int, second: bool) -> Function:
    """The asymptotic form of J or Y: a cosine or sine, falling as 1 / sqrt(t)."""
    cosine, sine = ((fit.P0_FAR, fit.Q0_FAR), (fit.P1_FAR, fit.Q1_FAR))[order]

    def far(t: Array) -> Array:
        inverse = _FAR / t
        y = 2 * inverse * inverse - 1
        p, q = chebyshev_sum(y, cosine), inverse * chebyshev_sum(y, sine)
        angle = t - (math.pi / 4 + order * math.pi / 2)
        c, s = jnp.cos(angle), jnp.sin(angle)
        value = p * s + q * c if second else p * c - q * s
        return value * math.sqrt(2 / math.pi) * lax.rsqrt(t)

    return far


def _of_square(t: Array, coefficients: Sequence[float]) -> Array:
    return chebyshev_sum(t * t / 32 - 1, coefficients)


def _j0_near(t: Array) -> Array:
    return _of_square(t, fit.J0_NEAR)


def _j1_near(t: Array) -> Array:
    return t * _of_square(t, fit.J1_NEAR)


def _j0(x: Array) -> Array:
    return _joined(jnp.abs(x), _FAR, _j0_near, _wave(0, second=False))


def _j1(x: Array) -> Array:
    return jnp.sign(x) * _joined(jnp.abs(x), _FAR, _j1_near, _wave(1, second=False))


def _y0_near(t: Array) -> Array:
    return _of_square(t, fit.Y0_NEAR) + jnp.log(t) * (2 / math.pi) * _j0_near(t)


def _y1_near(t: Array) -> Array:
    pole = (jnp.log(t) * _j1_near(t) - 1 / t) * (2 / math.pi)
    return jnp.where(t == 0, -jnp.inf, t * _of_square(t, fit.Y1_NEAR) + pole)


def _spherical_j0(x: Array) -> Array:
    return jnp.where(x == 0, 1, jnp.where(jnp.isinf(x), 0, jnp.sin(x) / x))


def _airy_ai(x: Array) -> Array:
    """A wave left of -5, a decay right of 5."""
    t = jnp.maximum(jnp.abs(x), _FAR_AIRY)
    z = t * jnp.sqrt(t) * (2 / 3)
    near = chebyshev_sum(jnp.clip(x, -_FAR_AIRY, _FAR_AIRY) / _FAR_AIRY, fit.AIRY_NEAR)
    inverse = 2 / 3 * _FAR_AIRY**1.5 / z
    factor = chebyshev_sum(2 * inverse - 1, fit.AIRY_RIGHT)
    right = factor * jnp.exp(-z) * (0.5 / math.sqrt(math.pi))
    y, angle = 2 * inverse * inverse - 1, z + math.pi / 4
    wave = jnp.sin(angle) * chebyshev_sum(y, fit.AIRY_P)
    wave = wave - jnp.cos(angle) * inverse * chebyshev_sum(y, fit.AIRY_Q)
    outer = jnp.where(x < 0, wave / math.sqrt(math.pi), right) / jnp.sqrt(jnp.sqrt(t))
    return jnp.where(jnp.abs(x) <= _FAR_AIRY, near, outer)


lowers.one_to_one(
    {
        op: of_floats(function)
        for op, function in {
            aten.i0.default: special.i0,
            aten.special_i0e.default: special.i0e,
            aten.special_i1.default: special.i1,
            aten.special_i1e.default: special.i1e,
            aten.special_modified_bessel_i0.default: special.i0,
            aten.special_modified_bessel_i1.default: special.i1,
            aten.special_modified_bessel_k0.default: _k(0, scaled=False),
            aten.special_modified_bessel_k1.default: _k(1, scaled=False),
            aten.special_scaled_modified_bessel_k0.default: _k(0, scaled=True),
            aten.special_scaled_modified_bessel_k1.default: _k(1, scaled=True),
            aten.special_bessel_j0.default: _j0,
            aten.special_bessel_j1.default: _j1,
            aten.special_bessel_y0.default: _positive_only(_y0_near, _wave(0, second=True), _FAR),
            aten.special_bessel_y1.default: _positive_only(_y1_near, _wave(1, second=True), _FAR),
            aten.special_spherical_bessel_j0.default: _spherical_j0,
            aten.special_airy_ai.default: _airy_ai,
        }.items()
    }
)
