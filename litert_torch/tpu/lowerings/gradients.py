"""Core ATen's gradient ops, as the derivatives of the ops that they belong to."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.adaptive_pooling import adaptive_average
from litert_torch.tpu.lowerings.average_pooling import average
from litert_torch.tpu.lowerings.convolution import convolution
from litert_torch.tpu.lowerings.indexing import as_index
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, wide
from litert_torch.tpu.lowerings.windows import windows

aten = torch.ops.aten


def _pulled_back(function: Callable[..., Array], grad: Array, *operands: Array) -> Any:
    """The gradients by each operand."""
    return jax.vjp(function, *operands)[1](grad)


@lowers(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(grad_output: Array, x: Array) -> Array:
    """The gradient of _adaptive_avg_pool2d by x."""
    size = grad_output.shape[-2:]
    return _pulled_back(lambda x: adaptive_average(x, size, 2), grad_output, x)[0]


@lowers(aten.avg_pool2d_backward.default)
def avg_pool2d_backward(
    grad_output: Array,
    x: Array,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The gradient of avg_pool2d by x."""
    w = windows(x.shape[-2:], kernel_size, stride, padding, 1, ceil_mode)
    pool = lambda x: average(x, w, count_include_pad, divisor_override)  # noqa: E731
    return _pulled_back(pool, grad_output, x)[0]


@lowers(aten.max_pool2d_with_indices_backward.default)
def max_pool2d_backward(
    grad_output: Array,
    x: Array,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Array,
) -> Array:
    """The gradient of max_pool2d_with_indices by x."""
    rows = 1
    for s in x.shape[:-2]:
        rows *= s
    flat = jnp.zeros((rows, x.shape[-2] * x.shape[-1]), grad_output.dtype)
    places = as_index(indices).reshape(rows, -1)
    row = jnp.arange(rows)[:, None]
    return flat.at[row, places].add(grad_output.reshape(rows, -1)).reshape(x.shape)


@lowers(aten.convolution_backward.default)
def convolution_backward(
    grad_output: Array,
    x: Array,
    weight: Array,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of convolution by x, weight and bias, those that are asked for."""

    def forward(x: Array, weight: Array) -> Array:
        return convolution(
            x, weight, None, stride, padding, dilation, transposed, output_padding, groups
        )

    by_x, by_weight = _pulled_back(forward, grad_output, x, weight)
    axes = (0, *range(2, grad_output.ndim))
    by_bias = jnp.sum(grad_output, axes) if output_mask[2] else None
    return by_x if output_mask[0] else None, by_weight if output_mask[1] else None, by_bias


@lowers(aten.embedding_dense_backward.default)
def embedding_dense_backward(
    grad_output: Array,
    indices: Array,
    num_weights: Any,
    padding_idx: Any,
    scale_grad_by_freq: bool,
) -> Array:
    """The gradient of embedding by its table."""
    rows = as_index(indices).reshape(-1)
    grads = wide(grad_output).reshape(-1, grad_output.shape[-1])
    if scale_grad_by_freq:
        counts = jnp.zeros(num_weights, grads.dtype).at[rows].add(1)
        grads = grads / counts[rows][:, None]
    table = jnp.zeros((num_weights, grads.shape[-1]), grads.dtype)
    kept = jnp.where(rows == padding_idx, num_weights, rows)
    return as_dtype(table.at[kept].add(grads, mode="drop"), grad_output.dtype)


@lowers(aten.native_layer_norm_backward.default)
def native_layer_norm_backward(
    grad_out: Array,
    x: Array,
    normalized_shape: Sequence[Any],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of layer_norm by x, weight and bias, those that are asked for."""
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    return _normalization_gradients(grad_out, x, mean, rstd, weight, axes, output_mask)


def _normalization_gradients(
    grad: Array,
    x: Array,
    mean: Array,
    scale: Array,
    weight: Array | None,
    axes: tuple[int, ...],
    mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    """Of (x - mean) * scale * weight, whose statistics are over axes, weight having theirs."""
    normal = (wide(x) - mean) * scale
    wide_grad = wide(grad)
    inner = wide_grad if weight is None else wide_grad * wide(weight)
    average, slope = (jnp.mean(t, axes, keepdims=True) for t in (inner, inner * normal))
    by_x = (inner - average - normal * slope) * scale
    outer = tuple(i for i in range(x.ndim) if i not in axes)
    by_weight = jnp.sum(wide_grad * normal, outer) if mask[1] and weight is not None else None
    by_bias = jnp.sum(wide_grad, outer) if mask[2] else None
    dtype = x.dtype
    found = (by_x if mask[0] else None, by_weight, by_bias)
    first, second, third = (None if t is None else as_dtype(t, dtype) for t in found)
    return first, second, third


@lowers(aten.native_group_norm_backward.default)
def native_group_norm_backward(
    grad_out: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    N: Any,
    C: Any,
    HxW: Any,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Array | None, Array | None, Array | None]:
    """The gradients of group_norm by x, weight and bias, those that are asked for."""
    grouped = (N, group, C // group, HxW)
    values, grad = (wide(t).reshape(grouped) for t in (x, grad_out))
    mean, rstd = (t.reshape(N, group, 1, 1) for t in (mean, rstd))
    normal = (values - mean) * rstd
    inner = grad if weight is None else grad * wide(weight).reshape(1, group, C // group, 1)
    average, slope = (jnp.mean(t, (2, 3), keepdims=True) for t in (inner, inner * normal))
    by_x = (inner - average - normal * slope) * rstd
    by_weight = jnp.sum(grad * normal, (0, 3)).reshape(C)
    by_bias = jnp.sum(grad, (0, 3)).reshape(C)
    found = (by_x.reshape(x.shape), by_weight, by_bias)
    asked = [as_dtype(t, x.dtype) if m else None for t, m in zip(found, output_mask, strict=True)]
    return asked[0], asked[1], asked[2]
