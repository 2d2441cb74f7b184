"""Values put back to the places that max pooling took them from."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.indexing import as_index
from litert_torch.tpu.lowerings.promotion import Array

aten = torch.ops.aten


def _unpooled(x: Array, indices: Array, sizes: Sequence[int]) -> Array:
    leading = x.shape[: x.ndim - len(sizes)]
    rows, count = 1, 1
    for n in leading:
        rows *= n
    for n in sizes:
        count *= n
    places = as_index(indices).reshape(rows, -1)
    flat = jnp.zeros((rows, count), x.dtype)
    filled = flat.at[jnp.arange(rows)[:, None], places].set(x.reshape(rows, -1))
    return filled.reshape(*leading, *sizes)


@lowers(aten.max_unpool2d.default)
def max_unpool2d(x: Array, indices: Array, output_size: Sequence[int]) -> Array:
    """X [..., H, W] at places of zeros of the given size."""
    return _unpooled(x, indices, output_size)


@lowers(aten.max_unpool3d.default)
def max_unpool3d(
    x: Array,
    indices: Array,
    output_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> Array:
    """X [..., D, H, W] at places of zeros of the given size."""
    return _unpooled(x, indices, output_size)


@lowers(aten.fractional_max_pool2d.default)
def fractional_max_pool2d(
    x: Array, kernel_size: Any, output_size: Any, random_samples: Array
) -> tuple[Array, Array]:
    """(maxima of windows at random steps, their places)."""
    return _fractional(x, kernel_size, output_size, random_samples)


@lowers(aten.fractional_max_pool3d.default)
def fractional_max_pool3d(
    x: Array, kernel_size: Any, output_size: Any, random_samples: Array
) -> tuple[Array, Array]:
    """(maxima of windows at random steps, their places)."""
    return _fractional(x, kernel_size, output_size, random_samples)


def _starts(sample: Array, size: int, result: int, kernel: int) -> Array:
    """[N, C, result]: where windows begin, for samples [N, C] in [0, 1)."""
    index = jnp.arange(result, dtype=sample.dtype)
    last = jnp.full(sample.shape, size - kernel, jnp.int32)[..., None]
    if result == 1:
        return last
    alpha = jnp.asarray((size - kernel) / (result - 1), sample.dtype)
    moved = (index + sample[..., None]) * alpha
    steps = moved.astype(jnp.int32) - (sample[..., None] * alpha).astype(jnp.int32)
    return jnp.where(jnp.arange(result) == result - 1, last, steps)


def _fractional(x: Array, kernel: Any, result: Any, samples: Array) -> tuple[Array, Array]:
    """Samples are [N, C, axes], from the last axis of x on where there are two."""
    axes = len(result)
    batched = x if x.ndim == axes + 2 else x[None]
    sizes = batched.shape[2:]
    flat = jnp.zeros((*batched.shape[:2], *[1] * (2 * axes)), jnp.int32)
    for i in range(axes):
        sample = samples[..., axes - 1 - i] if axes == 2 else samples[..., i]
        starts = _starts(sample, sizes[i], result[i], kernel[i])
        places = starts[..., None] + jnp.arange(kernel[i], dtype=jnp.int32)
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = result[i], kernel[i]
        flat = flat * sizes[i] + places.reshape(*places.shape[:2], *shape)
    windows = flat.reshape(*batched.shape[:2], *result, -1)
    rows = batched.reshape(*batched.shape[:2], -1)
    taken = jnp.take_along_axis(rows, windows.reshape(*rows.shape[:2], -1), -1)
    taken = taken.reshape(windows.shape)
    best = jnp.argmax(taken, -1, keepdims=True)
    chosen = [jnp.take_along_axis(t, best, -1)[..., 0] for t in (taken, windows)]
    full = (*x.shape[: x.ndim - axes], *result)
    return chosen[0].reshape(full), chosen[1].reshape(full).astype(jnp.int64)
