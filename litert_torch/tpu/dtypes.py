"""PyTorch's dtypes as jax's.

Types are kept as they are, 64-bit ones too: programs are traced with jax's x64 mode on, so that
int64 arithmetic is exact. XLA emulates 64-bit types on TPU; indices are made int32 where they are
used.
"""

from typing import Any

import ml_dtypes
import numpy as np
import torch

from litert_torch.errors import UnsupportedCaseError

_BY_TORCH: dict[torch.dtype, np.dtype[Any]] = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.uint64: np.dtype(np.uint64),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float16: np.dtype(np.float16),
    torch.bfloat16: np.dtype(ml_dtypes.bfloat16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
    torch.float8_e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: np.dtype(ml_dtypes.float8_e5m2),
    torch.float8_e4m3fnuz: np.dtype(ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2fnuz: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
_BY_NUMPY = {n: t for t, n in _BY_TORCH.items()}


def to_jax(dtype: torch.dtype) -> np.dtype[Any]:
    """The same type for jax.

    Raises:
        UnsupportedCaseError: jax has none (quantized types, complex32).
    """
    try:
        return _BY_TORCH[dtype]
    except KeyError:
        raise UnsupportedCaseError(f"{dtype} has no counterpart in jax: cast it first") from None


def to_torch(dtype: Any) -> torch.dtype:
    """PyTorch's type for one of jax's or numpy's."""
    return _BY_NUMPY[np.dtype(dtype)]


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The tensor's contents as a numpy array, without a copy where it is contiguous."""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous().cpu()
    dtype = to_jax(tensor.dtype)
    if dtype.kind in "biufc":
        return plain.numpy()
    return plain.flatten().view(torch.uint8).numpy().view(dtype).reshape(tuple(plain.shape))
