"""Models quantized by PyTorch's pt2e flow: quantized_decomposed ops to QUANTIZE and DEQUANTIZE.

Weights are quantized when the file is written and stay integers in it. What computes on integers
from there on is for a quantization recipe to say.
"""

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # defines the ops

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Quantization, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.torch_types import dtype_of
from litert_torch.errors import UnsupportedCaseError

quantized = torch.ops.quantized_decomposed

_STORED = frozenset({DType.INT8, DType.UINT8, DType.INT16})


@lowers(quantized.quantize_per_tensor.default)
def quantize_per_tensor(
    g: Graph,
    x: Value,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Value:
    """Real numbers to integers with one scale and zero point."""
    return _quantize(g, x, _one(scale, zero_point), quant_min, quant_max, dtype_of(dtype))


@lowers(quantized.quantize_per_tensor.tensor)
def quantize_per_tensor_by_tensors(
    g: Graph,
    x: Value,
    scale: Value,
    zero_point: Value,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Value:
    """As above, with scale and zero point in buffers."""
    parameters = _many(scale, zero_point, 0)
    return _quantize(g, x, parameters, quant_min, quant_max, dtype_of(dtype))


@lowers(quantized.dequantize_per_tensor.default)
def dequantize_per_tensor(
    g: Graph,
    x: Value,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    out_dtype: torch.dtype | None = None,
) -> Value:
    """Integers to the real numbers that they stand for."""
    return _dequantize(g, x, _one(scale, zero_point))


@lowers(quantized.dequantize_per_tensor.tensor)
def dequantize_per_tensor_by_tensors(
    g: Graph,
    x: Value,
    scale: Value,
    zero_point: Value,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    out_dtype: torch.dtype | None = None,
) -> Value:
    """As above, with scale and zero point in buffers."""
    return _dequantize(g, x, _many(scale, zero_point, 0))


@lowers(quantized.quantize_per_channel.default)
def quantize_per_channel(
    g: Graph,
    x: Value,
    scales: Value,
    zero_points: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> Value:
    """Weights have been quantized by folding; LiteRT does not do it to what a model computes."""
    raise UnsupportedCaseError(
        "per-channel quantization of a tensor that is no weight: quantize activations per tensor"
    )


@lowers(quantized.dequantize_per_channel.default)
def dequantize_per_channel(
    g: Graph,
    x: Value,
    scales: Value,
    zero_points: Value | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
    out_dtype: torch.dtype | None = None,
) -> Value:
    """Integers to real numbers, with a scale for each slice along `axis`."""
    return _dequantize(g, x, _many(scales, zero_points, axis % x.rank))


def _one(scale: float, zero_point: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))


def _many(scales: Value, zero_points: Value | None, axis: int) -> Quantization:
    if scales.const is None or (zero_points is not None and zero_points.const is None):
        raise UnsupportedCaseError(
            "a scale that the model computes as it runs: use a static quantizer, or "
            "get_symmetric_quantization_config(is_dynamic=True), which leaves that to LiteRT"
        )
    s = scales.read().astype(np.float32).reshape(-1)
    z = np.zeros(s.shape, np.int64) if zero_points is None else zero_points.read().reshape(-1)
    return Quantization(s, z.astype(np.int64), axis if s.size > 1 else 0)


def _quantize(
    g: Graph, x: Value, parameters: Quantization, low: int, high: int, dtype: DType
) -> Value:
    if dtype not in _STORED:
        raise UnsupportedCaseError(f"quantization to {dtype}: use int8, uint8 or int16")
    if dtype == DType.INT16 and parameters.zero_points.any():
        raise UnsupportedCaseError("int16 with a zero point: use a symmetric scheme for int16")
    limits = np.iinfo(dtype.numpy)
    scale, zero = float(parameters.scales[0]), int(parameters.zero_points[0])
    if low > limits.min:
        x = tfl.maximum(g, x, const((low - zero) * scale, DType.FLOAT32))
    if high < limits.max:
        x = tfl.minimum(g, x, const((high - zero) * scale, DType.FLOAT32))
    return tfl.quantize(g, x, dtype, parameters)


def _dequantize(g: Graph, x: Value, parameters: Quantization) -> Value:
    if x.const is not None and x.dtype not in _STORED:
        return const(_real(x.const, parameters))
    if x.dtype not in _STORED:
        raise UnsupportedCaseError(f"dequantization of {x.dtype}: use int8, uint8 or int16")
    return tfl.dequantize(g, _quantized(x, parameters))


def _quantized(x: Value, parameters: Quantization) -> Value:
    """x, which stands for real numbers by `parameters`."""
    if x.const is not None:
        return Value(x.type, const=x.const, quantization=parameters)
    if x.quantization is None and parameters.is_per_tensor:
        x.quantization = parameters
    if x.quantization is None or x.quantization.key != parameters.key:
        raise UnsupportedCaseError(
            "integers are dequantized by another scale than they were quantized by"
        )
    return x


def _real(x: Constant, parameters: Quantization) -> Constant:
    shape = [1] * len(x.shape)
    if not parameters.is_per_tensor:
        shape[parameters.axis] = parameters.scales.size

    def compute(integers: Array) -> Array:
        centered = integers.astype(np.float64) - parameters.zero_points.reshape(shape)
        return (centered * parameters.scales.reshape(shape)).astype(np.float32)

    return x.derive(("dequantize", parameters.key), compute, dtype=DType.FLOAT32)
