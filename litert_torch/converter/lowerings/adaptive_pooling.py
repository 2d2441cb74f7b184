"""Pooling to a given size: MEAN, a pool where the windows are equal, else each axis by itself."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.average_pooling import average_pool
from litert_torch.converter.lowerings.channel_last import on_channel_last, require_float
from litert_torch.converter.lowerings.max_pooling import max_pool
from litert_torch.converter.lowerings.pooling_windows import axes_of
from litert_torch.converter.lowerings.resampling import resampled

aten = torch.ops.aten


@lowers(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(g: Graph, x: Value, output_size: Sequence[int]) -> Value:
    """Of x [N, C, L] or [C, L]."""
    return _average(g, x, output_size)


@lowers(aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(g: Graph, x: Value, output_size: Sequence[int]) -> Value:
    """Of x [N, C, H, W] or [C, H, W]."""
    return _average(g, x, output_size)


@lowers(aten.adaptive_avg_pool3d.default, aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(g: Graph, x: Value, output_size: Sequence[int]) -> Value:
    """Of x [N, C, D, H, W] or [C, D, H, W]."""
    return _average(g, x, output_size)


def _average(g: Graph, x: Value, output_size: Sequence[Any]) -> Value:
    require_float(x, "adaptive average pooling")
    n = len(output_size)
    if all(out == 1 for out in output_size):
        spatial = range(1, n + 1)
        return on_channel_last(g, x, n, lambda rows: tfl.mean(g, rows, list(spatial), True))
    sizes, first = x.shape[-n:], x.rank - n
    windows = [_window(size, out) for size, out in zip(sizes, output_size, strict=True)]
    even = [w or 1 for w in windows]
    if any(w > 1 for w in even):
        x = average_pool(g, x, axes_of(sizes, even, even, 0, 1, False), False, None)
    for axis, (window, out) in enumerate(zip(windows, output_size, strict=True), start=first):
        if window is None:
            x = resampled(g, x, axis, int(out), aten.adaptive_avg_pool1d.default, [int(out)])
    return x


def _window(size: dims.Size, out: dims.Size) -> int | None:
    """Elements of each window, where all are equal and none overlap."""
    if size == out:
        return 1
    size, out = int(size), int(out)
    return size // out if size % out == 0 else None


@lowers(aten.adaptive_max_pool1d.default)
def adaptive_max_pool1d(g: Graph, x: Value, output_size: Sequence[int]) -> list[Value]:
    """Maxima of x [N, C, L] or [C, L], and their int64 positions in [L]."""
    return [_maximum(g, x, output_size), _positions(g, x, output_size)]


@lowers(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(g: Graph, x: Value, output_size: Sequence[int]) -> list[Value]:
    """Maxima of x [N, C, H, W] or [C, H, W], and their int64 positions in [H * W]."""
    return [_maximum(g, x, output_size), _positions(g, x, output_size)]


@lowers(aten.adaptive_max_pool3d.default)
def adaptive_max_pool3d(g: Graph, x: Value, output_size: Sequence[int]) -> list[Value]:
    """Maxima of x [N, C, D, H, W] or [C, D, H, W], and their int64 positions in [D * H * W]."""
    return [_maximum(g, x, output_size), _positions(g, x, output_size)]


def _maximum(g: Graph, x: Value, output_size: Sequence[int]) -> Value:
    n = len(output_size)
    sizes = x.shape[-n:]
    windows = [_window(size, out) for size, out in zip(sizes, output_size, strict=True)]
    even = [w or 1 for w in windows]
    if any(w > 1 for w in even):
        x = max_pool(g, x, axes_of(sizes, even, even, 0, 1, False))
    uneven = [i for i, w in enumerate(windows) if w is None]

    def of_bins(rows: Value) -> Value:
        for i in uneven:
            size = int(rows.shape[i + 1])
            bins = [
                tfl.reduce_max(g, _piece(g, rows, {i + 1: bin}), [i + 1], True)
                for bin in _bins(size, output_size[i])
            ]
            rows = tfl.concatenation(g, bins, axis=i + 1)
        return rows

    return on_channel_last(g, x, n, of_bins) if uneven else x


def _bins(size: int, out: int) -> list[tuple[int, int]]:
    """(start, end) of each window, as in ATen's start_index and end_index."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _piece(g: Graph, x: Value, spans: dict[int, tuple[int, int]]) -> Value:
    """Start <= index < end on some axes, everything on the others."""
    begin = [spans[axis][0] if axis in spans else 0 for axis in range(x.rank)]
    size = [
        spans[axis][1] - spans[axis][0] if axis in spans else s for axis, s in enumerate(x.shape)
    ]
    return tfl.slice(g, x, begin, size)


def _positions(g: Graph, x: Value, output_size: Sequence[int]) -> Value:
    """Where the maxima are in the flattened spatial axes: the first among equals."""
    n = len(output_size)
    sizes = dims.static(x.shape[-n:])
    index = np.arange(int(dims.numel(sizes)), dtype=np.int32).reshape(sizes)
    bins = [_bins(size, out) for size, out in zip(sizes, output_size, strict=True)]

    def searched(rows: Value) -> Value:
        batch, channels = rows.shape[0], rows.shape[-1]
        found = []
        for spans in itertools.product(*bins):
            inside = index[tuple(slice(*span) for span in spans)].reshape(-1)
            piece = _piece(g, rows, dict(enumerate(spans, start=1)))
            flat = tfl.reshape(g, piece, (batch, len(inside), channels))
            best = tfl.gather(g, tfl.const(inside), tfl.arg_max(g, flat, 1), axis=0)
            found.append(tfl.reshape(g, best, (batch, 1, channels)))
        positions = tfl.concatenation(g, found, axis=1)
        positions = tfl.reshape(g, positions, (batch, *output_size, channels))
        return tfl.cast(g, positions, DType.INT64)

    return on_channel_last(g, x, n, searched)
