"""Powers and roots."""

from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    Array,
    Operand,
    as_dtype,
    is_array,
    is_integral,
    promoted,
    promoted_floats,
    result_dtype,
)

aten = torch.ops.aten

_MULTIPLIED = 4  # exponents up to this are products


@lowers(aten.pow.Tensor_Scalar)
def pow_scalar(x: Array, exponent: Any) -> Array:
    """X ** exponent; small whole powers as products, halves as roots."""
    x = as_dtype(x, result_dtype(x, exponent))
    if isinstance(exponent, (int, float)) and not is_integral(x):
        if exponent == 0.5:
            return jnp.sqrt(x)
        if exponent == -0.5:
            return lax.rsqrt(x)
        if float(exponent).is_integer() and abs(exponent) <= _MULTIPLIED:
            return lax.integer_pow(x, int(exponent))
    return _power(x, as_dtype(exponent, x.dtype))


@lowers(aten.pow.Tensor_Tensor)
def pow_tensor(x: Operand, exponent: Operand) -> Array:
    """X ** exponent, element by element."""
    return _power(*promoted(x, exponent))


@lowers(aten.pow.Scalar)
def pow_of_scalar(x: Any, exponent: Array) -> Array:
    """X ** exponent of a number."""
    if not is_array(x) and x == 1:
        return jnp.ones_like(exponent, dtype=result_dtype(x, exponent))
    return _power(*promoted(x, exponent))


def _power(base: Array, exponent: Array) -> Array:
    if base.dtype == bool:
        return base | ~exponent
    if not is_integral(base):
        return jnp.power(base, exponent)
    base, exponent = jnp.broadcast_arrays(base, exponent)
    positive = _integer_power(base, jnp.maximum(exponent, 0))
    odd = (exponent & 1) == 1
    negative = jnp.where(base == 1, 1, jnp.where(base == -1, jnp.where(odd, -1, 1), 0))
    return jnp.where(exponent < 0, negative.astype(base.dtype), positive)


def _integer_power(base: Array, exponent: Array) -> Array:
    """By squaring; products wrap around."""

    def step(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        result, factor, left = state
        result = jnp.where((left & 1) == 1, result * factor, result)
        return result, factor * factor, left >> 1

    bits = 8 * base.dtype.itemsize
    start = (jnp.ones_like(base), base, exponent)
    return lax.fori_loop(0, bits, step, start)[0]


@lowers(aten.float_power.Tensor_Scalar, aten.float_power.Tensor_Tensor)
def float_power(x: Array, exponent: Operand) -> Array:
    """X ** exponent in float64 or complex128."""
    is_complex = result_dtype(x, exponent).kind == "c"
    dtype = jnp.complex128 if is_complex else jnp.float64
    return jnp.power(as_dtype(x, jnp.dtype(dtype)), as_dtype(exponent, jnp.dtype(dtype)))


@lowers(aten.float_power.Scalar)
def float_power_of_scalar(x: Any, exponent: Array) -> Array:
    """X ** exponent of a number, in float64 or complex128."""
    return float_power(x, exponent)


@lowers(aten.xlogy.Tensor)
def xlogy(x: Operand, other: Operand) -> Array:
    """X * log(other), 0 where x is 0, NaN where other is."""
    a, b = promoted_floats(x, other)
    product = jnp.where(a == 0, 0, a * jnp.log(b)).astype(a.dtype)
    return jnp.where(b != b, jnp.asarray(jnp.nan, a.dtype), product)


@lowers(aten.special_xlog1py.default)
def xlog1py(x: Operand, other: Operand) -> Array:
    """X * log(1 + other), 0 where x is 0, NaN where other is."""
    a, b = promoted_floats(x, other)
    product = jnp.where(a == 0, 0, a * jnp.log1p(b)).astype(a.dtype)
    return jnp.where(b != b, jnp.asarray(jnp.nan, a.dtype), product)


@lowers(aten.logaddexp.default)
def logaddexp(x: Array, other: Array) -> Array:
    """log(exp(x) + exp(other)), without overflow."""
    return jnp.logaddexp(*promoted_floats(x, other))


@lowers(aten.logaddexp2.default)
def logaddexp2(x: Array, other: Array) -> Array:
    """log2(2**x + 2**other), without overflow."""
    return jnp.logaddexp2(*promoted_floats(x, other))
