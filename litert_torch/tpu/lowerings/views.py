"""The same elements in another shape or order of axes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array

aten = torch.ops.aten

Size = Any  # an int or a symbolic dimension


def axis_of(dim: int, rank: int) -> int:
    """`dim` counted from the front; a tensor without axes has an axis 0, too."""
    return dim % max(rank, 1)


@lowers(aten.view.default)
def view(x: Array, size: Sequence[Size]) -> Array:
    """The elements in another shape; -1 is what is left."""
    return _reshaped(x, size)


@lowers(aten.reshape.default)
def reshape(x: Array, shape: Sequence[Size]) -> Array:
    """The elements in another shape; -1 is what is left."""
    return _reshaped(x, shape)


@lowers(aten._unsafe_view.default)
def unsafe_view(x: Array, size: Sequence[Size]) -> Array:
    """The elements in another shape."""
    return _reshaped(x, size)


@lowers(aten.view_as.default, aten.reshape_as.default)
def view_as(x: Array, other: Array) -> Array:
    """The elements in the shape of another tensor."""
    return x.reshape(other.shape)


def _reshaped(x: Array, size: Sequence[Size]) -> Array:
    return x.reshape(tuple(size))


@lowers(aten.flatten.using_ints)
def flatten(x: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Axes from one to another as one."""
    if not x.ndim:
        return x.reshape(1)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    size: Size = 1
    for s in x.shape[first : last + 1]:
        size = size * s
    return x.reshape(*x.shape[:first], size, *x.shape[last + 1 :])


@lowers(aten.unflatten.int)
def unflatten(x: Array, dim: int, sizes: Sequence[Size]) -> Array:
    """One axis as several."""
    dim %= x.ndim
    given: Size = 1
    for s in sizes:
        given = given * (1 if _is_rest(s) else s)
    filled = [x.shape[dim] // given if _is_rest(s) else s for s in sizes]
    return x.reshape(*x.shape[:dim], *filled, *x.shape[dim + 1 :])


def _is_rest(size: Size) -> bool:
    return isinstance(size, int) and size == -1


@lowers(aten.squeeze.default)
def squeeze(x: Array) -> Array:
    """Without axes of size 1."""
    return x.reshape([s for s in x.shape if not (isinstance(s, int) and s == 1)])


@lowers(aten.squeeze.dim)
def squeeze_dim(x: Array, dim: int) -> Array:
    """Without an axis, if its size is 1."""
    return squeeze_dims(x, [dim])


@lowers(aten.squeeze.dims)
def squeeze_dims(x: Array, dim: Sequence[int]) -> Array:
    """Without those of the axes whose size is 1."""
    named = {axis_of(d, x.ndim) for d in dim}
    kept = [s for i, s in enumerate(x.shape) if not (i in named and isinstance(s, int) and s == 1)]
    return x.reshape(kept)


@lowers(aten.unsqueeze.default)
def unsqueeze(x: Array, dim: int) -> Array:
    """With a new axis of size 1."""
    return jnp.expand_dims(x, dim)


@lowers(aten.permute.default)
def permute(x: Array, dims: Sequence[int]) -> Array:
    """Axes in another order."""
    return jnp.transpose(x, [axis_of(d, x.ndim) for d in dims])


@lowers(aten.transpose.int)
def transpose(x: Array, dim0: int, dim1: int) -> Array:
    """Two axes exchanged."""
    return jnp.swapaxes(x, dim0, dim1) if x.ndim else x


@lowers(aten.t.default)
def t(x: Array) -> Array:
    """A matrix transposed; a vector itself."""
    return x.T


@lowers(aten.movedim.intlist)
def movedim(x: Array, source: Sequence[int], destination: Sequence[int]) -> Array:
    """Some axes at other places, the rest in order."""
    return jnp.moveaxis(x, tuple(source), tuple(destination)) if x.ndim else x


@lowers(aten.expand.default)
def expand(x: Array, size: Sequence[Size], *, implicit: bool = False) -> Array:
    """Repeated along axes of size 1 and new ones; -1 keeps a size."""
    new = len(size) - x.ndim
    own = [None] * new + list(x.shape)
    shape = [o if _is_rest(s) else s for s, o in zip(size, own, strict=True)]
    return jnp.broadcast_to(x, tuple(shape))


@lowers(aten.expand_as.default)
def expand_as(x: Array, other: Array) -> Array:
    """Repeated to the shape of another tensor."""
    return jnp.broadcast_to(x, other.shape)


@lowers(aten.repeat.default)
def repeat(x: Array, repeats: Sequence[Size]) -> Array:
    """The whole tensor, so many times along each axis."""
    return jnp.tile(x.reshape((1,) * (len(repeats) - x.ndim) + x.shape), tuple(repeats))


@lowers(aten.as_strided.default)
def as_strided(
    x: Array, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Array:
    """Elements of a contiguous x at steps through its memory."""
    return x.reshape(-1)[memory_positions(size, stride, storage_offset)]


@lowers(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Array,
    src: Array,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Array:
    """X, with `src` at steps through its memory."""
    places = memory_positions(size, stride, storage_offset)
    return x.reshape(-1).at[places].set(src).reshape(x.shape)


def memory_positions(size: Sequence[int], stride: Sequence[int], offset: int | None) -> Any:
    """Where in a flat memory a strided tensor's elements are, in its shape."""
    places = np.asarray(offset or 0, np.int32)
    for i, (n, s) in enumerate(zip(size, stride, strict=True)):
        steps = np.arange(n, dtype=np.int32) * s
        places = places + steps.reshape([n] + [1] * (len(size) - 1 - i))
    return places


@lowers(aten.unfold.default)
def unfold(x: Array, dimension: int, size: int, step: int) -> Array:
    """Windows along an axis, as a last axis."""
    if not x.ndim:
        return jnp.broadcast_to(x, (size,))
    axis = dimension % x.ndim
    count = (x.shape[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    windows = jnp.take(x, places.astype(np.int32), axis=axis)
    return jnp.moveaxis(windows, axis + 1, -1)


@lowers(aten.pixel_shuffle.default)
def pixel_shuffle(x: Array, upscale_factor: int) -> Array:
    """[..., C*r*r, H, W] to [..., C, H*r, W*r]."""
    *batch, channels, height, width = x.shape
    r = upscale_factor
    parts = x.reshape(*batch, channels // (r * r), r, r, height, width)
    n = len(batch)
    moved = jnp.transpose(parts, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return moved.reshape(*batch, channels // (r * r), height * r, width * r)


@lowers(aten.pixel_unshuffle.default)
def pixel_unshuffle(x: Array, downscale_factor: int) -> Array:
    """[..., C, H*r, W*r] to [..., C*r*r, H, W]."""
    *batch, channels, height, width = x.shape
    r = downscale_factor
    parts = x.reshape(*batch, channels, height // r, r, width // r, r)
    n = len(batch)
    moved = jnp.transpose(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return moved.reshape(*batch, channels * r * r, height // r, width // r)


@lowers(aten.channel_shuffle.default, aten.native_channel_shuffle.default)
def channel_shuffle(x: Array, groups: int) -> Array:
    """Channels of axis 1, taken in turns from the groups."""
    batch, channels, *rest = x.shape
    parts = x.reshape(batch, groups, channels // groups, *rest)
    return jnp.swapaxes(parts, 1, 2).reshape(x.shape)
