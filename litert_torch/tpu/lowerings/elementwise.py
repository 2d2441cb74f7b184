"""Functions of one real or complex number; integers are taken as float32."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import torch
from jax.scipy import special

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    Array,
    as_dtype,
    as_float,
    computed_wide,
    promoted_floats,
)

aten = torch.ops.aten

Function = Callable[[Array], Array]


def of_floats(function: Function) -> Function:
    """`function` as a lowering: integers become float32, half precisions compute as float32."""

    def lowering(x: Array) -> Array:
        return computed_wide(function, as_float(x))

    return lowering


def _as_it_is(function: Function) -> Function:
    """As `of_floats`, computed in x's own precision, which XLA does well enough."""

    def lowering(x: Array) -> Array:
        return function(as_float(x))

    return lowering


lowers.one_to_one(
    {
        aten.acos.default: of_floats(jnp.arccos),
        aten.acosh.default: of_floats(jnp.arccosh),
        aten.asin.default: of_floats(jnp.arcsin),
        aten.asinh.default: of_floats(jnp.arcsinh),
        aten.atan.default: of_floats(jnp.arctan),
        aten.atanh.default: of_floats(jnp.arctanh),
        aten.cos.default: of_floats(jnp.cos),
        aten.cosh.default: of_floats(jnp.cosh),
        aten.sin.default: of_floats(jnp.sin),
        aten.sinh.default: of_floats(jnp.sinh),
        aten.tan.default: of_floats(jnp.tan),
        aten.tanh.default: of_floats(jnp.tanh),
        aten.exp.default: of_floats(jnp.exp),
        aten.exp2.default: of_floats(jnp.exp2),
        aten.expm1.default: of_floats(jnp.expm1),
        aten.log.default: of_floats(jnp.log),
        aten.log10.default: of_floats(jnp.log10),
        aten.log1p.default: of_floats(jnp.log1p),
        aten.log2.default: of_floats(jnp.log2),
        aten.sqrt.default: _as_it_is(jnp.sqrt),
        aten.rsqrt.default: _as_it_is(jax.lax.rsqrt),
        aten.reciprocal.default: _as_it_is(lambda x: jnp.asarray(1, x.dtype) / x),
        aten.sigmoid.default: of_floats(jax.nn.sigmoid),
        aten.erf.default: of_floats(jax.lax.erf),
        aten.erfc.default: of_floats(jax.lax.erfc),
        aten.erfinv.default: of_floats(jax.lax.erf_inv),
        aten.sinc.default: of_floats(jnp.sinc),
        aten.deg2rad.default: _as_it_is(lambda x: x * jnp.asarray(torch.pi / 180, x.dtype)),
        aten.rad2deg.default: _as_it_is(lambda x: x * jnp.asarray(180 / torch.pi, x.dtype)),
        aten.special_ndtri.default: of_floats(special.ndtri),
        aten.special_log_ndtr.default: of_floats(special.log_ndtr),
        aten.special_erfcx.default: of_floats(special.erfcx),
        aten.special_entr.default: of_floats(special.entr),
    }
)


@lowers(aten.square.default)
def square(x: Array) -> Array:
    """X * x; of bool, an int64."""
    return as_dtype(x, jnp.int64) if x.dtype == bool else x * x


@lowers(aten.logit.default)
def logit(x: Array, eps: float | None = None) -> Array:
    """log(x / (1 - x)), x clamped to [eps, 1 - eps]."""

    def of(x: Array) -> Array:
        x = x if eps is None else jnp.clip(x, eps, 1 - eps)
        return jnp.log(x / (1 - x))

    return computed_wide(of, as_float(x))


@lowers(aten.atan2.default, aten.arctan2.default)
def atan2(x: Array, other: Array) -> Array:
    """The angle of (other, x)."""
    return jnp.arctan2(*promoted_floats(x, other))
