"""Tensors from numbers."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    DType,
    Operand,
    as_dtype,
    default_float,
    is_integral,
    result_dtype,
    to_numpy,
)

aten = torch.ops.aten

Size = Any  # an int or a symbolic dimension
_INT64_CODE = 4  # the schema's default for dtype
_EXACT = 2**24  # whole numbers up to this are exact in float32


def _or_float(dtype: torch.dtype | None) -> DType:
    return default_float() if dtype is None else to_numpy(dtype)


def _of_number(value: Any, dtype: torch.dtype | None) -> DType:
    """What PyTorch gives a number where no dtype is asked for."""
    if dtype is not None:
        return to_numpy(dtype)
    return default_float() if isinstance(value, float) else result_dtype(value)


def _filled(size: Sequence[Size], value: Operand, dtype: DType) -> Array:
    return jnp.broadcast_to(as_dtype(value, dtype), tuple(size))


@lowers(aten.full.default)
def full(
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """One value everywhere."""
    return _filled(size, fill_value, _of_number(fill_value, dtype))


@lowers(aten.zeros.default)
def zeros(
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Zeros."""
    return _filled(size, 0, _or_float(dtype))


@lowers(aten.ones.default)
def ones(
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Ones."""
    return _filled(size, 1, _or_float(dtype))


@lowers(aten.empty.memory_format)
def empty(
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Zeros: as good as what memory holds."""
    return _filled(size, 0, _or_float(dtype))


@lowers(aten.empty_strided.default)
def empty_strided(
    size: Sequence[Size],
    stride: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Zeros: as good as what memory holds."""
    return _filled(size, 0, _or_float(dtype))


@lowers(aten.empty_permuted.default)
def empty_permuted(
    size: Sequence[Size],
    physical_layout: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Zeros: as good as what memory holds."""
    return _filled(size, 0, _or_float(dtype))


@lowers(aten.full_like.default)
def full_like(
    x: Array,
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """One value, in the shape of x."""
    return _filled(x.shape, fill_value, x.dtype if dtype is None else to_numpy(dtype))


def _filled_like(value: int) -> Any:
    def lowering(
        x: Array,
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> Array:
        return _filled(x.shape, value, x.dtype if dtype is None else to_numpy(dtype))

    return lowering


def _new_filled(value: int) -> Any:
    def lowering(
        x: Array,
        size: Sequence[Size],
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Array:
        return _filled(size, value, x.dtype if dtype is None else to_numpy(dtype))

    return lowering


lowers.one_to_one(
    {
        aten.zeros_like.default: _filled_like(0),
        aten.ones_like.default: _filled_like(1),
        aten.empty_like.default: _filled_like(0),
        aten.new_zeros.default: _new_filled(0),
        aten.new_ones.default: _new_filled(1),
        aten.new_empty.default: _new_filled(0),
    }
)


@lowers(aten.new_full.default)
def new_full(
    x: Array,
    size: Sequence[Size],
    fill_value: Operand,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """One value, in the dtype of x."""
    return _filled(size, fill_value, x.dtype if dtype is None else to_numpy(dtype))


@lowers(aten.new_empty_strided.default)
def new_empty_strided(
    x: Array,
    size: Sequence[Size],
    stride: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Zeros: as good as what memory holds."""
    return _filled(size, 0, x.dtype if dtype is None else to_numpy(dtype))


@lowers(aten.scalar_tensor.default)
def scalar_tensor(
    s: Operand,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """A tensor without axes."""
    return as_dtype(s, _or_float(dtype))


def steps(start: Any, end: Any, step: Any, dtype: torch.dtype | None) -> Array:
    """start, start + step, ... before end."""
    numbers = (start, end, step)
    fractional = any(isinstance(n, float) for n in numbers)
    want = (default_float() if fractional else INT64) if dtype is None else to_numpy(dtype)
    if fractional:
        count: Size = max(0, int(-(-(float(end) - float(start)) // float(step))))
    else:
        count = (end - start) if isinstance(step, int) and step == 1 else -((start - end) // step)
        count = max(0, count) if isinstance(count, int) else count
    if is_integral(want):
        start, step = (int(n) if isinstance(n, float) else n for n in (start, step))
        return as_dtype(start, want) + as_dtype(step, want) * lax.iota(want, count)
    whole = all(isinstance(n, int) for n in numbers) and max(map(abs, numbers)) < _EXACT
    compute = FLOAT32 if whole else FLOAT64  # PyTorch computes in double
    values = as_dtype(start, compute) + as_dtype(step, compute) * lax.iota(compute, count)
    return as_dtype(values, want)


@lowers(aten.arange.default)
def arange(
    end: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """0, 1, ... before end."""
    return steps(0, end, 1, dtype)


@lowers(aten.arange.start)
def arange_start(
    start: Any,
    end: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """start, start + 1, ... before end."""
    return steps(start, end, 1, dtype)


@lowers(aten.arange.start_step)
def arange_start_step(
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """start, start + step, ... before end."""
    return steps(start, end, step, dtype)


def even_steps(start: Operand, end: Operand, count: Size, dtype: DType) -> Array:
    """`count` numbers from start to end, each computed from the nearer end."""
    compute = FLOAT64 if is_integral(dtype) else dtype
    a, b = (jnp.reshape(as_dtype(n, compute), ()) for n in (start, end))
    index = lax.iota(INT64, count)
    step = (b - a) / as_dtype(max(count - 1, 1) if isinstance(count, int) else count - 1, compute)
    below = a + step * index.astype(compute)
    above = b - step * (count - 1 - index).astype(compute)
    return (
        as_dtype(jnp.where(index < count // 2, below, above), dtype)
        if count != 1
        else (as_dtype(a, dtype).reshape(1))
    )


@lowers(
    aten.linspace.default,
    aten.linspace.Tensor_Tensor,
    aten.linspace.Tensor_Scalar,
    aten.linspace.Scalar_Tensor,
)
def linspace(
    start: Operand,
    end: Operand,
    steps: Size,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Evenly spaced numbers from start to end."""
    return even_steps(start, end, steps, _spaced_dtype(start, end, dtype))


def _spaced_dtype(start: Operand, end: Operand, dtype: torch.dtype | None) -> DType:
    return default_float() if dtype is None else to_numpy(dtype)


@lowers(
    aten.logspace.default,
    aten.logspace.Tensor_Tensor,
    aten.logspace.Tensor_Scalar,
    aten.logspace.Scalar_Tensor,
)
def logspace(
    start: Operand,
    end: Operand,
    steps: Size,
    base: float = 10.0,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """base ** x for evenly spaced x."""
    want = _spaced_dtype(start, end, dtype)
    exponents = even_steps(start, end, steps, FLOAT64)
    return as_dtype(jnp.power(as_dtype(base, FLOAT64), exponents), want)


@lowers(aten.eye.default)
def eye(
    n: Size,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """The identity matrix."""
    return jnp.eye(n, dtype=_or_float(dtype))


@lowers(aten.eye.m)
def eye_m(
    n: Size,
    m: Size,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Ones on the diagonal of an n x m matrix."""
    return jnp.eye(n, m, dtype=_or_float(dtype))


@lowers(aten.tril.default)
def tril(x: Array, diagonal: int = 0) -> Array:
    """X, 0 above a diagonal."""
    return jnp.tril(x, diagonal)


@lowers(aten.triu.default)
def triu(x: Array, diagonal: int = 0) -> Array:
    """X, 0 below a diagonal."""
    return jnp.triu(x, diagonal)


def _triangle(choose: Any) -> Any:
    def lowering(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: torch.dtype | int | None = _INT64_CODE,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Array:
        places = jnp.stack(choose(row, offset, col))
        return as_dtype(places, dtype if isinstance(dtype, torch.dtype) else torch.int64)

    return lowering


lowers.one_to_one(
    {
        aten.tril_indices.default: _triangle(jnp.tril_indices),
        aten.triu_indices.default: _triangle(jnp.triu_indices),
    }
)
