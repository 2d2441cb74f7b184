"""The gamma function's logarithm, derivatives and incomplete forms, and the zeta function."""

from typing import Any

import jax.numpy as jnp
import torch
from jax import lax
from jax.scipy import special

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.elementwise import of_floats
from litert_torch.tpu.lowerings.promotion import (
    Array,
    Operand,
    as_float,
    computed_wide,
    promoted_floats,
)

aten = torch.ops.aten


def _digamma(x: Array) -> Array:
    """NaN at negative whole numbers, an infinity at 0 with its sign turned."""
    at_zero = jnp.copysign(jnp.full_like(x, jnp.inf), -x)
    return jnp.where(x == 0, at_zero, special.digamma(x))


def _lgamma(x: Array) -> Array:
    return jnp.where(jnp.isinf(x), jnp.inf, lax.lgamma(x)).astype(x.dtype)


lowers.one_to_one(
    {
        aten.lgamma.default: of_floats(_lgamma),
        aten.digamma.default: of_floats(_digamma),
    }
)


@lowers(aten.polygamma.default)
def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return computed_wide(_digamma, as_float(x))

    def derivative(x: Array) -> Array:
        sign = 1.0 if n % 2 else -1.0
        factorial = jnp.exp(special.gammaln(jnp.asarray(n + 1.0, x.dtype)))
        return sign * factorial * special.zeta(jnp.asarray(n + 1.0, x.dtype), x)

    return computed_wide(derivative, as_float(x))


@lowers(aten.special_zeta.default, aten.special_zeta.other_scalar)
def zeta(x: Operand, other: Operand) -> Array:
    """Hurwitz's zeta function."""
    return special.zeta(*jnp.broadcast_arrays(*promoted_floats(x, other)))


@lowers(aten.special_zeta.self_scalar)
def zeta_of_scalar(x: Any, other: Array) -> Array:
    """Hurwitz's zeta function."""
    return zeta(x, other)


@lowers(aten.igamma.default)
def igamma(x: Array, other: Array) -> Array:
    """The lower incomplete gamma function, regularized."""
    return special.gammainc(*promoted_floats(x, other))


@lowers(aten.igammac.default)
def igammac(x: Array, other: Array) -> Array:
    """The upper incomplete gamma function, regularized."""
    return special.gammaincc(*promoted_floats(x, other))
