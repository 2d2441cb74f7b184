"""Batch normalization, by running statistics or by those of the batch."""

from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.normalization import scaled, standardized
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, wide

aten = torch.ops.aten


def _per_channel(x: Array) -> list[Any]:
    return [x.shape[1]] + [1] * (x.ndim - 2)


def _by_running(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, variance: Array, eps: float
) -> Array:
    """One product and one sum a channel: XLA folds them into a convolution before."""
    scale = lax.rsqrt(wide(variance) + eps)
    if weight is not None:
        scale = scale * weight.astype(scale.dtype)
    offset = -wide(mean) * scale
    if bias is not None:
        offset = offset + bias.astype(offset.dtype)
    shape = _per_channel(x)
    return as_dtype(wide(x) * scale.reshape(shape) + offset.reshape(shape), x.dtype)


def _by_batch(
    x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """(result, mean, 1 / deviation)."""
    axes = [0, *range(2, x.ndim)]
    result, mean, scale = standardized(x, axes, eps)
    result = as_dtype(scaled(result, weight, bias, _per_channel(x)), x.dtype)
    return result, mean.reshape(-1), scale.reshape(-1)


@lowers(aten.batch_norm.default)
def batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Array:
    """X [N, C, *] normalized for each channel."""
    if training or running_mean is None or running_var is None:
        return _by_batch(x, weight, bias, eps)[0]
    return _by_running(x, weight, bias, running_mean, running_var, eps)


@lowers(aten._native_batch_norm_legit_no_training.default)
def native_batch_norm_no_training(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(result, nothing, nothing)."""
    nothing = jnp.zeros((0,), wide(x).dtype)
    return _by_running(x, weight, bias, running_mean, running_var, eps), nothing, nothing


@lowers(aten._native_batch_norm_legit.no_stats)
def native_batch_norm_no_stats(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(result by the statistics of the batch, mean, 1 / deviation)."""
    return _by_batch(x, weight, bias, eps)


@lowers(aten.native_batch_norm.default)
def native_batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(result, mean, 1 / deviation); what training writes is functionalized before."""
    if training or running_mean is None or running_var is None:
        return _by_batch(x, weight, bias, eps)
    nothing = jnp.zeros((0,), wide(x).dtype)
    return _by_running(x, weight, bias, running_mean, running_var, eps), nothing, nothing


@lowers(aten._native_batch_norm_legit_functional.default)
def native_batch_norm_functional(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array, Array, Array]:
    """(result, mean, 1 / deviation, the new running mean, the new running variance)."""
    if not training:
        nothing = jnp.zeros((0,), wide(x).dtype)
        result = _by_running(x, weight, bias, running_mean, running_var, eps)
        return result, nothing, nothing, running_mean, running_var
    result, mean, scale = _by_batch(x, weight, bias, eps)
    axes = (0, *range(2, x.ndim))
    count: Any = 1
    for axis in axes:
        count = count * x.shape[axis]
    variance = jnp.var(wide(x), axes) * (count / (count - 1))
    new_mean = running_mean * (1 - momentum) + mean.astype(running_mean.dtype) * momentum
    new_variance = running_var * (1 - momentum) + variance.astype(running_var.dtype) * momentum
    return result, mean, scale, new_mean, new_variance
