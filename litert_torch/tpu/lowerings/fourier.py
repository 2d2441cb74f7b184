"""Fourier transforms, one axis after another."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array

aten = torch.ops.aten

_NONE, _BY_ROOT, _BY_COUNT = range(3)


def _scaled(x: Array, count: Any, normalization: int) -> Array:
    if normalization == _NONE:
        return x
    part = jnp.real(x).dtype
    divisor = jnp.asarray(count, part)
    return x / (jnp.sqrt(divisor) if normalization == _BY_ROOT else divisor).astype(x.dtype)


def _count(shape: Sequence[Any], dim: Sequence[int]) -> Any:
    count: Any = 1
    for d in dim:
        count = count * shape[d]
    return count


@lowers(aten._fft_c2c.default)
def fft_c2c(x: Array, dim: Sequence[int], normalization: int, forward: bool) -> Array:
    """Complex to complex along axes."""
    result = x
    for d in dim:
        size = x.shape[d]
        result = jnp.fft.fft(result, axis=d) if forward else jnp.fft.ifft(result, axis=d) * size
    return _scaled(result.astype(x.dtype), _count(x.shape, dim), normalization)


@lowers(aten._fft_r2c.default)
def fft_r2c(x: Array, dim: Sequence[int], normalization: int, onesided: bool) -> Array:
    """Real to complex along axes; of the last one, only the half that says all, where asked."""
    *others, last = dim
    result = (jnp.fft.rfft if onesided else jnp.fft.fft)(x, axis=last)
    for d in others:
        result = jnp.fft.fft(result, axis=d)
    return _scaled(result, _count(x.shape, dim), normalization)


@lowers(aten._fft_c2r.default)
def fft_c2r(x: Array, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Array:
    """The half of a spectrum that says all, back to real numbers."""
    *others, last = dim
    result = x
    for d in others:
        result = jnp.fft.ifft(result, axis=d) * x.shape[d]
    real = jnp.fft.irfft(result, n=last_dim_size, axis=last) * last_dim_size
    return _scaled(real.astype(jnp.real(x).dtype), _count(real.shape, dim), normalization)
