"""Images read at the places that a grid says."""

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, Array
from litert_torch.tpu.lowerings.resize import cubic

aten = torch.ops.aten

_LINEAR, _NEAREST, _CUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)


def _unnormalized(place: Array, size: int, align_corners: bool) -> Array:
    """From [-1, 1] to elements."""
    return (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2


def _reflected(place: Array, size: int, align_corners: bool) -> Array:
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return jnp.zeros_like(place)
    distance = jnp.abs(place - low)
    rest = jnp.mod(distance, 2 * span)
    return jnp.clip(jnp.where(rest > span, 2 * span - rest, rest) + low, 0, size - 1)


def _inside(place: Array, size: int, padding: int, align_corners: bool) -> Array:
    """As the padding mode brings it inside; zeros leave it."""
    if padding == _BORDER:
        return jnp.clip(place, 0, size - 1)
    return _reflected(place, size, align_corners) if padding == _REFLECTION else place


def _read(x: Array, places: Sequence[Array]) -> Array:
    """X [N, C, *sizes] at whole places [N, *result] of each axis, 0 outside: [N, C, *result]."""
    sizes = x.shape[2:]
    flat = jnp.zeros(places[0].shape, INT32)
    valid = jnp.ones(places[0].shape, bool)
    for place, size in zip(places, sizes, strict=True):
        valid = valid & (place >= 0) & (place <= size - 1)
        flat = flat * size + jnp.clip(place, 0, size - 1).astype(INT32)
    batch, channels = x.shape[:2]
    rows = x.reshape(batch, channels, -1)
    taken = jnp.take_along_axis(rows, flat.reshape(batch, 1, -1), axis=2, mode="clip")
    taken = taken.reshape(batch, channels, *flat.shape[1:])
    return jnp.where(valid[:, None], taken, 0).astype(x.dtype)


def sampled(x: Array, grid: Array, mode: int, padding: int, align_corners: bool) -> Array:
    """X [N, C, *sizes] at grid [N, *result, axes], whose last axis counts from the last size."""
    sizes = x.shape[2:]
    axes = len(sizes)
    raw = [_unnormalized(grid[..., axes - 1 - i], n, align_corners) for i, n in enumerate(sizes)]
    if mode == _CUBIC:
        return _cubic(x, raw, padding, align_corners)
    places = [_inside(p, n, padding, align_corners) for p, n in zip(raw, sizes, strict=True)]
    if mode == _NEAREST:
        return _read(x, [jnp.round(p) for p in places])
    result = jnp.zeros((), x.dtype)
    for corner in itertools.product((0, 1), repeat=axes):
        at = [jnp.floor(p) + c for p, c in zip(places, corner, strict=True)]
        weight = jnp.ones((), x.dtype)
        for place, whole in zip(places, at, strict=True):
            weight = weight * (1 - jnp.abs(place - whole))
        result = result + _read(x, at) * weight[:, None]
    return result


def _cubic(x: Array, places: Sequence[Array], padding: int, align_corners: bool) -> Array:
    """Of two axes: sixteen elements around each place."""
    weighting, sizes = cubic(-0.75), x.shape[2:]
    result = jnp.zeros((), x.dtype)
    for steps in itertools.product(range(-1, 3), repeat=2):
        at = [jnp.floor(p) + s for p, s in zip(places, steps, strict=True)]
        weight = jnp.ones((), x.dtype)
        for place, whole in zip(places, at, strict=True):
            weight = weight * weighting(place - whole)
        read = [_inside(a, n, padding, align_corners) for a, n in zip(at, sizes, strict=True)]
        result = result + _read(x, read) * weight[:, None]
    return result


@lowers(aten.grid_sampler.default, aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def grid_sampler(
    x: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """X [N, C, *] at places between -1 and 1."""
    return sampled(x, grid, interpolation_mode, padding_mode, align_corners)
