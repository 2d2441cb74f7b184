"""Complex tensors made from sizes and numbers, where a size or a template is not known before."""

from collections.abc import Sequence
from typing import Any

import torch

from litert_torch.converter.complex_values import ComplexValue
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers_complex
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.torch_types import compute_dtype

aten = torch.ops.aten


def _filled(g: Graph, shape: Sequence[Size], value: complex) -> ComplexValue:
    parts = (value.real, value.imag)
    return ComplexValue(*(filled(g, shape, float(part), DType.FLOAT32) for part in parts))


def _of_dtype(
    g: Graph, shape: Sequence[Size], value: int, dtype: torch.dtype | None
) -> ComplexValue | Value:
    if dtype is None or dtype.is_complex:
        return _filled(g, shape, value)
    return filled(g, shape, value, compute_dtype(dtype))


@lowers_complex(aten.zeros.default)
def zeros(
    g: Graph,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> ComplexValue:
    """0 everywhere."""
    return _filled(g, size, 0)


@lowers_complex(aten.ones.default)
def ones(
    g: Graph,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> ComplexValue:
    """1 everywhere."""
    return _filled(g, size, 1)


@lowers_complex(aten.full.default)
def full(
    g: Graph,
    size: Sequence[Size],
    fill_value: complex,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> ComplexValue:
    """`fill_value` everywhere."""
    return _filled(g, size, fill_value)


@lowers_complex(aten.new_zeros.default)
def new_zeros(
    g: Graph,
    x: ComplexValue | Value,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> ComplexValue | Value:
    """0 everywhere, in a dtype that may be real although x is not."""
    return _of_dtype(g, size, 0, dtype)


@lowers_complex(aten.zeros_like.default)
def zeros_like(
    g: Graph,
    x: ComplexValue | Value,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> ComplexValue | Value:
    """0 everywhere, of x's shape."""
    return new_zeros(g, x, x.shape, dtype=dtype)


@lowers_complex(aten.ones_like.default)
def ones_like(
    g: Graph,
    x: ComplexValue | Value,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> ComplexValue | Value:
    """1 everywhere, of x's shape."""
    return _of_dtype(g, x.shape, 1, dtype)
