"""Ops between DEQUANTIZE and QUANTIZE that compute on the integers themselves.

before: quantize(conv_2d(dequantize(x), dequantize(w), b))
after:  conv_2d(x, w, b'), where b' is b as int32 with scale x.scale * w.scale
"""

from __future__ import annotations

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, from_array
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Quantization, TensorType, Value
from litert_torch.converter.passes import Sweep, sweeping

_OUTPUT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}
"""Ops with weights, and the axis of the weights that may have a scale each."""

_HYBRID = frozenset({"CONV_2D", "FULLY_CONNECTED"})
"""Kernels that multiply float activations with int8 weights."""

_RESCALING = frozenset({"ADD", "SUB", "MUL", "MEAN", "RELU", "RELU6"})
"""Kernels that take operands and give results of different scales."""

_SAME_SCALE = frozenset(
    ["AVERAGE_POOL_2D", "CONCATENATION", "MAX_POOL_2D", "PAD", "RESHAPE", "SLICE", "TRANSPOSE"]
)
"""Kernels that take and give integers of one scale."""

_MOVERS = frozenset({"MAX_POOL_2D", "PAD", "RESHAPE", "SLICE", "STRIDED_SLICE", "TRANSPOSE"})
"""Kernels that give some of the integers that they take, or the one for zero."""

_FIXED_SCALE = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128)}
"""Kernels whose int8 result must have this scale and zero point."""


def use(graph: Graph) -> None:
    """Rewrite `graph` and the graphs inside it so that ops compute on integers where they can."""
    for g in [*graph.subgraphs(), graph]:
        sweeping(move_integers)(g)
        sweeping(on_integers)(g)
        sweeping(requantize)(g)
        sweeping(with_integer_weights)(g)
        g.remove_dead_ops()


def on_integers(s: Sweep, op: Op) -> Value | None:
    """A QUANTIZE and the op before it as the op on integers."""
    real = op.inputs[0] if op.kind == "QUANTIZE" else None
    maker = real.producer if real is not None else None
    if real is None or maker is None or s.only_user(real) is not op:
        return None
    result = op.output
    if maker.kind in _OUTPUT_AXIS:
        inputs = _weighted_inputs(maker)
    elif maker.kind in _RESCALING | _SAME_SCALE | _FIXED_SCALE.keys():
        inputs = _plain_inputs(maker, result)
    else:
        return None
    if inputs is None or result.quantization is None or result.dtype != DType.INT8:
        return None
    y = s.graph.emit(maker.kind, inputs, result.type, **maker.attrs)
    y.quantization = result.quantization
    return y


def move_integers(s: Sweep, op: Op) -> Value | None:
    """What only moves or picks elements does so to integers.

    before: pad(dequantize(x))
    after:  dequantize(pad(x))
    """
    x = _integers(op.inputs[0]) if op.kind in {*_MOVERS, "PADV2"} else None
    if x is None or x.quantization is None or not x.quantization.is_per_tensor:
        return None
    if x.dtype != DType.INT8 or op.attrs.get("fusedActivationFunction"):
        return None
    kind, others = op.kind, op.inputs[1:]
    if kind == "PADV2":
        padding = _padding(s, op, x.quantization)
        if padding is None:
            return None
        if padding == int(x.quantization.zero_points[0]):
            kind, others = "PAD", op.inputs[1:2]
        else:
            value = Value(TensorType((1,), DType.INT8), const=from_array([padding], DType.INT8))
            value.quantization = x.quantization
            others = [op.inputs[1], value]
    y = s.graph.emit(kind, [x, *others], TensorType(op.output.shape, x.dtype), **op.attrs)
    y.quantization = x.quantization
    return tfl.dequantize(s.graph, y)


def _padding(s: Sweep, op: Op, q: Quantization) -> int | None:
    """The integer that PADV2 pads with; below the range, the smallest does for a maximum."""
    value = op.inputs[2]
    if value is None or value.const is None:
        return None
    integer = float(value.read().reshape(-1)[0]) / float(q.scales[0]) + int(q.zero_points[0])
    if -128 <= integer <= 127:
        return round(integer)
    reader = s.only_user(op.output)
    is_for_maximum = integer < 0 and reader is not None and reader.kind == "MAX_POOL_2D"
    return -128 if is_for_maximum else None


def requantize(s: Sweep, op: Op) -> Value | None:
    """Integers of one scale as those of another; nothing where they are the same.

    before: quantize(dequantize(x))
    after:  quantize(x), or x
    """
    x = _integers(op.inputs[0]) if op.kind == "QUANTIZE" else None
    q = op.output.quantization
    if x is None or q is None or x.quantization is None or x.dtype != op.output.dtype:
        return None
    if x.quantization.key == q.key and op.output not in s.outputs:
        return x
    return tfl.quantize(s.graph, x, x.dtype, q) if x.quantization.is_per_tensor else None


def with_integer_weights(s: Sweep, op: Op) -> Value | None:
    """An op on float activations with the int8 weights that it would dequantize.

    before: fully_connected(x, dequantize(w), b)
    after:  fully_connected(x, w, b)
    """
    weights = _integers(op.inputs[1]) if op.kind in _HYBRID else None
    if weights is None or not _are_weights(weights, _OUTPUT_AXIS[op.kind]):
        return None
    inputs = [op.inputs[0], weights, *op.inputs[2:]]
    return s.graph.emit(op.kind, inputs, op.output.type, **op.attrs)


def _integers(v: Value | None) -> Value | None:
    """What `v` was dequantized from."""
    maker = v.producer if v is not None else None
    return maker.inputs[0] if maker is not None and maker.kind == "DEQUANTIZE" else None


def _are_weights(w: Value, axis: int) -> bool:
    q = w.quantization
    if w.const is None or q is None or w.dtype != DType.INT8 or np.any(q.zero_points):
        return False
    return q.is_per_tensor or (q.axis == axis and q.block_size is None)


def _weighted_inputs(op: Op) -> list[Value | None] | None:
    x, w = _integers(op.inputs[0]), _integers(op.inputs[1])
    if x is None or w is None or x.const is not None or x.dtype != DType.INT8:
        return None
    if not _are_weights(w, _OUTPUT_AXIS[op.kind]):
        return None
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if bias is None:
        return [x, w, None]
    assert x.quantization is not None
    assert w.quantization is not None
    return None if bias.const is None else [x, w, _bias(bias, x.quantization, w.quantization)]


def _bias(bias: Value, x: Quantization, w: Quantization) -> Value:
    """A float bias as int32, in units of the products that it is added to."""
    assert bias.const is not None
    scales = (x.scales.astype(np.float64) * w.scales.astype(np.float64)).reshape(-1)

    def quantize(b: Array) -> Array:
        limits = np.iinfo(np.int32)
        return np.clip(np.round(b.astype(np.float64) / scales), limits.min, limits.max)

    integers = bias.const.derive(("bias", scales.tobytes()), quantize, dtype=DType.INT32)
    parameters = Quantization(scales.astype(np.float32), np.zeros(scales.size, np.int64), 0)
    kind = TensorType(bias.shape, DType.INT32)
    return Value(kind, const=integers, quantization=parameters)


def _plain_inputs(op: Op, result: Value) -> list[Value | None] | None:
    found: list[Value | None] = []
    for v in op.inputs:
        integers = _integers(v)
        if integers is not None and integers.dtype == DType.INT8:
            found.append(integers)
        elif v is not None and v.dtype == DType.FLOAT32:
            return None  # an operand that is not quantized
        else:
            found.append(v)  # a shape, axes or paddings
    scales = [v.quantization for v in found if v is not None and v.quantization is not None]
    q = result.quantization
    if q is None or not scales:
        return None
    if op.kind in _SAME_SCALE and any(other.key != q.key for other in scales):
        return None
    if op.kind in _FIXED_SCALE:
        scale, zero_point = _FIXED_SCALE[op.kind]
        if not np.allclose(q.scales, scale) or int(q.zero_points[0]) != zero_point:
            return None
    return found
