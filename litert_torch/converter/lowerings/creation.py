"""Tensors made from sizes and numbers. With fixed sizes most are folded and never come here."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.dynamic_positions import positions
from litert_torch.converter.lowerings.promotion import Operand, as_float, as_value
from litert_torch.converter.lowerings.views import broadcast
from litert_torch.converter.torch_types import compute_dtype
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_STORED = 1 << 16  # bytes; a larger constant of one value is made when the model runs


def filled(g: Graph, shape: Sequence[Size], value: Operand, dtype: DType) -> Value:
    """`value` everywhere: a constant where it is small, else FILL."""
    shape = tuple(shape)
    if not isinstance(value, Dim) and dims.is_static(shape):
        sizes = dims.static(shape)
        if dtype.bytes_of(math.prod(sizes)) <= _STORED:
            return const(np.full(sizes, value, dtype.numpy), dtype)
    scalar = as_value(g, value, dtype)
    return tfl.fill(g, shape, scalar) if shape else scalar


def _default_dtype(value: Operand) -> DType:
    """What torch.full makes of a number."""
    if isinstance(value, bool):
        return DType.BOOL
    return DType.FLOAT32 if isinstance(value, float) else DType.INT64


def _chosen(dtype: torch.dtype | None, otherwise: DType = DType.FLOAT32) -> DType:
    return otherwise if dtype is None else compute_dtype(dtype)


@lowers(aten.full.default)
def full(
    g: Graph,
    size: Sequence[Size],
    fill_value: Operand,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """`fill_value` everywhere."""
    return filled(g, size, fill_value, _chosen(dtype, _default_dtype(fill_value)))


@lowers(aten.zeros.default)
def zeros(
    g: Graph,
    size: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """0 everywhere."""
    return filled(g, size, 0, _chosen(dtype))


@lowers(aten.ones.default)
def ones(
    g: Graph,
    size: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """1 everywhere."""
    return filled(g, size, 1, _chosen(dtype))


@lowers(aten.empty.memory_format)
def empty(
    g: Graph,
    size: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """Zeros, where PyTorch promises nothing."""
    return filled(g, size, 0, _chosen(dtype))


@lowers(aten.empty_strided.default)
def empty_strided(
    g: Graph,
    size: Sequence[Size],
    stride: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Zeros, where PyTorch promises nothing."""
    return filled(g, size, 0, _chosen(dtype))


@lowers(aten.empty_permuted.default)
def empty_permuted(
    g: Graph,
    size: Sequence[Size],
    physical_layout: Sequence[int],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Zeros, where PyTorch promises nothing."""
    return filled(g, size, 0, _chosen(dtype))


@lowers(aten.full_like.default)
def full_like(
    g: Graph,
    x: Value,
    fill_value: Operand,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """`fill_value` in x's shape."""
    return filled(g, x.shape, fill_value, _chosen(dtype, x.dtype))


@lowers(aten.zeros_like.default, aten.empty_like.default)
def zeros_like(
    g: Graph,
    x: Value,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """0 in x's shape."""
    return filled(g, x.shape, 0, _chosen(dtype, x.dtype))


@lowers(aten.ones_like.default)
def ones_like(
    g: Graph,
    x: Value,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """1 in x's shape."""
    return filled(g, x.shape, 1, _chosen(dtype, x.dtype))


@lowers(aten.new_full.default)
def new_full(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    fill_value: Operand,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """`fill_value` everywhere, in x's dtype."""
    return filled(g, size, fill_value, _chosen(dtype, x.dtype))


@lowers(aten.new_zeros.default, aten.new_empty.default)
def new_zeros(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """0 everywhere, in x's dtype."""
    return filled(g, size, 0, _chosen(dtype, x.dtype))


@lowers(aten.new_ones.default)
def new_ones(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """1 everywhere, in x's dtype."""
    return filled(g, size, 1, _chosen(dtype, x.dtype))


@lowers(aten.new_empty_strided.default)
def new_empty_strided(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    stride: Sequence[Size],
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Zeros in x's dtype, where PyTorch promises nothing."""
    return filled(g, size, 0, _chosen(dtype, x.dtype))


@lowers(aten.scalar_tensor.default)
def scalar_tensor(
    g: Graph,
    s: Operand,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """A number or dynamic size as a tensor without axes."""
    return as_value(g, s, _chosen(dtype))


@lowers(aten.zero.default)
def zero(g: Graph, x: Value) -> Value:
    """0 in x's shape: what `zero_` leaves."""
    return filled(g, x.shape, 0, x.dtype)


@lowers(aten.fill.Scalar)
def fill_scalar(g: Graph, x: Value, value: Operand) -> Value:
    """`value` in x's shape: what `fill_` leaves."""
    return filled(g, x.shape, value, x.dtype)


@lowers(aten.fill.Tensor)
def fill_tensor(g: Graph, x: Value, value: Value) -> Value:
    """The scalar tensor `value` in x's shape."""
    return broadcast(g, as_value(g, value, x.dtype), x.shape)


@lowers(aten.arange.default)
def arange(
    g: Graph,
    end: Operand,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """0, 1, ... below `end`."""
    return counted(g, 0, end, 1, dtype)


@lowers(aten.arange.start)
def arange_start(
    g: Graph,
    start: Operand,
    end: Operand,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Start, start + 1, ... below `end`."""
    return counted(g, start, end, 1, dtype)


@lowers(aten.arange.start_step)
def arange_start_step(
    g: Graph,
    start: Operand,
    end: Operand,
    step: Operand = 1,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Start, start + step, ... before `end`."""
    return counted(g, start, end, step, dtype)


def counted(
    g: Graph, start: Operand, end: Operand, step: Operand, dtype: torch.dtype | None
) -> Value:
    """The arithmetic progression of torch.arange."""
    numbers = (start, end, step)
    integral = not any(isinstance(n, float) for n in numbers)
    kind = _chosen(dtype, DType.INT64 if integral else DType.FLOAT32)
    if not integral:
        return _counted_floats(g, start, end, step, kind)
    size = _steps(start, end, step)
    counted_in = kind if kind in (DType.INT32, DType.INT64) else DType.INT32
    first, limit, delta = (as_value(g, n, counted_in) for n in numbers)
    return tfl.cast(g, tfl.range(g, first, limit, delta, size), kind)


def _steps(start: Size, end: Size, step: Size) -> Size:
    if isinstance(step, Dim):
        raise UnsupportedCaseError(f"arange with a dynamic step ({step}): multiply it instead")
    if step < 0:
        return (start - end + (-step - 1)) // -step
    return end - start if step == 1 else (end - start + (step - 1)) // step


def _counted_floats(g: Graph, start: Operand, end: Operand, step: Operand, kind: DType) -> Value:
    if any(isinstance(n, Dim) for n in (start, end, step)):
        raise UnsupportedCaseError(
            "arange of floats up to a dynamic size: take integers and multiply by the step"
        )
    size = max(math.ceil((end - start) / step), 0)
    steps = as_float(g, positions(g, size))
    return tfl.cast(g, tfl.add(g, tfl.mul(g, steps, as_float(g, step)), as_float(g, start)), kind)


@lowers(aten.linspace.default)
def linspace(
    g: Graph,
    start: float,
    end: float,
    steps: Size,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """`steps` numbers from `start` to `end`, both included."""
    gaps = tfl.maximum(g, as_float(g, steps - 1), as_float(g, 1))
    step = tfl.div(g, as_float(g, end - start), gaps)
    numbers = tfl.mul(g, as_float(g, positions(g, steps)), step)
    return tfl.cast(g, tfl.add(g, numbers, as_float(g, start)), _chosen(dtype))


@lowers(aten.eye.default)
def eye(
    g: Graph,
    n: Size,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """The identity matrix [n, n]."""
    return eye_m(g, n, n, dtype)


@lowers(aten.eye.m)
def eye_m(
    g: Graph,
    n: Size,
    m: Size,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """1 on the diagonal of [n, m]."""
    rows = tfl.reshape(g, positions(g, n), (n, 1))
    columns = tfl.reshape(g, positions(g, m), (1, m))
    return tfl.cast(g, tfl.equal(g, rows, columns), _chosen(dtype))
