"""Models quantized by PyTorch's pt2e flow: quantized_decomposed ops, computed as they are written.

XLA fuses a dequantization into the product that reads it; integers stay integers in the weights.
"""

from typing import Any

import jax.numpy as jnp
import torch
import torch.ao.quantization.fx._decomposed  # defines the ops

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    FLOAT32,
    Array,
    Operand,
    as_dtype,
    is_array,
    to_numpy,
    wide,
)

quantized = torch.ops.quantized_decomposed


def _quantized(
    x: Array, scale: Operand, zero: Operand, low: int, high: int, dtype: torch.dtype
) -> Array:
    """Rounded half to even, as PyTorch does it, by the reciprocal of the scale."""
    inverse = 1 / as_dtype(scale, FLOAT32)
    whole = jnp.round(wide(x) * inverse) + as_dtype(zero, FLOAT32)
    return as_dtype(jnp.clip(whole, low, high), dtype)


def _real(x: Array, scale: Operand, zero: Operand, dtype: torch.dtype | None) -> Array:
    centred = x.astype(FLOAT32) - as_dtype(zero, FLOAT32)
    want = FLOAT32 if dtype is None else to_numpy(dtype)
    return (centred * as_dtype(scale, FLOAT32)).astype(want)


def _scalar(t: Operand) -> Operand:
    return t.reshape(()) if is_array(t) else t


@lowers(
    quantized.quantize_per_tensor.default,
    quantized.quantize_per_tensor.tensor,
    quantized.quantize_per_tensor.tensor2,
)
def quantize_per_tensor(
    x: Array,
    scale: Operand,
    zero_point: Operand,
    quant_min: Any,
    quant_max: Any,
    dtype: torch.dtype,
) -> Array:
    """Real numbers to integers with one scale and zero point."""
    low, high = _scalar(quant_min), _scalar(quant_max)
    return _quantized(x, _scalar(scale), _scalar(zero_point), low, high, dtype)


@lowers(
    quantized.dequantize_per_tensor.default,
    quantized.dequantize_per_tensor.tensor,
    quantized.dequantize_per_tensor.tensor2,
)
def dequantize_per_tensor(
    x: Array,
    scale: Operand,
    zero_point: Operand,
    quant_min: Any,
    quant_max: Any,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Array:
    """Integers to the real numbers that they stand for."""
    return _real(x, _scalar(scale), _scalar(zero_point), out_dtype)


def _along(t: Array | None, rank: int, axis: int) -> Operand:
    if t is None:
        return 0
    shape = [1] * rank
    shape[axis % rank] = -1
    return t.reshape(shape)


@lowers(quantized.quantize_per_channel.default)
def quantize_per_channel(
    x: Array,
    scales: Array,
    zero_points: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Array:
    """Real numbers to integers, with a scale for each slice along `axis`."""
    scale, zero = (_along(t, x.ndim, axis) for t in (scales, zero_points))
    return _quantized(x, scale, zero, quant_min, quant_max, dtype)


@lowers(quantized.dequantize_per_channel.default)
def dequantize_per_channel(
    x: Array,
    scales: Array,
    zero_points: Array | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> Array:
    """Integers to real numbers, with a scale for each slice along `axis`."""
    scale, zero = (_along(t, x.ndim, axis) for t in (scales, zero_points))
    return _real(x, scale, zero, out_dtype)
