"""torchvision's deformable convolution: a product of weights with pixels read between pixels."""

import math
from collections.abc import Sequence

import numpy as np

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.linear import linear
from litert_torch.converter.lowerings.point_sampling import (
    FLOAT32,
    clipped,
    interpolated,
    linear_taps,
    pixels_by_row,
    shifted,
)
from litert_torch.converter.lowerings.slicing import parts


@lowers.when_loaded("torchvision::deform_conv2d")
def deform_conv2d(
    g: Graph,
    x: Value,
    weight: Value,
    offset: Value,
    mask: Value,
    bias: Value,
    stride_h: Size,
    stride_w: Size,
    pad_h: Size,
    pad_w: Size,
    dilation_h: Size,
    dilation_w: Size,
    groups: Size,
    offset_groups: Size,
    use_mask: bool,
) -> Value:
    """x [N, C, H, W] with weight [O, C/groups, kh, kw] and offset [N, 2*og*kh*kw, H', W']."""
    batch, channels = x.shape[:2]
    kernel, results = dims.static(weight.shape[2:]), dims.static(offset.shape[2:])
    steps = dims.static((stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w))
    places = [
        _regular(axis, kernel, results, (steps[axis], steps[2 + axis], steps[4 + axis]))
        for axis in (0, 1)
    ]
    taps, points, count = math.prod(kernel), math.prod(results), int(offset_groups)
    moves = tfl.reshape(g, offset, (batch, count * taps, 2, points))
    padded = tfl.pad(g, x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    pieces = []
    for i, image in enumerate(parts(g, padded, 1, [int(channels) // count] * count)):
        part = tfl.slice(g, moves, (0, i * taps, 0, 0), (batch, taps, 2, points))
        sampled = _sampled(g, image, part, places)
        if use_mask:
            strength = tfl.slice(g, mask, (0, i * taps, 0, 0), (batch, taps, *results))
            sampled = tfl.mul(g, sampled, tfl.reshape(g, strength, (batch, taps * points, 1)))
        pieces.append(tfl.reshape(g, sampled, (batch, taps, points, sampled.shape[-1])))
    patches = tfl.transpose(g, tfl.concatenation(g, pieces, axis=3), (0, 2, 1, 3))
    y = tfl.add(g, _product(g, patches, weight, int(groups)), bias)
    return tfl.reshape(g, tfl.transpose(g, y, (0, 2, 1)), (batch, weight.shape[0], *results))


def _regular(
    axis: int, kernel: Sequence[int], results: Sequence[int], steps: tuple[int, int, int]
) -> Array:
    """Where the taps lie along `axis` without offsets: [1, taps * points]."""
    stride, padding, dilation = steps
    tap = np.indices(kernel)[axis].reshape(-1, 1) * dilation
    point = np.indices(results)[axis].reshape(1, -1) * stride - padding
    return (tap + point).reshape(1, -1)


def _sampled(g: Graph, padded: Value, moves: Value, places: Sequence[Array]) -> Value:
    """Pixels [N, taps * points, C] of images bordered by zeros, moved by [N, taps, 2, points]."""
    batch, taps, _, points = moves.shape
    sizes = dims.static(padded.shape[2:])
    axes = []
    for axis, place in enumerate(places):
        move = tfl.slice(g, moves, (0, 0, axis, 0), (batch, taps, 1, points))
        move = tfl.reshape(g, move, (batch, place.shape[1]))
        position = tfl.add(g, move, const(place, FLOAT32))
        within = shifted(g, clipped(g, position, -1, sizes[axis] - 2), 1)
        axes.append(linear_taps(g, within, sizes[axis] - 1))
    return interpolated(g, pixels_by_row(g, padded), sizes, axes)


def _product(g: Graph, patches: Value, weight: Value, groups: int) -> Value:
    """Patches [N, points, taps, C] with weight [O, C/groups, kh, kw]: [N, points, O]."""
    out, channels, *kernel = dims.static(weight.shape)
    length = math.prod(kernel) * channels
    rows = tfl.reshape(g, tfl.transpose(g, weight, (0, 2, 3, 1)), (out, length))
    results = []
    for i, part in enumerate(parts(g, patches, 3, [channels] * groups)):
        flat = tfl.reshape(g, part, (*part.shape[:2], length))
        results.append(linear(g, flat, _rows(g, rows, i * (out // groups), out // groups)))
    return tfl.concatenation(g, results, axis=2)


def _rows(g: Graph, x: Value, start: int, count: int) -> Value:
    """Rows of a matrix, which stays a constant if it is one."""
    if x.const is None or count == x.shape[0]:
        return tfl.slice(g, x, (start, 0), (count, x.shape[1]))
    key = ("rows", start, count)
    shape = (count, int(x.shape[1]))
    return const(x.const.derive(key, lambda w: w[start : start + count], shape=shape))
