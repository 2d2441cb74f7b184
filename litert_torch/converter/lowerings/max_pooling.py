"""Maximum pooling over windows of one size."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.litert_ops import SAME, VALID
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.channel_last import on_channel_last, padded
from litert_torch.converter.lowerings.pooling_windows import Axis, axes_of, is_same, over_images

aten = torch.ops.aten


@lowers(aten.max_pool1d.default)
def max_pool1d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0],
    dilation: Sequence[int] = [1],
    ceil_mode: bool = False,
) -> Value:
    """Of x [N, C, L] or [C, L]."""
    return max_pool(g, x, axes_of(x.shape[-1:], kernel_size, stride, padding, dilation, ceil_mode))


@lowers(aten.max_pool2d.default)
def max_pool2d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0, 0],
    dilation: Sequence[int] = [1, 1],
    ceil_mode: bool = False,
) -> Value:
    """Of x [N, C, H, W] or [C, H, W]."""
    return max_pool(g, x, axes_of(x.shape[-2:], kernel_size, stride, padding, dilation, ceil_mode))


@lowers(aten.max_pool3d.default)
def max_pool3d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0, 0, 0],
    dilation: Sequence[int] = [1, 1, 1],
    ceil_mode: bool = False,
) -> Value:
    """Of x [N, C, D, H, W] or [C, D, H, W]."""
    return max_pool(g, x, axes_of(x.shape[-3:], kernel_size, stride, padding, dilation, ceil_mode))


@lowers(aten.max_pool1d_with_indices.default)
def max_pool1d_with_indices(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0],
    dilation: Sequence[int] = [1],
    ceil_mode: bool = False,
) -> list[Value]:
    """Maxima, and their int64 positions in [L]."""
    axes = axes_of(x.shape[-1:], kernel_size, stride, padding, dilation, ceil_mode)
    return [max_pool(g, x, axes), _positions(g, x, axes)]


@lowers(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0, 0],
    dilation: Sequence[int] = [1, 1],
    ceil_mode: bool = False,
) -> list[Value]:
    """Maxima, and their int64 positions in [H * W]."""
    axes = axes_of(x.shape[-2:], kernel_size, stride, padding, dilation, ceil_mode)
    return [max_pool(g, x, axes), _positions(g, x, axes)]


@lowers(aten.max_pool3d_with_indices.default)
def max_pool3d_with_indices(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0, 0, 0],
    dilation: Sequence[int] = [1, 1, 1],
    ceil_mode: bool = False,
) -> list[Value]:
    """Maxima, and their int64 positions in [D * H * W]."""
    axes = axes_of(x.shape[-3:], kernel_size, stride, padding, dilation, ceil_mode)
    return [max_pool(g, x, axes), _positions(g, x, axes)]


def max_pool(g: Graph, x: Value, axes: Sequence[Axis]) -> Value:
    """Maxima of x [N, C, *spatial], or without N."""

    def pooled(rows: Value) -> Value:
        if all(a.dilation == 1 for a in axes) and x.dtype.is_float:
            return over_images(g, rows, axes, _max_pool_image)
        return _max_of_shifts(g, rows, axes)

    return on_channel_last(g, x, len(axes), pooled)


def _max_pool_image(g: Graph, x: Value, h: Axis, w: Axis) -> Value:
    """MAX_POOL_2D; padding that SAME does not give is never larger than any element."""
    kernel, stride = (h.kernel, w.kernel), (h.stride, w.stride)
    if is_same(h) and is_same(w):
        return tfl.max_pool_2d(g, x, kernel=kernel, stride=stride, padding=SAME)
    lowest = 0 if _is_non_negative(x) else -math.inf
    x = padded(g, x, [h.pads, w.pads], lowest)
    return tfl.max_pool_2d(g, x, kernel=kernel, stride=stride, padding=VALID)


_NON_NEGATIVE = frozenset({"RELU", "RELU6", "RELU_0_TO_1", "LOGISTIC", "SQUARE", "ABS", "EXP"})


def _is_non_negative(x: Value) -> bool:
    """Whether x is never below 0, so that PAD, which XNNPACK runs and PADV2 not, may pad it."""
    op = x.producer
    while op is not None and op.kind in {"TRANSPOSE", "RESHAPE", "MAX_POOL_2D"}:
        op = None if op.inputs[0] is None else op.inputs[0].producer
    return op is not None and op.kind in _NON_NEGATIVE


def _max_of_shifts(g: Graph, x: Value, axes: Sequence[Axis]) -> Value:
    """Dilated or integer windows: the maximum of shifted copies, one axis at a time."""
    for i, a in enumerate(axes):
        pads = [a.pads if j == i else (0, 0) for j in range(len(axes))]
        shifts = _shifts(g, padded(g, x, pads, _lowest(x.dtype)), i + 1, a)
        x = shifts[0]
        for shift in shifts[1:]:
            x = tfl.maximum(g, x, shift)
    return x


def _lowest(dtype: DType) -> float:
    return -math.inf if dtype.is_float else int(np.iinfo(dtype.numpy).min)


def _shifts(g: Graph, x: Value, axis: int, a: Axis) -> list[Value]:
    """For each element of the window, that element of every window along `axis`."""
    rest = [0] * x.rank
    found = []
    for k in range(a.kernel):
        begin = k * a.dilation
        starts = [*rest[:axis], begin, *rest[axis + 1 :]]
        if a.stride == 1:
            found.append(tfl.slice(g, x, starts, (*x.shape[:axis], a.out, *x.shape[axis + 1 :])))
            continue
        shape = dims.static(x.shape)
        ends = [*shape[:axis], begin + (int(a.out) - 1) * a.stride + 1, *shape[axis + 1 :]]
        strides = [a.stride if i == axis else 1 for i in range(x.rank)]
        found.append(tfl.strided_slice(g, x, starts, ends, strides))
    return found


def _positions(g: Graph, x: Value, axes: Sequence[Axis]) -> Value:
    """Where the maxima are in the flattened spatial axes: the first among equals."""
    sizes = dims.static(a.size for a in axes)
    index = np.arange(math.prod(sizes), dtype=np.int32).reshape(1, *sizes, 1)
    pads = [a.pads for a in axes]
    # a padded place counts as the nearest real one, which is in the same window
    index = np.pad(index, [(0, 0), *pads, (0, 0)], mode="edge")
    positions = [tfl.const(index[where]) for where in _window_indices(axes)]

    def searched(rows: Value) -> Value:
        elements = [padded(g, rows, pads, _lowest(x.dtype))]
        for i, a in enumerate(axes, start=1):
            elements = [shift for element in elements for shift in _shifts(g, element, i, a)]
        best, where = elements[0], tfl.broadcast_to(g, positions[0], elements[0].shape)
        for element, position in zip(elements[1:], positions[1:], strict=True):
            where = tfl.select_v2(g, tfl.greater(g, element, best), position, where)
            best = tfl.maximum(g, best, element)
        return tfl.cast(g, where, DType.INT64)

    return on_channel_last(g, x, len(axes), searched)


def _window_indices(axes: Sequence[Axis]) -> list[tuple[slice, ...]]:
    """For each element of the window, where that element of every window is in [1, *spatial, 1]."""

    def along(a: Axis, k: int) -> slice:
        begin = k * a.dilation
        return slice(begin, begin + (int(a.out) - 1) * a.stride + 1, a.stride)

    everything = slice(None)
    offsets = itertools.product(*(range(a.kernel) for a in axes))
    return [
        (everything, *(along(a, k) for a, k in zip(axes, ks, strict=True)), everything)
        for ks in offsets
    ]
