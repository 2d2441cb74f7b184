"""Comparisons, and choices between operands."""

from collections.abc import Callable

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    Array,
    Operand,
    as_dtype,
    is_integral,
    promoted,
)

aten = torch.ops.aten


def _of_two(function: Callable[[Array, Array], Array]) -> Callable[[Operand, Operand], Array]:
    def lowering(x: Operand, other: Operand) -> Array:
        return function(*promoted(x, other))

    return lowering


for _name, _function in {
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
}.items():
    _packet = getattr(aten, _name)
    lowers.one_to_one(dict.fromkeys((_packet.Tensor, _packet.Scalar), _of_two(_function)))

_maximum, _minimum = _of_two(jnp.maximum), _of_two(jnp.minimum)  # NaN wins, as in PyTorch

lowers.one_to_one(
    {
        aten.maximum.default: _maximum,
        aten.minimum.default: _minimum,
        aten.max.other: _maximum,
        aten.min.other: _minimum,
        aten.fmax.default: _of_two(jnp.fmax),
        aten.fmin.default: _of_two(jnp.fmin),
        aten.isnan.default: lambda x: x != x,
        aten.isinf.default: lambda x: jnp.isinf(x),
        aten.isfinite.default: lambda x: jnp.isfinite(x),
        aten.isposinf.default: lambda x: jnp.isposinf(x),
        aten.isneginf.default: lambda x: jnp.isneginf(x),
        aten.signbit.default: lambda x: x < 0 if is_integral(x) else jnp.signbit(x),
    }
)


@lowers(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Array, min: Operand = None, max: Operand = None) -> Array:
    """Minimum(maximum(x, min), max): where the bounds cross, `max` wins."""
    bounds = [b for b in (min, max) if b is not None]
    result, *_ = promoted(x, *bounds)
    if min is not None:
        result = jnp.maximum(result, as_dtype(min, result.dtype))
    return result if max is None else jnp.minimum(result, as_dtype(max, result.dtype))


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Array, min: Operand) -> Array:
    """The greater of x and min."""
    return clamp(x, min)


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Array, max: Operand) -> Array:
    """The lesser of x and max."""
    return clamp(x, None, max)


@lowers(aten.where.self, aten.where.ScalarOther, aten.where.Scalar)
def where(condition: Array, x: Operand, other: Operand) -> Array:
    """X where the condition holds, else other."""
    return jnp.where(condition != 0, *promoted(x, other))


@lowers(aten.where.ScalarSelf)
def where_scalar_self(condition: Array, x: Operand, other: Array) -> Array:
    """X where the condition holds, else other."""
    return where(condition, x, other)


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(x: Array, mask: Array, value: Operand) -> Array:
    """`value`, in the dtype of x, where the mask holds, else x."""
    return jnp.where(mask, as_dtype(value, x.dtype), x)


@lowers(aten.heaviside.default)
def heaviside(x: Array, values: Array) -> Array:
    """0 below zero, 1 above it, `values` at it; NaN counts as zero's right."""
    x, values = promoted(x, values)
    return jnp.where(x == 0, values, (x > 0).astype(x.dtype))


@lowers(aten.nan_to_num.default)
def nan_to_num(
    x: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """X with numbers in place of NaN (by default 0) and of infinities (the largest there are)."""
    if is_integral(x):
        return x
    return jnp.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)
