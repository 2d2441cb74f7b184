"""float16 constants, which DEQUANTIZE makes float32 as the model loads."""

from __future__ import annotations

import numpy as np

from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Op, TensorType, Value
from litert_torch.quantize.kernels import WEIGHTED
from litert_torch.quantize.planning import weight_of

SMALLEST = 1024
"""Elements from which a constant that is no weight is worth a DEQUANTIZE."""


def operands(op: Op) -> list[int]:
    """Positions of the operands of `op` that become float16: weights, or else large constants."""
    if op.kind in WEIGHTED:
        return [WEIGHTED[op.kind].weights] if weight_of(op) is not None else []
    return [
        i
        for i, v in enumerate(op.inputs)
        if v is not None
        and v.const is not None
        and v.dtype == DType.FLOAT32
        and v.const.size >= SMALLEST
    ]


def halved(v: Value) -> Value | None:
    """The constant in float16; None where its numbers are beyond float16's range."""
    assert v.const is not None
    if not _fits(v.const):
        return None
    return Value(TensorType(v.shape, DType.FLOAT16), const=v.const.astype(DType.FLOAT16))


def _fits(c: Constant) -> bool:
    data: Array = c.read()
    largest = max(abs(float(data.min())), abs(float(data.max())))
    return bool(largest <= np.finfo(np.float16).max)  # False for NaN, too
