"""Rewrites around the DEQUANTIZE of a constant."""

from dataclasses import replace

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import is_static, static
from litert_torch.converter.ir import Op, Quantization, TensorType, Value
from litert_torch.converter.passes import Sweep
from litert_torch.converter.passes.transposes import permutation


def move_before_dequantize(s: Sweep, op: Op) -> Value | None:
    """What moves the elements of a dequantized constant moves the constant's, once and for all.

    before: transpose(dequantize(w), p)
    after:  dequantize(w'), where w' is w transposed
    """
    x = op.inputs[0] if op.kind in {"TRANSPOSE", "RESHAPE"} else None
    maker = x.producer if x is not None else None
    w = maker.inputs[0] if maker is not None and maker.kind == "DEQUANTIZE" else None
    if w is None or w.const is None or w.quantization is None or not is_static(op.output.shape):
        return None
    perm, shape = permutation(op), static(op.output.shape)
    if op.kind == "TRANSPOSE":
        if perm is None:
            return None
        moved = w.const.transpose(perm)
        axis: int | None = perm.index(w.quantization.axis)
    else:
        moved = w.const.reshape(shape)
        axis = _axis_after_reshape(w, shape)
    if axis is None:
        return None
    quantization: Quantization = replace(w.quantization, axis=axis)
    kind = TensorType(moved.shape, moved.dtype)
    return tfl.dequantize(s.graph, Value(kind, const=moved, quantization=quantization))


def _axis_after_reshape(w: Value, shape: tuple[int, ...]) -> int | None:
    """Where the axis that the scales run along is after a reshape; None if it is not kept."""
    assert w.quantization is not None
    if w.quantization.is_per_tensor:
        return 0
    if w.quantization.block_size is not None:
        return None
    old, axis = static(w.shape), w.quantization.axis
    before = _product(old[:axis])
    for i, size in enumerate(shape):
        if size == old[axis] and _product(shape[:i]) == before:
            return i
    return None


def _product(sizes: tuple[int, ...]) -> int:
    total = 1
    for s in sizes:
        total *= s
    return total
