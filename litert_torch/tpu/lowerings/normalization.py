"""Layer, group, instance and RMS normalization: statistics in float32 at least."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, wide

aten = torch.ops.aten


def standardized(x: Array, axes: Sequence[int], eps: float) -> tuple[Array, Array, Array]:
    """(x with mean 0 and variance 1 along axes, the mean, 1 / deviation), all in `wide` types."""
    x = wide(x)
    axes = tuple(axes)
    mean = jnp.mean(x, axes, keepdims=True)
    centred = x - mean
    scale = lax.rsqrt(jnp.mean(centred * centred, axes, keepdims=True) + eps)
    return centred * scale, mean, scale


def scaled(x: Array, weight: Array | None, bias: Array | None, shape: Sequence[Any]) -> Array:
    """X * weight + bias, both of `shape`."""
    if weight is not None:
        x = x * weight.astype(x.dtype).reshape(tuple(shape))
    return x if bias is None else x + bias.astype(x.dtype).reshape(tuple(shape))


@lowers(aten.layer_norm.default)
def layer_norm(
    x: Array,
    normalized_shape: Sequence[Any],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Array:
    """Normalized over the last axes."""
    axes = range(x.ndim - len(normalized_shape), x.ndim)
    result, _, _ = standardized(x, axes, eps)
    return as_dtype(scaled(result, weight, bias, normalized_shape), x.dtype)


@lowers(aten.native_layer_norm.default)
def native_layer_norm(
    x: Array,
    normalized_shape: Sequence[Any],
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(normalized over the last axes, the mean, 1 / deviation)."""
    axes = range(x.ndim - len(normalized_shape), x.ndim)
    result, mean, scale = standardized(x, axes, eps)
    return as_dtype(scaled(result, weight, bias, normalized_shape), x.dtype), mean, scale


def _grouped(
    x: Array, groups: int, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """X [N, C, *] normalized over groups of channels; statistics are [N, groups]."""
    batch, channels = x.shape[:2]
    parts = x.reshape(batch, groups, channels // groups, *x.shape[2:])
    result, mean, scale = standardized(parts, range(2, parts.ndim), eps)
    per_channel = [channels] + [1] * (x.ndim - 2)
    result = scaled(result.reshape(x.shape), weight, bias, per_channel)
    statistics = (t.reshape(batch, groups) for t in (mean, scale))
    return as_dtype(result, x.dtype), *statistics


@lowers(aten.group_norm.default)
def group_norm(
    x: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Array:
    """X [N, C, *] normalized over groups of channels."""
    return _grouped(x, num_groups, weight, bias, eps)[0]


@lowers(aten.native_group_norm.default)
def native_group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    N: Any,
    C: Any,
    HxW: Any,
    group: int,
    eps: float,
) -> tuple[Array, Array, Array]:
    """(x [N, C, *] normalized over groups of channels, means, 1 / deviations)."""
    return _grouped(x, group, weight, bias, eps)


@lowers(aten.instance_norm.default)
def instance_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Array:
    """X [N, C, *] normalized over each channel of each example, or by running statistics."""
    per_channel = [x.shape[1]] + [1] * (x.ndim - 2)
    if use_input_stats or running_mean is None or running_var is None:
        result, _, _ = standardized(x, range(2, x.ndim), eps)
    else:
        mean, variance = (wide(t).reshape(per_channel) for t in (running_mean, running_var))
        result = (wide(x) - mean) * lax.rsqrt(variance + eps)
    return as_dtype(scaled(result, weight, bias, per_channel), x.dtype)


def _over_root_mean_square(
    x: Array, normalized_shape: Sequence[Any], weight: Array | None, eps: float | None
) -> tuple[Array, Array]:
    epsilon = float(np.finfo(np.float32 if x.dtype.itemsize < 4 else x.dtype).eps)
    values = wide(x)
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    mean = jnp.mean(values * values, axes, keepdims=True)
    scale = lax.rsqrt(mean + (epsilon if eps is None else eps))
    return as_dtype(scaled(values * scale, weight, None, normalized_shape), x.dtype), scale


@lowers(aten.rms_norm.default)
def rms_norm(
    x: Array,
    normalized_shape: Sequence[Any],
    weight: Array | None = None,
    eps: float | None = None,
) -> Array:
    """X over the root of its mean square along the last axes."""
    return _over_root_mean_square(x, normalized_shape, weight, eps)[0]


@lowers(aten._fused_rms_norm.default)
def fused_rms_norm(
    x: Array, normalized_shape: Sequence[Any], weight: Array | None, eps: float | None
) -> tuple[Array, Array]:
    """(x over the root of its mean square along the last axes, 1 / that root)."""
    return _over_root_mean_square(x, normalized_shape, weight, eps)
