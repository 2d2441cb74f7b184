"""Operands of mixed dtypes, brought to the one that PyTorch computes in.

jax's own promotion differs: its weak types and its float64 for sqrt of an int64 are not PyTorch's.
Every lowering that combines operands goes through here, so that jax only sees equal dtypes.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array as Array

from litert_torch.tpu.dtypes import to_jax

DType = np.dtype[Any]
Operand = Any  # an array, a Python number, or a symbolic dimension

FLOAT32, INT64, INT32 = (np.dtype(t) for t in (np.float32, np.int64, np.int32))
BOOL, FLOAT64, INT8 = (np.dtype(t) for t in (np.bool_, np.float64, np.int8))

_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)
_OF_NUMBER = {bool: BOOL, float: FLOAT32, complex: np.dtype(np.complex64)}


def is_float(x: Array | DType) -> bool:
    """Whether it is real and has fractions, half precisions and float8 included."""
    return _category(_dtype(x)) == _FLOAT


def is_complex(x: Array | DType) -> bool:
    """Whether it has an imaginary part."""
    return _category(_dtype(x)) == _COMPLEX


def is_integral(x: Array | DType) -> bool:
    """Whether it is an integer or bool."""
    return _category(_dtype(x)) <= _INTEGER


def is_array(x: Any) -> bool:
    """Whether it is a tensor of the program, and no number."""
    return isinstance(x, (jax.Array, np.ndarray, np.generic))


def result_dtype(*operands: Operand) -> DType:
    """PyTorch's type promotion: tensors over zero-dimensional tensors over numbers."""
    groups: list[list[DType]] = [[], [], []]
    for x in operands:
        groups[_rank(x)].append(_dtype(x))
    joined = [reduce(jnp.promote_types, g) for g in groups if g]
    return reduce(_over, joined)


def promoted(*operands: Operand) -> list[Array]:
    """The operands as arrays of PyTorch's result dtype (torch.result_type), unbroadcast."""
    dtype = result_dtype(*operands)
    return [as_dtype(x, dtype) for x in operands]


def promoted_floats(*operands: Operand) -> list[Array]:
    """As `promoted`, for ops that give no integers: those become float32."""
    dtype = float_dtype(result_dtype(*operands))
    return [as_dtype(x, dtype) for x in operands]


def as_dtype(x: Operand, dtype: torch.dtype | DType | None) -> Array:
    """`x` converted as PyTorch converts: integers wrap around; None keeps the dtype."""
    if not is_array(x):
        return _constant(x, to_numpy(dtype) if dtype is not None else _dtype(x))
    if dtype is None or x.dtype == to_numpy(dtype):
        return jnp.asarray(x)
    want = to_numpy(dtype)
    if is_complex(x.dtype) and not is_complex(want):
        x = x != 0 if want == BOOL else jnp.real(x)
    if is_float(x.dtype) and is_integral(want) and want.itemsize < INT64.itemsize and want != BOOL:
        x = x.astype(INT64)  # XLA saturates where C++ goes through a wider integer
    return jnp.asarray(x).astype(want)


def float_dtype(dtype: DType) -> DType:
    """The dtype itself, or float32 for integers and bool."""
    return FLOAT32 if is_integral(dtype) else dtype


def as_float(x: Operand) -> Array:
    """`x`, with integers and bool as float32."""
    return as_dtype(x, float_dtype(_dtype(x)))


def real_dtype(dtype: DType) -> DType:
    """The dtype of a complex number's parts; others as they are."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def wide(x: Array) -> Array:
    """`x` in the type PyTorch accumulates in: half precisions as float32."""
    return x.astype(FLOAT32) if is_float(x) and x.dtype.itemsize < FLOAT32.itemsize else x


def computed_wide(function: Callable[..., Array], *operands: Array, dtype: Any = None) -> Array:
    """`function` of the operands in `wide` types, the result in `dtype` or the first one's."""
    return as_dtype(function(*map(wide, operands)), dtype or operands[0].dtype)


def to_numpy(dtype: torch.dtype | DType) -> DType:
    """A dtype of either library as numpy's."""
    return to_jax(dtype) if isinstance(dtype, torch.dtype) else np.dtype(dtype)


def default_float() -> DType:
    """What numbers with fractions become: torch.get_default_dtype()."""
    return to_jax(torch.get_default_dtype())


def _constant(x: Operand, dtype: DType) -> Array:
    if isinstance(x, (bool, int, float, complex)):
        with np.errstate(all="ignore"):
            wrapped = isinstance(x, int) and is_integral(dtype) and dtype != BOOL
            value = (
                np.asarray(x & (2 ** (8 * dtype.itemsize) - 1), f"u{dtype.itemsize}")
                if (wrapped)
                else np.asarray(x)
            )
            if is_complex(value.dtype) and not is_complex(dtype):
                value = value.real
            return jnp.asarray(value.astype(dtype))
    return jnp.asarray(x).astype(dtype)  # a symbolic dimension


def _rank(x: Operand) -> int:
    """0 for tensors with axes, 1 for tensors without, 2 for numbers."""
    return 2 if not is_array(x) else 0 if x.ndim else 1


def _dtype(x: Any) -> DType:
    if isinstance(x, np.dtype):
        return x
    if is_array(x):
        return np.dtype(x.dtype)
    return _OF_NUMBER.get(type(x), INT64)


def _category(dtype: DType) -> int:
    if dtype == BOOL:
        return _BOOL
    if dtype.kind in "iu":
        return _INTEGER
    return _COMPLEX if dtype.kind == "c" else _FLOAT


def _over(high: DType, low: DType) -> DType:
    """`high`, unless `low` is of a category that holds more numbers."""
    if _category(low) <= _category(high):
        return high
    if _category(high) == _FLOAT:
        return np.dtype(np.complex128 if high == FLOAT64 else np.complex64)
    return low
