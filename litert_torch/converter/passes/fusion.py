"""Activations, scales and offsets that become part of the op before them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Op, Value, const
from litert_torch.converter.passes import Sweep

_ACTIVATIONS = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}  # schema.ActivationFunctionType
_TAKES_ACTIVATION = frozenset(
    [
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "FULLY_CONNECTED",
        "AVERAGE_POOL_2D",
        "MAX_POOL_2D",
    ]
)


def fuse_activation(s: Sweep, op: Op) -> Value | None:
    """An activation that is the only reader of what takes one.

    before: relu(conv_2d(x, ...))
    after:  conv_2d(x, ..., activation=RELU)
    """
    x = op.inputs[0] if op.kind in _ACTIVATIONS else None
    maker = x.producer if x is not None else None
    if x is None or maker is None or maker.kind not in _TAKES_ACTIVATION or not s.only_user(x):
        return None
    if maker.attrs["fusedActivationFunction"] or x.dtype != DType.FLOAT32:
        return None
    attrs = {**maker.attrs, "fusedActivationFunction": _ACTIVATIONS[op.kind]}
    s.graph.source = maker.source
    return s.graph.emit(maker.kind, maker.inputs, x.type, **attrs)


@dataclass(frozen=True)
class _Weighted:
    """Where an op with weights keeps them.

    Attributes:
        weights, bias: Operand positions.
        axis: The weights' output-channel axis.
    """

    weights: int
    bias: int
    axis: int


_WEIGHTED = {
    "CONV_2D": _Weighted(1, 2, 0),
    "DEPTHWISE_CONV_2D": _Weighted(1, 2, 3),
    "FULLY_CONNECTED": _Weighted(1, 2, 0),
    "TRANSPOSE_CONV": _Weighted(1, 3, 0),
}


def fold_scale(s: Sweep, op: Op) -> Value | None:
    """A constant factor for each channel goes into the weights (batch norm's first half).

    before: mul(conv_2d(x, w, b), c)
    after:  conv_2d(x, w * c, b * c)

    Weights that are also an embedding's table stay as they are, and so stay one tensor.
    """
    found = _after_weighted(s, op, ("MUL", "DIV"))
    if found is None:
        return None
    maker, c = found
    if op.kind == "DIV":
        if op.inputs[0] is not maker.output:
            return None
        c = c.derive("reciprocal", lambda x: (1 / x.astype(np.float64)).astype(np.float32))
    place = _WEIGHTED[maker.kind]
    weights = maker.inputs[place.weights]
    bias = maker.inputs[place.bias] if len(maker.inputs) > place.bias else None
    assert weights is not None
    scaled = _scaled_weights(s, weights, c, place.axis)
    if scaled is None:
        return None
    inputs = list(maker.inputs)
    inputs[place.weights] = scaled
    if bias is not None and bias.const is not None:
        inputs[place.bias] = const(_scaled(bias.const, c, 0))
    s.graph.source = maker.source
    return s.graph.emit(maker.kind, inputs, maker.output.type, **maker.attrs)


def _scaled_weights(s: Sweep, weights: Value, c: Constant, axis: int) -> Value | None:
    """The weights times c; of integers that are dequantized, the scales are."""
    if weights.const is not None:
        return None if weights.const.key in s.tables else const(_scaled(weights.const, c, axis))
    stored = weights.producer.inputs[0] if weights.producer is not None else None
    q = stored.quantization if stored is not None else None
    if stored is None or q is None or not (q.is_per_tensor or q.axis == axis):
        return None
    scales = (q.scales * c.read().reshape(-1)).astype(np.float32)
    if not (scales > 0).all():  # scales are positive; integers stay as they are
        return None
    zeros = np.broadcast_to(q.zero_points, scales.shape)
    quantization = replace(q, scales=scales, zero_points=zeros, axis=axis)
    return tfl.dequantize(
        s.graph, Value(stored.type, const=stored.const, quantization=quantization)
    )


def fold_offset(s: Sweep, op: Op) -> Value | None:
    """A constant added to each channel goes into the bias (batch norm's second half).

    before: add(conv_2d(x, w, b), c)
    after:  conv_2d(x, w, b + c)
    """
    found = _after_weighted(s, op, ("ADD", "SUB"))
    if found is None:
        return None
    maker, c = found
    if op.kind == "SUB":
        if op.inputs[0] is not maker.output:
            return None
        c = c.derive("negate", np.negative)
    place = _WEIGHTED[maker.kind]
    weights = maker.inputs[place.weights]
    assert weights is not None
    channels = int(weights.shape[place.axis])
    bias = maker.inputs[place.bias] if len(maker.inputs) > place.bias else None
    inputs = [*maker.inputs[: place.bias], None]
    inputs[place.bias] = const(_offset(bias.const if bias is not None else None, c, channels))
    attrs = {**maker.attrs, "fusedActivationFunction": op.attrs["fusedActivationFunction"]}
    s.graph.source = maker.source
    return s.graph.emit(maker.kind, inputs, maker.output.type, **attrs)


def _after_weighted(s: Sweep, op: Op, kinds: Sequence[str]) -> tuple[Op, Constant] | None:
    """The weighted op that alone feeds `op`, and op's constant, one element a channel or one."""
    if op.kind not in kinds:
        return None
    x, c = op.inputs
    if x is not None and x.const is not None and op.kind not in {"DIV", "SUB"}:
        x, c = c, x
    maker = x.producer if x is not None else None
    if x is None or c is None or c.const is None or maker is None or not s.only_user(x):
        return None
    if maker.kind not in _WEIGHTED or maker.attrs["fusedActivationFunction"]:
        return None
    place = _WEIGHTED[maker.kind]
    weights = maker.inputs[place.weights]
    bias = maker.inputs[place.bias] if len(maker.inputs) > place.bias else None
    if weights is None or not tfl.is_constant(weights):
        return None
    if bias is not None and bias.const is None:
        return None
    if op.kind in {"MUL", "DIV"} and op.attrs["fusedActivationFunction"]:
        return None
    per_channel = c.const.size in (1, weights.shape[place.axis]) and (
        c.const.size == 1 or c.const.shape[-1] == c.const.size
    )
    return (maker, c.const) if per_channel and op.output.shape == x.shape else None


def _scaled(weights: Constant, c: Constant, axis: int) -> Constant:
    rank = len(weights.shape)

    def scale(w: Array, factor: Array) -> Array:
        shape = [1] * rank
        shape[axis] = factor.size
        return w * factor.reshape(shape)

    return weights.derive(("scale", axis), scale, c)


def _offset(bias: Constant | None, c: Constant, channels: int) -> Constant:
    def widen(offset: Array) -> Array:
        return np.broadcast_to(offset.reshape(-1), (channels,))

    wide = c.derive(("widen", channels), widen, shape=(channels,))
    return wide if bias is None else bias.derive("add", np.add, wide)


def hoist_scalar_factor(s: Sweep, op: Op) -> Value | None:
    """A scalar factor goes before ops that only move elements, where it may meet weights.

    before: mul(transpose(reshape(fully_connected(x)))), 0.125)
    after:  transpose(reshape(mul(fully_connected(x), 0.125)))
    """
    if op.kind != "MUL" or op.attrs["fusedActivationFunction"]:
        return None
    x, c = op.inputs
    if x is not None and x.const is not None:
        x, c = c, x
    mover = x.producer if x is not None else None
    if x is None or c is None or c.const is None or c.const.size != 1 or mover is None:
        return None
    if mover.kind not in {"RESHAPE", "TRANSPOSE"} or not s.only_user(x) or c.rank > 1:
        return None
    source = mover.inputs[0]
    if source is None or not _leads_to_weights(s, source):
        return None
    scaled = tfl.mul(s.graph, source, c)
    return s.graph.emit(mover.kind, [scaled, *mover.inputs[1:]], op.output.type, **mover.attrs)


def _leads_to_weights(s: Sweep, x: Value) -> bool:
    while x.producer is not None and s.only_user(x):
        if x.producer.kind in _WEIGHTED:
            return not x.producer.attrs["fusedActivationFunction"]
        source = x.producer.inputs[0]
        if x.producer.kind not in {"RESHAPE", "TRANSPOSE"} or source is None:
            return False
        x = source
    return False


def hoist_channel_term(s: Sweep, op: Op) -> Value | None:
    """A term for each channel goes before a reshape of the other axes, to meet the weights.

    before: mul(reshape(fully_connected(x), [2, 3, 4]), c [4])
    after:  reshape(mul(fully_connected(x), c), [2, 3, 4])
    """
    if op.kind not in {"ADD", "SUB", "MUL", "DIV"} or op.attrs["fusedActivationFunction"]:
        return None
    x, c = op.inputs
    if x is not None and x.const is not None and op.kind in {"ADD", "MUL"}:
        x, c = c, x
    if x is None or c is None or c.const is None or x.producer is None or not s.only_user(x):
        return None
    y = x.producer.inputs[0] if x.producer.kind == "RESHAPE" else None
    if y is None or not y.rank or not x.rank or op.output.shape != x.shape:
        return None
    channels = x.shape[-1]
    if y.shape[-1] != channels or c.shape[-1:] != (channels,) or c.const.size != channels:
        return None
    if not _is_affine_product(s, y):
        return None
    term = const(c.const.reshape((c.const.size,)))
    return tfl.reshape(
        s.graph, s.graph.emit(op.kind, [y, term], y.type, **op.attrs), op.output.shape
    )


def _is_affine_product(s: Sweep, y: Value) -> bool:
    """Whether y is of an op with weights, or the product of one and a constant."""
    maker = y.producer
    if maker is None or not s.only_user(y) or maker.attrs.get("fusedActivationFunction"):
        return False
    if maker.kind == "MUL" and any(v is not None and v.const is not None for v in maker.inputs):
        source = next(v for v in maker.inputs if v is not None and v.const is None)
        return source.producer is not None and source.producer.kind in _WEIGHTED
    return maker.kind in _WEIGHTED
