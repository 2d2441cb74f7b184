"""Operands of mixed dtypes, brought to the one that PyTorch computes in."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim
from litert_torch.converter.dtypes import DType
from litert_torch.converter.dynamic_sizes import scalar
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings.kernel_dtypes import wide
from litert_torch.converter.torch_types import compute_dtype

Operand = Any  # Value, Python number, or Dim


def promoted(g: Graph, *operands: Operand) -> list[Value]:
    """The operands as Values of PyTorch's result dtype (torch.result_type), unbroadcast."""
    return converted(g, result_dtype(*operands), *operands)


def converted(g: Graph, dtype: DType, *operands: Operand) -> list[Value]:
    """The operands as Values of `dtype`."""
    return [as_value(g, x, dtype) for x in operands]


def computed(g: Graph, emit: Callable[..., Value], *operands: Operand) -> Value:
    """`emit` of the operands, of any shapes, its result in PyTorch's result dtype.

    It computes in float32, int32 or int64. Casts back wrap around, as PyTorch's integers do.
    """
    dtype = result_dtype(*operands)
    return tfl.cast(g, emit(g, *converted(g, wide(dtype), *operands)), dtype)


def compared(g: Graph, emit: Callable[..., Value], *operands: Operand) -> Value:
    """As `computed`, for an `emit` that gives bool."""
    return emit(g, *converted(g, wide(result_dtype(*operands)), *operands))


def as_float(g: Graph, x: Operand) -> Value:
    """x as PyTorch takes it where the result is never an integer: float32."""
    return as_value(g, x, DType.FLOAT32)


def as_value(g: Graph, x: Operand, dtype: DType) -> Value:
    """A tensor, number or dynamic size as a Value of `dtype`."""
    if isinstance(x, Value):
        return tfl.cast(g, x, dtype)
    if isinstance(x, Dim):
        return tfl.cast(g, scalar(g, x), dtype)
    return const(x, dtype)


def result_dtype(*operands: Operand) -> DType:
    """PyTorch's type promotion: tensors over zero-dimensional tensors over numbers."""
    kinds = tuple(
        (x.dtype, min(x.rank, 1)) if isinstance(x, Value) else type(_number(x)) for x in operands
    )
    return _result_dtype(kinds)


def _number(x: Any) -> Any:
    return 0 if isinstance(x, Dim) else x


@functools.cache
def _result_dtype(kinds: tuple[Any, ...]) -> DType:
    samples = [k() if isinstance(k, type) else _sample(*k) for k in kinds]
    result = samples[0]
    dtype = None
    for sample in samples[1:] or [result]:
        dtype = torch.result_type(result, sample)
        rank = max((x.dim() for x in (result, sample) if isinstance(x, torch.Tensor)), default=0)
        result = torch.empty([1] * rank, dtype=dtype, device="meta")
    return compute_dtype(dtype or torch.get_default_dtype())


def _sample(dtype: DType, rank: int) -> torch.Tensor:
    return torch.empty([1] * rank, dtype=getattr(torch, dtype), device="meta")
