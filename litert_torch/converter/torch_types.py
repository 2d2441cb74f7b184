"""PyTorch's dtypes and sizes as this package's."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import sympy
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


_FIXED: ContextVar[Mapping[Any, sympy.Integer] | None] = ContextVar("_FIXED", default=None)


@contextmanager
def symbols_fixed(sizes: Mapping[Any, int]) -> Iterator[None]:
    """Inside the block, `to_size` takes each of these symbols of a program for its number."""
    token = _FIXED.set({symbol: sympy.Integer(size) for symbol, size in sizes.items()})
    try:
        yield
    finally:
        _FIXED.reset(token)


def to_size(s: Any) -> Any:
    """A Python number, or a `Dim` for a SymInt that is not one; anything else as it is."""
    if not isinstance(s, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return s
    fixed = _FIXED.get()
    expression = s.node.expr.xreplace(fixed) if fixed else s.node.expr
    return dims.size(expression) if isinstance(s, torch.SymInt) else expression
