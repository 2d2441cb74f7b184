"""Average pooling over windows of one size.

AVERAGE_POOL_2D divides by the elements of the window inside the image. PyTorch's other divisors are
a zero-padded pool, times a constant image of ratios where the divisor varies.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.litert_ops import SAME, VALID
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.channel_last import on_channel_last, padded
from litert_torch.converter.lowerings.integer_windows import average_integers
from litert_torch.converter.lowerings.pooling_windows import Axis, axes_of, is_same, over_images

aten = torch.ops.aten


@lowers(aten.avg_pool1d.default)
def avg_pool1d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """Of x [N, C, L] or [C, L]."""
    axes = axes_of(x.shape[-1:], kernel_size, stride, padding, 1, ceil_mode)
    return average_pool(g, x, axes, count_include_pad, None)


@lowers(aten.avg_pool2d.default)
def avg_pool2d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0, 0],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """Of x [N, C, H, W] or [C, H, W]."""
    axes = axes_of(x.shape[-2:], kernel_size, stride, padding, 1, ceil_mode)
    return average_pool(g, x, axes, count_include_pad, divisor_override)


@lowers(aten.avg_pool3d.default)
def avg_pool3d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    stride: Sequence[int] = [],
    padding: Sequence[int] = [0, 0, 0],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """Of x [N, C, D, H, W] or [C, D, H, W]."""
    axes = axes_of(x.shape[-3:], kernel_size, stride, padding, 1, ceil_mode)
    return average_pool(g, x, axes, count_include_pad, divisor_override)


def average_pool(
    g: Graph,
    x: Value,
    axes: Sequence[Axis],
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    """Means of x [N, C, *spatial], or without N; the divisor may be overridden."""
    include_pad = count_include_pad and divisor_override is None
    if not x.dtype.is_float:
        return average_integers(g, x, axes, include_pad, divisor_override)

    def pool_image(g: Graph, rows: Value, h: Axis, w: Axis) -> Value:
        if divisor_override is not None:
            return _padded_pool(g, rows, h, w)
        return _pool_image(g, rows, h, w, include_pad)

    def pooled(rows: Value) -> Value:
        y = over_images(g, rows, axes, pool_image)
        if divisor_override is None:
            return y
        ratio = math.prod(a.kernel for a in axes) / divisor_override
        return tfl.mul(g, y, tfl.const(ratio, DType.FLOAT32))

    return on_channel_last(g, x, len(axes), pooled)


def _pool_image(g: Graph, x: Value, h: Axis, w: Axis, include_pad: bool) -> Value:
    """One pool of [N, H, W, C]."""
    if not include_pad and is_same(h) and is_same(w):
        kernel, stride = (h.kernel, w.kernel), (h.stride, w.stride)
        return tfl.average_pool_2d(g, x, kernel=kernel, stride=stride, padding=SAME)
    y = _padded_pool(g, x, h, w)
    if all(_divides_by_kernel(a, include_pad) for a in (h, w)):
        return y
    rows, columns = (a.counts_with_padding if include_pad else a.counts for a in (h, w))
    ratio = h.kernel * w.kernel / (rows[:, None] * columns)
    return tfl.mul(g, y, tfl.const(ratio[None, :, :, None].astype(np.float32)))


def _divides_by_kernel(a: Axis, include_pad: bool) -> bool:
    """Whether every window's divisor along this axis is the kernel's size."""
    if include_pad:
        return a.after <= a.padding
    return a.before == 0 and a.after <= 0


def _padded_pool(g: Graph, x: Value, h: Axis, w: Axis) -> Value:
    """The sum of each window, padding included as zeros, over the kernel's size."""
    x = padded(g, x, [h.pads, w.pads])
    kernel, stride = (h.kernel, w.kernel), (h.stride, w.stride)
    return tfl.average_pool_2d(g, x, kernel=kernel, stride=stride, padding=VALID)
