"""Changes of dtype, and ops that return their operand."""

from typing import Any

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.torch_types import compute_dtype

aten = torch.ops.aten


def _cast(g: Graph, x: Value, dtype: torch.dtype | None) -> Value:
    """x as `dtype`; a float becomes an integer towards zero, and a half type stays float32."""
    return x if dtype is None else tfl.cast(g, x, compute_dtype(dtype))


@lowers(aten.to.dtype)
def to_dtype(
    g: Graph,
    x: Value,
    dtype: torch.dtype,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """CAST."""
    return _cast(g, x, dtype)


@lowers(aten.to.device)
def to_device(
    g: Graph,
    x: Value,
    device: torch.device,
    dtype: torch.dtype,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """CAST; a file has no devices."""
    return _cast(g, x, dtype)


@lowers(aten.to.dtype_layout)
def to_dtype_layout(
    g: Graph,
    x: Value,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """CAST; a file has no devices."""
    return _cast(g, x, dtype)


@lowers(aten._to_copy.default)
def to_copy(
    g: Graph,
    x: Value,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Value:
    """CAST."""
    return _cast(g, x, dtype)


@lowers(aten.to.other)
def to_other(
    g: Graph,
    x: Value,
    other: Value,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    """CAST to the dtype of `other`."""
    return tfl.cast(g, x, other.dtype)


@lowers(aten.type_as.default)
def type_as(g: Graph, x: Value, other: Value) -> Value:
    """CAST to the dtype of `other`."""
    return tfl.cast(g, x, other.dtype)


@lowers(torch.ops.prims.convert_element_type.default)
def convert_element_type(g: Graph, a: Value, dtype: torch.dtype) -> Value:
    """CAST, as PyTorch's own decompositions spell it."""
    return _cast(g, a, dtype)


@lowers(
    aten.alias.default,
    aten.detach.default,
    aten.lift.default,
    aten.lift_fresh.default,
    aten.lift_fresh_copy.default,
    aten.positive.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def itself(g: Graph, x: Value) -> Value:
    """x: values in a graph are never written."""
    return x


@lowers(aten.clone.default)
def clone(g: Graph, x: Value, memory_format: Any = None) -> Value:
    """x: values in a graph are never written."""
    return x


@lowers(aten.contiguous.default)
def contiguous(g: Graph, x: Value, memory_format: Any = 0) -> Value:
    """x: tensors in a file have no strides."""
    return x
