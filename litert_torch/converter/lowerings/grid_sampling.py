"""grid_sample and affine_grid: images read at the points that a grid names."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.point_sampling import (
    FLOAT32,
    Tap,
    clipped,
    interpolated,
    linear_taps,
    number,
    pixels_by_row,
    shifted,
)
from litert_torch.converter.lowerings.views import transposed
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
_SHARPNESS = -0.75  # PyTorch's cubic convolution (Keys, 1981)
_MOST_PIXELS = 1 << 24  # indices are computed in float32

Axis = Callable[[Graph, Value, int], list[Tap]]


def _unnormalized(g: Graph, x: Value, size: int, align_corners: bool) -> Value:
    """Grid coordinates in [-1, 1] as pixels: -1 and 1 are centres, or outer edges, of the last."""
    scale = (size - 1) / 2 if align_corners else size / 2
    return shifted(g, tfl.mul(g, x, number(scale)), (size - 1) / 2)


def _reflected(g: Graph, x: Value, size: int, align_corners: bool) -> Value:
    """Positions mirrored at the centres, or outer edges, of the outermost pixels."""
    low = 0.0 if align_corners else -0.5
    span = size - 1.0 if align_corners else float(size)
    if span == 0:
        return tfl.mul(g, x, number(0))
    there_and_back = 2 * span
    away = tfl.abs(g, shifted(g, x, -low))
    turns = tfl.floor(g, tfl.mul(g, away, number(1 / there_and_back)))
    rest = tfl.sub(g, away, tfl.mul(g, turns, number(there_and_back)))
    mirrored = tfl.abs(g, shifted(g, rest, -span))
    return clipped(g, tfl.sub(g, number(span + low), mirrored), 0, size - 1)


def _within(g: Graph, x: Value, size: int, padding: int, align_corners: bool) -> Value:
    """Positions as indices into an axis of `size`, which ZEROS finds between two zeros."""
    if padding == ZEROS:
        return shifted(g, clipped(g, x, -1, size), 1)
    if padding == REFLECTION:
        return _reflected(g, x, size, align_corners)
    return clipped(g, x, 0, size - 1)


def _cubic_taps(g: Graph, x: Value, size: int, padding: int, align_corners: bool) -> list[Tap]:
    """Four pixels around each position, each brought into the image by itself."""
    if padding != REFLECTION:
        x = clipped(g, x, -3, size + 2)  # from here on out, all four are the same
    below = tfl.floor(g, x)
    fraction = tfl.sub(g, x, below)
    rest = tfl.sub(g, number(1), fraction)
    distances = [shifted(g, fraction, 1), fraction, rest, shifted(g, rest, 1)]
    weights = [(_cubic_near if i in (1, 2) else _cubic_far)(g, d) for i, d in enumerate(distances)]
    return [
        Tap(_within(g, shifted(g, below, i - 1), size, padding, align_corners), w)
        for i, w in enumerate(weights)
    ]


def _cubic_near(g: Graph, d: Value) -> Value:
    """((A + 2) d - (A + 3)) d^2 + 1, of a distance up to 1."""
    a = _SHARPNESS
    line = shifted(g, tfl.mul(g, d, number(a + 2)), -(a + 3))
    return shifted(g, tfl.mul(g, tfl.square(g, d), line), 1)


def _cubic_far(g: Graph, d: Value) -> Value:
    """((A d - 5 A) d + 8 A) d - 4 A, of a distance from 1 to 2."""
    a = _SHARPNESS
    line = shifted(g, tfl.mul(g, d, number(a)), -5 * a)
    curve = shifted(g, tfl.mul(g, line, d), 8 * a)
    return shifted(g, tfl.mul(g, curve, d), -4 * a)


def _taps(g: Graph, x: Value, size: int, mode: int, padding: int, align_corners: bool) -> list[Tap]:
    position = _unnormalized(g, x, size, align_corners)
    if mode == BICUBIC:
        return _cubic_taps(g, position, size, padding, align_corners)
    position = _within(g, position, size, padding, align_corners)
    if mode == NEAREST:
        return [Tap(tfl.round(g, position))] if padding != ZEROS else [_nearest_tap(g, position)]
    return linear_taps(g, position, size + 1 if padding == ZEROS else size - 1)


def _nearest_tap(g: Graph, position: Value) -> Tap:
    """Halves go to the even pixel, which is an odd one with the zero in front."""
    return Tap(shifted(g, tfl.round(g, shifted(g, position, -1)), 1))


@lowers(aten.grid_sampler.default, aten.grid_sampler_2d.default, aten.grid_sampler_3d.default)
def grid_sampler(
    g: Graph,
    x: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    """x [N, C, *sizes] at grid [N, *results, axes], whose coordinates count from the last axis."""
    sizes = dims.static(x.shape[2:])
    points = grid.shape[1:-1]
    count = dims.numel(points)
    border = int(padding_mode == ZEROS)
    if dims.numel([s + 2 for s in sizes]) > _MOST_PIXELS:
        raise UnsupportedCaseError("samples images of more than 2**24 pixels: sample tiles of them")
    padded = tfl.pad(g, x, [(0, 0), (0, 0), *[(border, border)] * len(sizes)])
    taps = []
    for axis, size in enumerate(sizes):
        begin = (*[0] * (grid.rank - 1), len(sizes) - 1 - axis)
        column = tfl.slice(g, grid, begin, (*grid.shape[:-1], 1))
        column = tfl.reshape(g, column, (grid.shape[0], count))
        taps.append(_taps(g, column, size, interpolation_mode, padding_mode, align_corners))
    y = interpolated(g, pixels_by_row(g, padded), [s + 2 * border for s in sizes], taps)
    y = transposed(g, y, (0, 2, 1))
    return tfl.reshape(g, y, (x.shape[0], x.shape[1], *points))


@lowers(aten.affine_grid_generator.default)
def affine_grid_generator(
    g: Graph, theta: Value, size: Sequence[Size], align_corners: bool
) -> Value:
    """The coordinates of images, mapped by theta [N, axes, axes + 1]: [N, *sizes, axes]."""
    sizes = dims.static(size[2:])
    axes = len(sizes)
    lines = [_centres(s, align_corners) for s in reversed(sizes)]
    grids = np.meshgrid(*reversed(lines), indexing="ij")[::-1]
    base = np.stack([*grids, np.ones(sizes)], -1).reshape(-1, axes + 1)
    rows = tfl.reshape(g, theta, (theta.shape[0] * axes, axes + 1))
    y = tfl.fully_connected(g, rows, const(base, FLOAT32), None)
    y = tfl.reshape(g, y, (theta.shape[0], axes, base.shape[0]))
    return tfl.reshape(g, transposed(g, y, (0, 2, 1)), (theta.shape[0], *sizes, axes))


def _centres(size: int, align_corners: bool) -> Array:
    """Normalized coordinates of pixel centres."""
    if size <= 1:
        return np.zeros(size)
    line = np.linspace(-1, 1, size)
    return line if align_corners else line * (size - 1) / size
