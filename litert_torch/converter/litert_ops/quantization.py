"""Between real numbers and the integers that stand for them."""

from dataclasses import replace

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Quantization, Value, retyped


def quantize(g: Graph, x: Value, dtype: DType, quantization: Quantization) -> Value:
    """x as integers: round(x / scale) + zero point, saturated to `dtype`."""
    y = g.emit("QUANTIZE", [x], retyped(x, dtype=dtype))
    y.quantization = quantization
    return y


def dequantize(g: Graph, x: Value) -> Value:
    """The float32 numbers that the integers x stand for by their quantization."""
    return g.emit("DEQUANTIZE", [x], replace(x.type, dtype=DType.FLOAT32))


def is_constant(x: Value) -> bool:
    """Whether x is known at conversion time, be it the integers that it is dequantized from."""
    if x.const is not None:
        return True
    maker = x.producer
    source = maker.inputs[0] if maker is not None and maker.kind == "DEQUANTIZE" else None
    return source is not None and source.const is not None
