"""Quotients and remainders in PyTorch's rounding modes."""

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    Array,
    Operand,
    is_integral,
    promoted,
    promoted_floats,
)

aten = torch.ops.aten


@lowers(aten.div.Tensor, aten.div.Scalar)
def div(x: Operand, other: Operand) -> Array:
    """X / other; of integers in float32."""
    a, b = promoted_floats(x, other)
    return a / b


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def div_mode(x: Operand, other: Operand, *, rounding_mode: str | None) -> Array:
    """X / other, rounded down ('floor'), towards zero ('trunc') or not at all."""
    if rounding_mode is None:
        return div(x, other)
    a, b = jnp.broadcast_arrays(*promoted(x, other))
    if rounding_mode == "floor":
        return _floored(a, b)
    return lax.div(a, b) if is_integral(a) else jnp.trunc(a / b)


@lowers(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(x: Operand, other: Operand) -> Array:
    """X / other rounded down."""
    return _floored(*jnp.broadcast_arrays(*promoted(x, other)))


def _floored(a: Array, b: Array) -> Array:
    """The greatest whole number that, times b, does not exceed a; a and b of one shape."""
    if is_integral(a):
        return jnp.floor_divide(a, b)
    rest = lax.rem(a, b)
    down = (rest != 0) & ((b < 0) != (rest < 0))
    whole = (a - rest) / b - down.astype(a.dtype)
    floor = jnp.floor(whole)
    nearest = jnp.where(whole - floor > 0.5, floor + 1, floor)
    signed_zero = jnp.copysign(jnp.zeros_like(a), a / b)
    return jnp.where(b == 0, a / b, jnp.where(whole == 0, signed_zero, nearest))


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(x: Operand, other: Operand) -> Array:
    """What floor division leaves: has the sign of the divisor."""
    a, b = jnp.broadcast_arrays(*promoted(x, other))
    rest = lax.rem(a, b)
    return jnp.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(x: Operand, other: Operand) -> Array:
    """What division towards zero leaves: has the sign of the dividend."""
    return lax.rem(*jnp.broadcast_arrays(*promoted(x, other)))
