"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, CONV_3D.

The filter's layout changes at conversion time where it is a constant, else at run time. A filter in
groups stays one CONV_2D, which XNNPACK runs; the GPU accelerator needs multiples of 4 channels a
group, so that a target may split it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.litert_ops import SAME, VALID, same_padding
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.channel_last import (
    Pair,
    as_image,
    from_image,
    on_channel_last,
    padded,
    per_axis,
    require_float,
)

aten = torch.ops.aten


@dataclass(frozen=True)
class Window:
    """How a filter moves, one entry for each spatial axis; pads are (before, after)."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[Pair, ...]
    groups: int = 1

    def as_image(self) -> "Window":
        """The same over [1, L] where this is over [L]."""
        if len(self.stride) != 1:
            return self
        return Window((1, *self.stride), (1, *self.dilation), ((0, 0), *self.pads), self.groups)


@lowers(aten.conv1d.default)
def conv1d(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1],
    padding: Sequence[int] = [0],
    dilation: Sequence[int] = [1],
    groups: int = 1,
) -> Value:
    """Of x [N, C, L] or [C, L] with weight [O, C/groups, K]."""
    return _explicit(g, x, weight, bias, stride, padding, dilation, groups)


@lowers(aten.conv2d.default)
def conv2d(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1, 1],
    padding: Sequence[int] = [0, 0],
    dilation: Sequence[int] = [1, 1],
    groups: int = 1,
) -> Value:
    """Of x [N, C, H, W] or [C, H, W] with weight [O, C/groups, KH, KW]."""
    return _explicit(g, x, weight, bias, stride, padding, dilation, groups)


@lowers(aten.conv3d.default)
def conv3d(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1, 1, 1],
    padding: Sequence[int] = [0, 0, 0],
    dilation: Sequence[int] = [1, 1, 1],
    groups: int = 1,
) -> Value:
    """Of x [N, C, D, H, W] or [C, D, H, W] with weight [O, C/groups, KD, KH, KW]."""
    return _explicit(g, x, weight, bias, stride, padding, dilation, groups)


@lowers(aten.conv1d.padding)
def conv1d_padding(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1],
    padding: str = "valid",
    dilation: Sequence[int] = [1],
    groups: int = 1,
) -> Value:
    """As conv1d, with padding 'same' or 'valid'."""
    return _named(g, x, weight, bias, stride, padding, dilation, groups)


@lowers(aten.conv2d.padding)
def conv2d_padding(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1, 1],
    padding: str = "valid",
    dilation: Sequence[int] = [1, 1],
    groups: int = 1,
) -> Value:
    """As conv2d, with padding 'same' or 'valid'."""
    return _named(g, x, weight, bias, stride, padding, dilation, groups)


@lowers(aten.conv3d.padding)
def conv3d_padding(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sequence[int] = [1, 1, 1],
    padding: str = "valid",
    dilation: Sequence[int] = [1, 1, 1],
    groups: int = 1,
) -> Value:
    """As conv3d, with padding 'same' or 'valid'."""
    return _named(g, x, weight, bias, stride, padding, dilation, groups)


def _explicit(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Value:
    spatial = weight.rank - 2
    pads = tuple((p, p) for p in per_axis(padding, spatial))
    window = Window(per_axis(stride, spatial), per_axis(dilation, spatial), pads, groups)
    return convolve(g, x, weight, bias, window)


def _named(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: str,
    dilation: Sequence[int],
    groups: int,
) -> Value:
    spatial = weight.rank - 2
    dilations = per_axis(dilation, spatial)
    covered = [d * (int(k) - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
    pads = tuple((c // 2, c - c // 2) if padding == "same" else (0, 0) for c in covered)
    window = Window(per_axis(stride, spatial), dilations, pads, groups)
    return convolve(g, x, weight, bias, window)


def convolve(g: Graph, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    """Of x [N, C, *spatial], or without N, with weight [O, C/groups, *kernel]."""
    require_float(x, "convolution")
    return on_channel_last(
        g, x, weight.rank - 2, lambda rows: convolve_rows(g, rows, weight, bias, window)
    )


def convolve_rows(g: Graph, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    """Of x [N, *spatial, C] with weight [O, C/groups, *kernel]."""
    if weight.rank == 5:
        return _in_groups(g, x, weight, bias, window)
    if weight.rank == 3:
        weight = tfl.expand_dims(g, weight, 2)
    y = _convolve_image(g, as_image(g, x), weight, bias, window.as_image())
    return from_image(g, y, x.rank)


def _convolve_image(g: Graph, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    kernel = dims.static(weight.shape[2:])
    mode = padding_mode(x.shape[1:-1], kernel, window)
    if mode is None:
        x, mode = padded(g, x, window.pads), VALID
    depthwise = window.groups > 1 and weight.shape[1] == 1 and x.shape[-1] == window.groups
    emit = tfl.depthwise_conv_2d if depthwise else tfl.conv_2d
    filter = tfl.transpose(g, weight, (1, 2, 3, 0) if depthwise else (0, 2, 3, 1))
    (sh, sw), (dh, dw) = window.stride, window.dilation
    return emit(g, x, filter, bias, stride=(sh, sw), dilation=(dh, dw), padding=mode)


def padding_mode(sizes: Sequence[Size], kernel: Sequence[int], window: Window) -> int | None:
    """SAME or VALID where one of them pads as the window does, else None."""
    if not any(p for pair in window.pads for p in pair):
        return VALID
    axes = zip(sizes, kernel, window.stride, window.dilation, window.pads, strict=True)
    return SAME if all(_pads_same(*axis) for axis in axes) else None


def _pads_same(size: Size, kernel: int, stride: int, dilation: int, pads: Pair) -> bool:
    if stride > 1 and not isinstance(size, int):
        return False
    known = size if isinstance(size, int) else 1  # with stride 1 the size does not matter
    return same_padding(known, kernel, stride, dilation) == pads


def _in_groups(g: Graph, x: Value, weight: Value, bias: Value | None, window: Window) -> Value:
    """CONV_3D, which knows no groups: one for each."""
    x = padded(g, x, window.pads)
    filter = tfl.transpose(g, weight, (2, 3, 4, 1, 0))
    parts = [
        tfl.conv_3d(
            g,
            part(g, x, -1, i, window.groups),
            part(g, filter, -1, i, window.groups),
            None if bias is None else part(g, bias, -1, i, window.groups),
            stride=window.stride,
            dilation=window.dilation,
        )
        for i in range(window.groups)
    ]
    return tfl.concatenation(g, parts, axis=-1)


def part(g: Graph, x: Value, axis: int, index: int, count: int) -> Value:
    """The index-th of `count` equal parts along an axis of static size."""
    axis %= x.rank
    if count == 1:
        return x
    size = int(x.shape[axis]) // count
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if x.const is None:
        return tfl.slice(g, x, [index * size if a == axis else 0 for a in range(x.rank)], shape)
    where = (slice(None),) * axis + (slice(index * size, (index + 1) * size),)
    key = ("part", axis, index, count)
    return tfl.const(x.const.derive(key, lambda a: a[where], shape=dims.static(shape)))
