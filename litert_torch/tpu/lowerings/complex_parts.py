"""Complex numbers, which XLA has."""

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    Array,
    as_float,
    is_complex,
    promoted_floats,
)

aten = torch.ops.aten


@lowers(aten.view_as_real.default, aten.view_as_real_copy.default)
def view_as_real(x: Array) -> Array:
    """The parts as a last axis of size 2."""
    return jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1)


@lowers(aten.view_as_complex.default, aten.view_as_complex_copy.default)
def view_as_complex(x: Array) -> Array:
    """A last axis of size 2 as the parts."""
    return lax.complex(x[..., 0], x[..., 1])


@lowers(aten.real.default)
def real(x: Array) -> Array:
    """The real part; of a real number, itself."""
    return jnp.real(x)


@lowers(aten.imag.default)
def imag(x: Array) -> Array:
    """The imaginary part."""
    return jnp.imag(x)


@lowers(aten.complex.default)
def complex(real: Array, imag: Array) -> Array:
    """The number of two parts."""
    return lax.complex(*jnp.broadcast_arrays(*promoted_floats(real, imag)))


@lowers(aten.polar.default)
def polar(abs: Array, angle: Array) -> Array:
    """The number of a modulus and an angle."""
    size, turn = promoted_floats(abs, angle)
    return lax.complex(*jnp.broadcast_arrays(size * jnp.cos(turn), size * jnp.sin(turn)))


@lowers(aten._conj.default, aten.conj.default, aten.conj_physical.default)
def conj(x: Array) -> Array:
    """The conjugate; of a real number, itself."""
    return jnp.conj(x) if is_complex(x) else x


@lowers(aten._neg_view.default)
def neg_view(x: Array) -> Array:
    """-x."""
    return -x


@lowers(aten.angle.default)
def angle(x: Array) -> Array:
    """The angle of a complex number; of a real one, 0 or pi, and NaN of NaN."""
    if is_complex(x):
        return jnp.angle(x)
    x = as_float(x)
    turn = jnp.where(x < 0, jnp.asarray(jnp.pi, x.dtype), 0).astype(x.dtype)
    return jnp.where(x != x, x, turn)
