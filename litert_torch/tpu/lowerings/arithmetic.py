"""Sums, products and differences."""

from typing import Any

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    Array,
    Operand,
    as_dtype,
    is_complex,
    promoted,
    promoted_floats,
    result_dtype,
)

aten = torch.ops.aten


def _sum(x: Operand, other: Operand, alpha: Any) -> Array:
    a, b = promoted(x, other)
    return a + (b if alpha == 1 else b * as_dtype(alpha, b.dtype))


def _difference(x: Operand, other: Operand, alpha: Any) -> Array:
    a, b = promoted(x, other)
    return a - (b if alpha == 1 else b * as_dtype(alpha, b.dtype))


@lowers(aten.add.Tensor)
def add(x: Operand, other: Operand, *, alpha: Any = 1) -> Array:
    """X + alpha * other; of bools, their disjunction."""
    return _sum(x, other, alpha)


@lowers(aten.add.Scalar)
def add_scalar(x: Array, other: Any, alpha: Any = 1) -> Array:
    """X + alpha * other."""
    return _sum(x, other, alpha)


@lowers(aten.sub.Tensor)
def sub(x: Operand, other: Operand, *, alpha: Any = 1) -> Array:
    """X - alpha * other."""
    return _difference(x, other, alpha)


@lowers(aten.sub.Scalar)
def sub_scalar(x: Array, other: Any, alpha: Any = 1) -> Array:
    """X - alpha * other."""
    return _difference(x, other, alpha)


@lowers(aten.rsub.Tensor)
def rsub(x: Operand, other: Operand, *, alpha: Any = 1) -> Array:
    """Other - alpha * x."""
    return _difference(other, x, alpha)


@lowers(aten.rsub.Scalar)
def rsub_scalar(x: Array, other: Any, alpha: Any = 1) -> Array:
    """Other - alpha * x."""
    return _difference(other, x, alpha)


@lowers(aten.mul.Tensor, aten.mul.Scalar)
def mul(x: Operand, other: Operand) -> Array:
    """X * other; of bools, their conjunction."""
    a, b = promoted(x, other)
    return a * b


@lowers(aten.neg.default)
def neg(x: Array) -> Array:
    """-x; of the least integer, itself."""
    return -x


@lowers(aten.abs.default)
def abs(x: Array) -> Array:
    """|x|; of a complex number, its modulus."""
    return jnp.abs(x)


@lowers(aten.sign.default)
def sign(x: Array) -> Array:
    """-1, 0 or 1; of bool, itself; 0 for NaN."""
    if x.dtype == bool:
        return x
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


@lowers(aten.sgn.default)
def sgn(x: Array) -> Array:
    """As sign; of a complex number x / |x|."""
    if not is_complex(x):
        return sign(x)
    size = jnp.abs(x)
    return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size).astype(x.dtype)).astype(
        x.dtype
    )


@lowers(aten.addcmul.default)
def addcmul(x: Array, tensor1: Array, tensor2: Array, *, value: Any = 1) -> Array:
    """X + value * tensor1 * tensor2."""
    x, a, b = promoted(x, tensor1, tensor2)
    return x + as_dtype(value, x.dtype) * a * b


@lowers(aten.addcdiv.default)
def addcdiv(x: Array, tensor1: Array, tensor2: Array, *, value: Any = 1) -> Array:
    """X + value * tensor1 / tensor2."""
    x, a, b = promoted_floats(x, tensor1, tensor2)
    return x + as_dtype(value, x.dtype) * a / b


def _lerp(x: Array, end: Array, weight: Array) -> Array:
    """From the nearer end, so that both ends are exact."""
    low, high = x + weight * (end - x), end - (end - x) * (1 - weight)
    return jnp.where(jnp.abs(weight) < 0.5, low, high)


@lowers(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(x: Array, end: Array, weight: Operand) -> Array:
    """X + weight * (end - x)."""
    dtype = result_dtype(x, end)
    return _lerp(as_dtype(x, dtype), as_dtype(end, dtype), as_dtype(weight, dtype))


@lowers(aten.hypot.default)
def hypot(x: Array, other: Array) -> Array:
    """The root of x**2 + other**2, without overflow."""
    return jnp.hypot(*promoted(x, other))


@lowers(aten.gcd.default)
def gcd(x: Array, other: Array) -> Array:
    """The greatest common divisor."""
    return jnp.gcd(*promoted(x, other))


@lowers(aten.lcm.default)
def lcm(x: Array, other: Array) -> Array:
    """The least common multiple."""
    return jnp.lcm(*promoted(x, other))


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(x: Array, other: Operand) -> Array:
    """|x| with the sign of other, that of -0.0 included."""
    return jnp.copysign(*promoted_floats(x, other))


@lowers(aten.nextafter.default)
def nextafter(x: Array, other: Array) -> Array:
    """The next number after x towards other."""
    return jnp.nextafter(*promoted(x, other))


@lowers(aten.ldexp.Tensor)
def ldexp(x: Array, other: Array) -> Array:
    """X * 2**other."""
    a, b = promoted_floats(x, other)
    return a * jnp.exp2(b)


@lowers(aten.frexp.Tensor)
def frexp(x: Array) -> tuple[Array, Array]:
    """(mantissa in [0.5, 1), exponent as int32)."""
    mantissa, exponent = jnp.frexp(x.astype(jnp.float32) if x.dtype.itemsize < 4 else x)
    return mantissa.astype(x.dtype), exponent.astype(jnp.int32)
