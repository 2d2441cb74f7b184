"""PAD ops that convolutions and pools can do without."""

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.ir import Op, Value, const
from litert_torch.converter.litert_ops.neural import SAME, VALID, same_padding
from litert_torch.converter.passes import Sweep
from litert_torch.converter.passes.transposes import operand


def merge_pads(s: Sweep, op: Op) -> Value | None:
    """Zeros around zeros.

    before: pad(pad(x, a), b)
    after:  pad(x, a + b)
    """
    middle = operand(op, "PAD")
    x = operand(middle.producer, "PAD") if middle is not None else None
    if middle is None or x is None or middle.producer is None or not s.only_user(middle):
        return None
    inner, outer = middle.producer.inputs[1], op.inputs[1]
    if inner is None or outer is None or inner.const is None or outer.const is None:
        return None
    total = inner.read() + outer.read()
    return s.graph.emit("PAD", [x, const(total, "int32")], op.output.type)


def pad_into_convolution(s: Sweep, op: Op) -> Value | None:
    """Zeros that are what SAME adds by itself.

    before: conv_2d(pad(x, [[0,0],[1,1],[1,1],[0,0]]), padding=VALID) with a 3x3 filter, stride 1
    after:  conv_2d(x, padding=SAME)
    """
    if op.kind not in {"CONV_2D", "DEPTHWISE_CONV_2D"} or op.attrs["padding"] != VALID:
        return None
    padded = op.inputs[0]
    x = operand(padded.producer, "PAD") if padded is not None else None
    if padded is None or x is None or padded.producer is None or op.inputs[1] is None:
        return None
    pads = _constant(padded.producer.inputs[1])
    if pads is None or pads[0].any() or pads[3].any():
        return None
    kernel = op.inputs[1].shape[1:3]
    for axis, k, stride, dilation in (
        (1, kernel[0], op.attrs["strideH"], op.attrs["dilationHFactor"]),
        (2, kernel[1], op.attrs["strideW"], op.attrs["dilationWFactor"]),
    ):
        size = x.shape[axis]
        if not isinstance(size, int) and stride != 1:
            return None
        known = size if isinstance(size, int) else 1
        if tuple(pads[axis]) != same_padding(known, int(k), stride, dilation):
            return None
    attrs = {**op.attrs, "padding": SAME}
    return s.graph.emit(op.kind, [x, *op.inputs[1:]], op.output.type, **attrs)


_NON_NEGATIVE = frozenset({"RELU", "RELU6", "RELU_0_TO_1", "LOGISTIC", "SOFTMAX", "ABS", "SQUARE"})
_KEEPS_SIGN = frozenset({"MAX_POOL_2D", "AVERAGE_POOL_2D", "RESHAPE", "TRANSPOSE", "PAD", "SLICE"})


def zero_padding_for_max(s: Sweep, op: Op) -> Value | None:
    """Before a max pool of non-negative values, zeros are as good as minus infinity, and faster.

    before: max_pool_2d(padv2(relu(x), pads, -inf))
    after:  max_pool_2d(pad(relu(x), pads))
    """
    padded = operand(op, "MAX_POOL_2D")
    x = operand(padded.producer, "PADV2") if padded is not None else None
    if padded is None or x is None or padded.producer is None or not _is_non_negative(x):
        return None
    filler = _constant(padded.producer.inputs[2])
    if filler is None or filler.reshape(-1)[0] > np.finfo(np.float32).min:
        return None
    pads = _constant(padded.producer.inputs[1])
    window = [1, op.attrs["filterHeight"], op.attrs["filterWidth"], 1]
    if pads is None or any(max(p) >= size for p, size in zip(pads, window, strict=True)):
        return None  # some window would see nothing but padding
    zeros = s.graph.emit("PAD", [x, padded.producer.inputs[1]], padded.type)
    return s.graph.emit(op.kind, [zeros], op.output.type, **op.attrs)


def _is_non_negative(x: Value) -> bool:
    pending: list[Value | None] = [x]
    seen: set[Value] = set()
    while pending:
        v = pending.pop()
        op = v.producer if v is not None else None
        if v is None or op is None:
            return False
        if v in seen or op.kind in _NON_NEGATIVE:
            continue
        seen.add(v)
        if op.attrs.get("fusedActivationFunction") in {1, 3}:
            continue
        if op.kind != "CONCATENATION" and op.kind not in _KEEPS_SIGN:
            return False
        pending += op.inputs if op.kind == "CONCATENATION" else op.inputs[:1]
    return True


def _constant(v: Value | None) -> Array | None:
    return v.read() if v is not None and v.const is not None else None
