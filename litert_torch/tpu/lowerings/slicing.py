"""Parts of tensors along their axes, and writes to such parts."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax
from jax.core import max_dim, min_dim

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, Array, as_dtype, is_array
from litert_torch.tpu.lowerings.views import Size, axis_of

aten = torch.ops.aten


def bounds(start: Size, end: Size, size: Size) -> tuple[Size, Size]:
    """First and end of a slice within [0, size], as Python and PyTorch clamp them."""
    first = 0 if start is None else _clamped(start, size)
    last = size if end is None else _clamped(end, size)
    return first, last


def _clamped(at: Size, size: Size) -> Size:
    if isinstance(at, int):
        if at >= 2**62:
            return size
        if isinstance(size, int):
            return min(max(at + size if at < 0 else at, 0), size)
        return max_dim(size + at, 0) if at < 0 else min_dim(at, size)
    return min_dim(at, size) if _maybe_beyond(at, size) else at


def _maybe_beyond(at: Size, size: Size) -> bool:
    """Whether nothing proves that `at` is within the size."""
    try:
        return not at <= size
    except Exception:  # jax raises an error of its own where it cannot decide
        return True


@lowers(aten.slice.Tensor)
def slice(x: Array, dim: int = 0, start: Size = None, end: Size = None, step: int = 1) -> Array:
    """X from `start` to before `end` along an axis."""
    axis = dim % x.ndim
    first, last = bounds(start, end, x.shape[axis])
    if isinstance(first, int) and isinstance(last, int):
        last = max(first, last)
    return lax.slice_in_dim(x, first, last, step, axis)


@lowers(aten.slice_scatter.default)
def slice_scatter(
    x: Array, src: Array, dim: int = 0, start: Size = None, end: Size = None, step: int = 1
) -> Array:
    """X with `src` in place of a slice."""
    axis = dim % x.ndim
    first, last = bounds(start, end, x.shape[axis])
    src = as_dtype(src, x.dtype)
    if step == 1:
        if isinstance(first, int) and isinstance(last, int) and last <= first:
            return x
        return lax.dynamic_update_slice_in_dim(x, src, first, axis)
    places = first + step * lax.iota(INT32, src.shape[axis])
    return x.at[(*[jnp.s_[:]] * axis, places)].set(src)


@lowers(aten.select.int)
def select(x: Array, dim: int, index: Size) -> Array:
    """The part of x at one place of an axis, without that axis."""
    axis = dim % x.ndim
    if is_array(index):
        return lax.dynamic_index_in_dim(x, index, axis, keepdims=False)
    at = index + x.shape[axis] if isinstance(index, int) and index < 0 else index
    return (
        lax.index_in_dim(x, at, axis, keepdims=False)
        if isinstance(at, int)
        else (lax.dynamic_index_in_dim(x, jnp.asarray(at), axis, keepdims=False))
    )


@lowers(aten.select_scatter.default)
def select_scatter(x: Array, src: Array, dim: int, index: Size) -> Array:
    """X with `src` at one place of an axis."""
    axis = dim % x.ndim
    return lax.dynamic_update_index_in_dim(x, as_dtype(src, x.dtype), index, axis)


@lowers(aten.narrow.default, aten.narrow.Tensor)
def narrow(x: Array, dim: int, start: Any, length: Size) -> Array:
    """`length` elements from `start` along an axis."""
    axis = dim % x.ndim
    if is_array(start):
        return lax.dynamic_slice_in_dim(x, start.reshape(()), length, axis)
    first = start + x.shape[axis] if isinstance(start, int) and start < 0 else start
    return lax.slice_in_dim(x, first, first + length, 1, axis)


@lowers(aten.split_with_sizes.default, aten.unsafe_split_with_sizes.default)
def split_with_sizes(x: Array, split_sizes: Sequence[Size], dim: int = 0) -> list[Array]:
    """Consecutive parts of the given sizes."""
    parts, at = [], 0
    for size in split_sizes:
        parts.append(lax.slice_in_dim(x, at, at + size, 1, dim % x.ndim))
        at = at + size
    return parts


@lowers(aten.split.Tensor, aten.unsafe_split.Tensor)
def split(x: Array, split_size: Size, dim: int = 0) -> list[Array]:
    """Consecutive parts of one size, the last one smaller."""
    return _parts(x, split_size, dim)


@lowers(aten.split.sizes)
def split_sizes(x: Array, split_size: Sequence[Size], dim: int = 0) -> list[Array]:
    """Consecutive parts of the given sizes."""
    return split_with_sizes(x, split_size, dim)


@lowers(aten.chunk.default, aten.unsafe_chunk.default)
def chunk(x: Array, chunks: int, dim: int = 0) -> list[Array]:
    """So many parts of one size, the last one smaller; fewer where that covers all."""
    size = x.shape[axis_of(dim, x.ndim)]
    if isinstance(size, int) and size == 0:
        return [x] * chunks
    return _parts(x, -(-size // chunks), dim)


def _parts(x: Array, size: Size, dim: int) -> list[Array]:
    axis = dim % x.ndim
    total = x.shape[axis]
    if isinstance(total, int) and total == 0:
        return [x]
    count = -(-total // size)
    edges = [i * size for i in range(int(count))] + [total]
    return [lax.slice_in_dim(x, a, b, 1, axis) for a, b in itertools.pairwise(edges)]


@lowers(aten.unbind.int)
def unbind(x: Array, dim: int = 0) -> list[Array]:
    """Every part along an axis, without it."""
    axis = dim % x.ndim
    return [lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])]


@lowers(aten.diagonal.default)
def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """A diagonal of two axes, as the last axis."""
    return jnp.diagonal(x, offset, dim1, dim2)


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(x: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """X with `src` on a diagonal of two axes."""
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    places = jnp.arange(src.shape[-1], dtype=INT32)
    rows, columns = places + max(-offset, 0), places + max(offset, 0)
    written = moved.at[..., rows, columns].set(as_dtype(src, x.dtype))
    return jnp.moveaxis(written, (-2, -1), (dim1, dim2))


@lowers(aten.diag_embed.default)
def diag_embed(x: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Matrices with the last axis on a diagonal, zeros elsewhere."""
    size = x.shape[-1] + abs(offset)
    zeros = jnp.zeros((*x.shape[:-1], size, size), x.dtype)
    return jnp.moveaxis(diagonal_scatter(zeros, x, offset, -2, -1), (-2, -1), (dim1, dim2))


@lowers(aten.flip.default)
def flip(x: Array, dims: Sequence[int]) -> Array:
    """Back to front along axes."""
    return jnp.flip(x, [d % x.ndim for d in dims]) if x.ndim else x


@lowers(aten.roll.default)
def roll(x: Array, shifts: Sequence[Size], dims: Sequence[int] = []) -> Array:
    """Moved along axes, around the end; without axes, as one flat row."""
    if not dims:
        return jnp.roll(x.reshape(-1), next(iter(shifts))).reshape(x.shape)
    return jnp.roll(x, tuple(shifts), tuple(dims)) if x.ndim else x


@lowers(aten.resize.default)
def resize(x: Array, size: Sequence[int], *, memory_format: Any = None) -> Array:
    """The first elements in another shape; what is beyond them is not defined."""
    count = 1
    for s in size:
        count *= s
    flat = x.reshape(-1)[:count]
    missing = count - flat.shape[0]
    return jnp.pad(flat, (0, missing)).reshape(tuple(size))
