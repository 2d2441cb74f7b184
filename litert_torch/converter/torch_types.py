"""PyTorch's dtypes and sizes as this package's."""

from typing import Any

import torch

from litert_torch.converter import dims
from litert_torch.converter.dtypes import DType

COMPUTED_AS = {
    torch.float64: DType.FLOAT32,
    torch.float16: DType.FLOAT32,
    torch.bfloat16: DType.FLOAT32,
}
"""Types that compute in float32; the signature keeps the module's own."""


def dtype_of(dtype: torch.dtype) -> DType:
    """The type that a tensor of `dtype` has in the file."""
    return DType(str(dtype).removeprefix("torch."))


def compute_dtype(dtype: torch.dtype) -> DType:
    """The type that a tensor of `dtype` is computed in."""
    return COMPUTED_AS.get(dtype) or dtype_of(dtype)


def shape_of(fake: torch.Tensor) -> dims.Shape:
    """The shape of a fake tensor; symbolic sizes become `Dim`s."""
    return tuple(to_size(s) for s in fake.shape)


def to_size(s: Any) -> Any:
    """A Python number, or a `Dim` for a SymInt that is not one; anything else as it is."""
    if isinstance(s, torch.SymInt):
        return dims.size(s.node.expr)
    if isinstance(s, (torch.SymFloat, torch.SymBool)):
        return s.node.expr
    return s
