"""Weights that a module holds as integers and scales stay integers in the file.

Tensor subclasses (torchao's `quantize_`) and hand-written layers dequantize their weights in the
graph: an int8 matrix, made float, times scales. Folding would store the float matrix, four times
the size. So folding remembers of such a matrix the integers that it is made of, and a product
takes these, behind a DEQUANTIZE. To anything else it is a float constant as any other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import combined_key
from litert_torch.converter.dtypes import DType
from litert_torch.converter.folding import Folded
from litert_torch.converter.ir import Graph, Quantization, TensorType, Value

aten = torch.ops.aten

PRODUCTS = frozenset(
    {aten.linear.default, aten.mm.default, aten.addmm.default, aten.matmul.default}
)
_LEAST_ELEMENTS = 1024  # below, a scale and an op more weigh as much as the float numbers do
_INTEGERS = (torch.int8, torch.uint8)


@dataclass(frozen=True)
class Integers:
    """What a float matrix is made of: values * scales.

    Attributes:
        values: int8 or uint8 [R, C].
        scales: One, or one a slice along `axis`, or [R, C / block]; None is 1.
        axis: Along which the scales run.
        block: Elements of a row that share a scale; None where a slice has one.
        bits: How many the values need.
        is_transposed: Whether the matrix is the transpose of that.
    """

    values: Folded
    scales: Folded | None = None
    axis: int = 0
    block: int | None = None
    bits: int = 8
    is_transposed: bool = False


def remembered(op: Any, args: tuple[Any, ...], result: Any) -> Any:
    """`result` of folding `op`, with the integers that it is made of where there are."""
    rule = _RULES.get(str(op))
    if rule is None or not isinstance(result, Folded) or not isinstance(args[0], Folded):
        return result
    found = rule(*args, result=result)
    return result if found is None else replace(result, integers=found)


def dequantized(g: Graph, leaf: Any) -> Any:
    """A `Folded` made of integers as their DEQUANTIZE; anything else as it is."""
    if not isinstance(leaf, Folded) or not isinstance(leaf.integers, Integers):
        return leaf
    made = leaf.integers
    rows = made.values if made.block is None else _reshaped(made.values, (-1, made.block))
    stored = DType(str(made.values.dtype).removeprefix("torch."))
    packed = made.bits == 4 and stored == DType.INT8 and rows.shape[-1] % 2 == 0
    constant = rows.constant(stored)
    if packed:
        constant = replace(constant, dtype=DType.INT4, key=combined_key("int4", constant.key))
    w = Value(
        TensorType(constant.shape, constant.dtype),
        const=constant,
        quantization=_quantization(made),
    )
    matrix = tfl.reshape(g, tfl.dequantize(g, w), made.values.shape)
    return tfl.transpose(g, matrix, (1, 0)) if made.is_transposed else matrix


def _quantization(made: Integers) -> Quantization:
    scales = np.ones(1, np.float32) if made.scales is None else _numbers(made.scales)
    zeros = np.zeros(scales.shape, np.int64)
    return Quantization(scales.astype(np.float32), zeros, made.axis if scales.size > 1 else 0)


def _numbers(folded: Folded) -> Any:
    return folded.compute().detach().double().reshape(-1).numpy()


def _derived(key: str, source: Folded, compute: Callable[[torch.Tensor], torch.Tensor]) -> Folded:
    with torch.no_grad():
        shape = tuple(compute(torch.empty(source.shape, device="meta")).shape)
    return Folded(
        shape, source.dtype, combined_key(key, source.key), lambda: compute(source.compute())
    )


def _reshaped(source: Folded, shape: tuple[int, ...]) -> Folded:
    return _derived(f"rows {shape}", source, lambda t: t.reshape(shape))


def _made_float(x: Folded, *rest: Any, result: Folded) -> Integers | None:
    """`x.to(float)`: of an integer matrix, or of what is made of one already."""
    if not result.dtype.is_floating_point or isinstance(x.integers, Integers):
        return x.integers if result.dtype.is_floating_point else None
    return Integers(x) if _is_large_matrix(x) else None


def _is_large_matrix(x: Folded) -> bool:
    large = len(x.shape) == 2 and x.shape[0] * x.shape[1] >= _LEAST_ELEMENTS
    return large and x.dtype in _INTEGERS


def _transposed(x: Folded, *axes: int, result: Folded) -> Integers | None:
    made = x.integers
    if not isinstance(made, Integers) or result.shape != x.shape[::-1]:
        return None
    is_moved = x.shape[0] != x.shape[1] or not axes or axes in ((0, 1), (1, 0), (-1, -2), (-2, -1))
    return replace(made, is_transposed=not made.is_transposed) if is_moved else None


def _scaled(x: Folded, factor: Any, result: Folded) -> Integers | None:
    """Times one number, or one a row or a column."""
    made = x.integers
    if not isinstance(made, Integers) or not isinstance(factor, Folded) or made.scales is not None:
        return None
    axis = _axis_of(factor.shape, x.shape)
    if axis is None:
        return None
    return replace(made, scales=factor, axis=1 - axis if made.is_transposed else axis)


def _axis_of(shape: Sequence[int], matrix: Sequence[int]) -> int | None:
    """The axis of the matrix that a tensor broadcast to it varies along; None if along both."""
    whole = (*[1] * (2 - len(shape)), *shape)
    if len(whole) != 2 or any(a not in (1, b) for a, b in zip(whole, matrix, strict=True)):
        return None
    if whole[0] == 1:
        return 1
    return 0 if whole[1] == 1 else None


def _affine(
    x: Folded,
    block_size: Sequence[int],
    scale: Folded,
    zero_point: Folded | None,
    input_dtype: torch.dtype,
    quant_min: int | None = None,
    quant_max: int | None = None,
    *rest: Any,
    result: Folded,
) -> Integers | None:
    """torchao's dequantize_affine with a scale for each row, or each block of a row."""
    if not _is_large_matrix(x) or block_size[0] != 1:
        return None
    if zero_point is not None and _numbers(zero_point).any():
        return None  # LiteRT loads no file that has zero points for channels of weights
    known = quant_min is not None and quant_max is not None
    bits = 4 if known and quant_min >= -8 and quant_max <= 7 else 8  # type: ignore[operator]
    block = None if block_size[1] == x.shape[1] else int(block_size[1])
    return Integers(x, scale, 0, block, bits)


def _same(x: Folded, *rest: Any, result: Folded) -> Integers | None:
    return x.integers if result.shape == x.shape else None


_RULES: dict[str, Callable[..., Integers | None]] = {
    "aten.to.dtype": _made_float,
    "aten._to_copy.default": _made_float,
    "aten.type_as.default": _made_float,
    "aten.t.default": _transposed,
    "aten.numpy_T.default": _transposed,
    "aten.mT.default": _transposed,
    "aten.transpose.int": _transposed,
    "aten.mul.Tensor": _scaled,
    "torchao.dequantize_affine.default": _affine,
    "aten.alias.default": _same,
    "aten.contiguous.default": _same,
    "aten.detach.default": _same,
    "aten.clone.default": _same,
}
"""By name: torchao's ops are only there where it is imported."""
