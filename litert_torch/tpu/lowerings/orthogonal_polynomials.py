"""Chebyshev, Hermite, Laguerre and Legendre polynomials of degree n, a number or a tensor.

Chebyshev polynomials have closed forms. The others are summed by their recurrences, up to degree 32
where n is a tensor; beyond, the result is NaN.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, is_array, promoted_floats

aten = torch.ops.aten

_MOST = 32

Step = Callable[[Array, int, Array, Array], Array]
Polynomial = Callable[[Array, Array, int], Array]


def _signed(x: Array, n: Array, value: Array) -> Array:
    """The value at |x| as that at x: even or odd as n is."""
    return jnp.where((x < 0) & (jnp.mod(n, 2) == 1), -value, value)


def _t(x: Array, n: Array, most: int) -> Array:
    """cos(n acos x) within [-1, 1], cosh(n acosh x) beyond."""
    size = jnp.abs(x)
    inside = jnp.cos(n * jnp.arccos(jnp.minimum(size, 1)))
    outside = jnp.cosh(n * jnp.arccosh(jnp.maximum(size, 1)))
    return _signed(x, n, jnp.where(size <= 1, inside, outside))


def _u(x: Array, n: Array, most: int) -> Array:
    """sin((n + 1) acos x) / sin(acos x), or as that by sinh; n + 1 at 1."""
    size, m = jnp.abs(x), n + 1
    angle, area = jnp.arccos(jnp.minimum(size, 1)), jnp.arccosh(jnp.maximum(size, 1))
    inside = jnp.sin(m * angle) / jnp.sin(angle)
    outside = jnp.sinh(m * area) / jnp.sinh(area)
    value = jnp.where(size == 1, m, jnp.where(size < 1, inside, outside))
    return _signed(x, n, value)


def _v(x: Array, n: Array, most: int) -> Array:
    """The third kind: U(n) - U(n - 1)."""
    return _u(x, n, most) - _u(x, n - 1, most)


def _w(x: Array, n: Array, most: int) -> Array:
    """The fourth kind: U(n) + U(n - 1)."""
    return _u(x, n, most) + _u(x, n - 1, most)


def _shifted(polynomial: Polynomial) -> Polynomial:
    return lambda x, n, most: polynomial(2 * x - 1, n, most)


def _recurrent(first: Callable[[Array], Array], step: Step) -> Polynomial:
    """P(0) = 1, P(1) = first(x), P(k + 1) = step(x, k, P(k), P(k - 1))."""

    def polynomial(x: Array, n: Array, most: int) -> Array:
        before, last = jnp.ones_like(x), first(x)
        value = jnp.full(jnp.broadcast_shapes(x.shape, n.shape), jnp.nan, x.dtype)
        for k in range(most + 1):
            if k > 1:
                before, last = last, step(x, k - 1, last, before)
            value = jnp.where(n == k, last if k else before, value)
        return value

    return polynomial


_POLYNOMIALS: dict[Any, Polynomial] = {
    aten.special_chebyshev_polynomial_t: _t,
    aten.special_chebyshev_polynomial_u: _u,
    aten.special_chebyshev_polynomial_v: _v,
    aten.special_chebyshev_polynomial_w: _w,
    aten.special_shifted_chebyshev_polynomial_t: _shifted(_t),
    aten.special_shifted_chebyshev_polynomial_u: _shifted(_u),
    aten.special_shifted_chebyshev_polynomial_v: _shifted(_v),
    aten.special_shifted_chebyshev_polynomial_w: _shifted(_w),
    aten.special_hermite_polynomial_h: _recurrent(
        lambda x: 2 * x, lambda x, k, last, before: 2 * x * last - 2 * k * before
    ),
    aten.special_hermite_polynomial_he: _recurrent(
        lambda x: x, lambda x, k, last, before: x * last - k * before
    ),
    aten.special_laguerre_polynomial_l: _recurrent(
        lambda x: 1 - x,
        lambda x, k, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    ),
    aten.special_legendre_polynomial_p: _recurrent(
        lambda x: x, lambda x, k, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1)
    ),
}


def _lowering(polynomial: Polynomial) -> Callable[[Any, Any], Array]:
    def lowering(x: Any, n: Any) -> Array:
        value, degree = promoted_floats(x, n)
        most = _MOST if is_array(n) else max(int(n), 0)
        degree = as_dtype(jnp.trunc(degree), value.dtype)
        return jnp.where(degree < 0, 0, polynomial(value, degree, most)).astype(value.dtype)

    return lowering


for _packet, _polynomial in _POLYNOMIALS.items():
    lowers(_packet.default, _packet.x_scalar, _packet.n_scalar)(_lowering(_polynomial))
