"""Activations that PyTorch has as ops of their own."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, computed_wide

aten = torch.ops.aten


def _wide(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def lowering(x: Array) -> Array:
        return computed_wide(function, x)

    return lowering


def _log_sigmoid(x: Array) -> Array:
    return jnp.minimum(x, 0) - jnp.log1p(jnp.exp(-jnp.abs(x)))


lowers.one_to_one(
    {
        aten.relu.default: lambda x: jnp.maximum(x, 0),
        aten.relu6.default: lambda x: jnp.clip(x, 0, 6),
        aten.silu.default: _wide(lambda x: x * jax.nn.sigmoid(x)),
        aten.mish.default: _wide(lambda x: x * jnp.tanh(jax.nn.softplus(x))),
        aten.hardswish.default: _wide(lambda x: x * jnp.clip(x + 3, 0, 6) / 6),
        aten.hardsigmoid.default: _wide(lambda x: jnp.clip(x + 3, 0, 6) / 6),
        aten.log_sigmoid.default: _wide(_log_sigmoid),
    }
)


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(x: Array) -> tuple[Array, Array]:
    """(log of the sigmoid, exp(-|x|), which only the gradient needs)."""
    return computed_wide(_log_sigmoid, x), jnp.exp(-jnp.abs(x))


@lowers(aten.gelu.default)
def gelu(x: Array, *, approximate: str = "none") -> Array:
    """X times the normal distribution's share below x, or its approximation by tanh."""
    if approximate == "tanh":
        return computed_wide(lambda x: jax.nn.gelu(x, approximate=True), x)
    root = jnp.sqrt(0.5)
    return computed_wide(lambda x: x * 0.5 * (1 + jax.lax.erf(x * root.astype(x.dtype))), x)


@lowers(aten.hardtanh.default)
def hardtanh(x: Array, min_val: Any = -1, max_val: Any = 1) -> Array:
    """X between the bounds."""
    return jnp.minimum(jnp.maximum(x, as_dtype(min_val, x.dtype)), as_dtype(max_val, x.dtype))


@lowers(aten.leaky_relu.default)
def leaky_relu(x: Array, negative_slope: Any = 0.01) -> Array:
    """X, times the slope where it is negative."""
    return jnp.where(x > 0, x, x * as_dtype(negative_slope, x.dtype))


@lowers(aten.prelu.default, aten._prelu_kernel.default)
def prelu(x: Array, weight: Array) -> Array:
    """As leaky_relu, with a slope for each channel of axis 1, or one for all."""
    if x.ndim > 1 and weight.ndim == 1:
        weight = weight.reshape(-1, *[1] * (x.ndim - 2))
    elif weight.ndim <= 1:
        weight = weight.reshape([1] * x.ndim)
    return jnp.where(x > 0, x, x * weight)


@lowers(aten.elu.default)
def elu(x: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Array:
    """scale * x, or scale * alpha * (exp(input_scale * x) - 1) where x is not positive."""

    def of(x: Array) -> Array:
        return jnp.where(x > 0, x * scale, jnp.expm1(x * input_scale) * (alpha * scale))

    return computed_wide(of, x)


@lowers(aten.celu.default)
def celu(x: Array, alpha: Any = 1.0) -> Array:
    """X, or alpha * (exp(x / alpha) - 1) where it is not positive."""
    return elu(x, alpha, 1, 1 / alpha)


@lowers(aten.selu.default)
def selu(x: Array) -> Array:
    """Elu with the constants that keep a network's variance."""
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


@lowers(aten.softplus.default)
def softplus(x: Array, beta: Any = 1, threshold: Any = 20) -> Array:
    """log(1 + exp(beta * x)) / beta, and x itself beyond the threshold."""

    def of(x: Array) -> Array:
        return jnp.where(x * beta > threshold, x, jnp.log1p(jnp.exp(x * beta)) / beta)

    return computed_wide(of, x)


@lowers(aten.softshrink.default)
def softshrink(x: Array, lambd: Any = 0.5) -> Array:
    """X, nearer to zero by lambd."""
    bound = as_dtype(lambd, x.dtype)
    moved = jnp.where(x > bound, x - bound, jnp.where(x < -bound, x + bound, 0))
    return jnp.where(x != x, x, moved).astype(x.dtype)


@lowers(aten.hardshrink.default)
def hardshrink(x: Array, lambd: Any = 0.5) -> Array:
    """X, or 0 within lambd of zero."""
    return jnp.where(jnp.abs(x) <= lambd, 0, x).astype(x.dtype)


@lowers(aten.threshold.default)
def threshold(x: Array, threshold: Any, value: Any) -> Array:
    """X, or `value` where it is not above the threshold."""
    return jnp.where(x <= as_dtype(threshold, x.dtype), as_dtype(value, x.dtype), x)


@lowers(aten.glu.default)
def glu(x: Array, dim: int = -1) -> Array:
    """The first half times the sigmoid of the second."""
    a, b = jnp.split(x, 2, axis=dim)
    return a * computed_wide(jax.nn.sigmoid, b)
