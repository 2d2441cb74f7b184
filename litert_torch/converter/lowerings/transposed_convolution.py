"""Transposed convolutions, and the ATen op that is a convolution of either kind.

Without groups: TRANSPOSE_CONV of the full extent, cropped. With groups: one for each where they are
few, else a convolution of the image with zeros between its elements, which stays depthwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.litert_ops import SAME, VALID
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.channel_last import (
    as_image,
    from_image,
    on_channel_last,
    padded,
    per_axis,
)
from litert_torch.converter.lowerings.convolution import Window, convolve, convolve_rows, part

aten = torch.ops.aten

_FEW_GROUPS = 4  # as many as XNNPACK splits and concatenates


@dataclass(frozen=True)
class Spread:
    """How a transposed filter moves, one entry for each spatial axis."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int

    def as_image(self) -> "Spread":
        """The same over [1, L] where this is over [L]."""
        if len(self.stride) != 1:
            return self
        return Spread(
            (1, *self.stride),
            (1, *self.dilation),
            (0, *self.padding),
            (0, *self.output_padding),
            self.groups,
        )


@lowers(aten.convolution.default)
def convolution(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    """A convolution, or a transposed one, over one to three axes."""
    if transposed:
        return _transposed(g, x, weight, bias, stride, padding, output_padding, groups, dilation)
    spatial = weight.rank - 2
    pads = tuple((p, p) for p in per_axis(padding, spatial))
    window = Window(per_axis(stride, spatial), per_axis(dilation, spatial), pads, groups)
    return convolve(g, x, weight, bias, window)


@lowers(aten.conv_transpose1d.default)
def conv_transpose1d(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1],
    padding: Sequence[int] = [0],
    output_padding: Sequence[int] = [0],
    groups: int = 1,
    dilation: Sequence[int] = [1],
) -> Value:
    """Of x [N, C, L] or [C, L] with weight [C, O/groups, K]."""
    return _transposed(g, x, weight, bias, stride, padding, output_padding, groups, dilation)


@lowers(aten.conv_transpose2d.input)
def conv_transpose2d(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1, 1],
    padding: Sequence[int] = [0, 0],
    output_padding: Sequence[int] = [0, 0],
    groups: int = 1,
    dilation: Sequence[int] = [1, 1],
) -> Value:
    """Of x [N, C, H, W] or [C, H, W] with weight [C, O/groups, KH, KW]."""
    return _transposed(g, x, weight, bias, stride, padding, output_padding, groups, dilation)


@lowers(aten.conv_transpose3d.input)
def conv_transpose3d(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1, 1, 1],
    padding: Sequence[int] = [0, 0, 0],
    output_padding: Sequence[int] = [0, 0, 0],
    groups: int = 1,
    dilation: Sequence[int] = [1, 1, 1],
) -> Value:
    """Of x [N, C, D, H, W] or [C, D, H, W] with weight [C, O/groups, KD, KH, KW]."""
    return _transposed(g, x, weight, bias, stride, padding, output_padding, groups, dilation)


def _transposed(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> Value:
    n = weight.rank - 2
    s = Spread(
        per_axis(stride, n),
        per_axis(dilation, n),
        per_axis(padding, n),
        per_axis(output_padding, n),
        groups,
    )
    return on_channel_last(g, x, n, lambda rows: _transposed_rows(g, rows, weight, bias, s))


def _transposed_rows(g: Graph, x: Value, weight: Value, bias: Value | None, s: Spread) -> Value:
    no_kernel = s.groups > _FEW_GROUPS or not x.dtype.is_float
    if weight.rank == 5 or all(stride == 1 for stride in s.stride) or no_kernel:
        return _as_convolution(g, x, weight, bias, s)
    if weight.rank == 3:
        weight = tfl.expand_dims(g, weight, 2)
    y = _transposed_image(g, as_image(g, x), weight, bias, s.as_image())
    return from_image(g, y, x.rank)


def _as_convolution(g: Graph, x: Value, weight: Value, bias: Value | None, s: Spread) -> Value:
    """A convolution by the flipped filter of x with stride - 1 zeros after each element."""
    kernel = dims.static(weight.shape[2:])
    reach = [d * (k - 1) for d, k in zip(s.dilation, kernel, strict=True)]
    pads = tuple(
        (r - p, r - p + op - (stride - 1))
        for r, p, op, stride in zip(reach, s.padding, s.output_padding, s.stride, strict=True)
    )
    rows = _with_zeros_between(g, x, s.stride)
    filter = _flipped(g, _grouped_filter(g, weight, s.groups))
    if any(p < 0 for pair in pads for p in pair):
        rows = padded(g, rows, pads)
        pads = ((0, 0),) * len(pads)
    ones = (1,) * len(pads)
    return convolve_rows(g, rows, filter, bias, Window(ones, s.dilation, pads, s.groups))


def _with_zeros_between(g: Graph, x: Value, strides: Sequence[int]) -> Value:
    """[N, *spatial, C] with stride - 1 zeros after each element of each spatial axis."""
    for axis, stride in enumerate(strides, start=1):
        if stride == 1:
            continue
        shape = (*x.shape[:axis], x.shape[axis] * stride, *x.shape[axis + 1 :])
        before, after = dims.numel(x.shape[: axis + 1]), dims.numel(x.shape[axis + 1 : -1])
        apart = tfl.reshape(g, x, (before, 1, after, x.shape[-1]))
        apart = tfl.pad(g, apart, [(0, 0), (0, stride - 1), (0, 0), (0, 0)])
        x = tfl.reshape(g, apart, shape)
    return x


def _grouped_filter(g: Graph, weight: Value, groups: int) -> Value:
    """[C, O/groups, *kernel] as [O, C/groups, *kernel]."""
    c, out, *kernel = dims.static(weight.shape)
    split = tfl.reshape(g, weight, (groups, c // groups, out, int(dims.numel(kernel))))
    swapped = tfl.transpose(g, split, (0, 2, 1, 3))
    return tfl.reshape(g, swapped, (groups * out, c // groups, *kernel))


def _flipped(g: Graph, weight: Value) -> Value:
    """The filter [O, C, *kernel] back to front along its spatial axes."""
    axes = tuple(range(2, weight.rank))
    if weight.const is None:
        for axis in axes:  # the kernel reverses one axis at a time
            weight = tfl.reverse_v2(g, weight, [axis])
        return weight
    where = (slice(None), slice(None), *(slice(None, None, -1) for _ in axes))
    return tfl.const(weight.const.derive(("flip", axes), lambda a: a[where]))


def _transposed_image(g: Graph, x: Value, weight: Value, bias: Value | None, s: Spread) -> Value:
    """One TRANSPOSE_CONV a group on [N, H, W, C]."""
    weight = _dilated(g, weight, s.dilation)
    parts = [
        _cropped_transpose_conv(
            g,
            part(g, x, -1, i, s.groups),
            part(g, weight, 0, i, s.groups),
            None if bias is None else part(g, bias, 0, i, s.groups),
            s,
        )
        for i in range(s.groups)
    ]
    return tfl.concatenation(g, parts, axis=-1)


def _cropped_transpose_conv(
    g: Graph, x: Value, weight: Value, bias: Value | None, s: Spread
) -> Value:
    filter = tfl.transpose(g, weight, (1, 2, 3, 0))
    static_bias = bias if bias is None or bias.const is not None else None
    y = _extent(g, x, filter, static_bias, s)
    return y if static_bias is bias or bias is None else tfl.add(g, y, bias)


def _extent(g: Graph, x: Value, filter: Value, bias: Value | None, s: Spread) -> Value:
    """The rows and columns of the full result that remain after `padding` is cut off."""
    kernel = dims.static(filter.shape[1:3])
    axes = list(zip(x.shape[1:3], kernel, s.stride, s.padding, s.output_padding, strict=True))
    output = [(size - 1) * st - 2 * p + k + op for size, k, st, p, op in axes]
    stride = (s.stride[0], s.stride[1])
    if all(_is_same(*axis) for axis in axes):
        return tfl.transpose_conv(g, x, filter, bias, output=output, stride=stride, padding=SAME)
    full = [(size - 1) * st + k + max(op - p, 0) for size, k, st, p, op in axes]
    y = tfl.transpose_conv(g, x, filter, bias, output=full, stride=stride, padding=VALID)
    begin = [0, *s.padding, 0]
    return tfl.slice(g, y, begin, (x.shape[0], *output, filter.shape[0]))


def _is_same(size: Size, kernel: int, stride: int, padding: int, output_padding: int) -> bool:
    """Whether SAME crops `padding` before, and the result is exactly stride times larger."""
    cut = kernel - stride
    return cut >= 0 and padding == cut // 2 and 2 * padding - output_padding == cut


def _dilated(g: Graph, weight: Value, dilation: Sequence[int]) -> Value:
    """The filter [C, O, KH, KW] with dilation - 1 zeros between its elements."""
    if all(d == 1 for d in dilation):
        return weight
    c, out, *kernel = dims.static(weight.shape)
    shape = (c, out, *(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)))
    if weight.const is None:
        rows = tfl.reshape(g, weight, (c * out, *kernel, 1))
        rows = _with_zeros_between(g, rows, dilation)
        return tfl.reshape(g, padded(g, rows, [(0, 1 - d) for d in dilation]), shape)
    step = (slice(None), slice(None), *(slice(None, None, d) for d in dilation))

    def spread(a: Array) -> Array:
        result = np.zeros(shape, a.dtype)
        result[step] = a
        return result

    return tfl.const(weight.const.derive(("dilate", tuple(dilation)), spread, shape=shape))
