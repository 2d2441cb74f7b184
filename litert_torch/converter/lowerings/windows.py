"""Sliding windows over an axis or an image, and their sum back into one."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.padding import constant_padded
from litert_torch.converter.lowerings.reordered_storage import storage_places
from litert_torch.converter.lowerings.slicing import elements_at, sliced
from litert_torch.converter.lowerings.views import transposed
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


@lowers(aten.as_strided.default)
def as_strided(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    stride: Sequence[Size],
    storage_offset: Size | None = None,
) -> Value:
    """A GATHER from the flat elements of a model input; other tensors' storage is not known."""
    source = x
    while source.producer is not None and source.producer.kind in {"RESHAPE", "CAST"}:
        inner = source.producer.inputs[0]
        assert inner is not None
        source = inner
    if source.producer is not None:
        raise UnsupportedCaseError(
            "as_strided reads memory, whose order the file does not keep: use slicing or unfold"
        )
    at = storage_places(size, stride, storage_offset)
    flat = tfl.reshape(g, x, (int(dims.numel(x.shape)),))
    if at.size and at.max() >= int(flat.shape[0]):
        raise UnsupportedCaseError("as_strided reads memory outside the tensor: pass all of it in")
    return tfl.reshape(g, elements_at(g, flat, 0, at.reshape(-1)), size)


@lowers(aten.unfold.default)
def unfold(g: Graph, x: Value, dimension: int, size: int, step: int) -> Value:
    """Windows of `size` elements, `step` apart, with the place in the window as a new last axis."""
    if x.rank == 0:
        return tfl.reshape(g, x, (size,))
    axis = dimension % x.rank
    windows = window_axis(g, x, axis, size, step, 1)
    return transposed(g, windows, [a for a in range(windows.rank) if a != axis] + [axis])


def window_axis(g: Graph, x: Value, axis: int, size: int, step: int, dilation: int) -> Value:
    """`axis` as two: the place in a window [size], then the windows, `step` apart."""
    length = x.shape[axis]
    span = dilation * (size - 1) + 1
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    if step == size and dilation == 1 and size > 1:
        count = length // step
        whole = sliced(g, x, axis, 0, count * step)
        split = tfl.reshape(g, whole, (*lead, count, size, *rest))
        swap = [*range(axis), axis + 1, axis, *range(axis + 2, split.rank)]
        return transposed(g, split, swap)
    count = (int(length) - span) // step + 1
    at = np.arange(size)[:, None] * dilation + np.arange(count) * step
    picked = elements_at(g, x, axis, at.reshape(-1))
    return tfl.reshape(g, picked, (*lead, size, count, *rest))


@lowers(aten.im2col.default)
def im2col(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """F.unfold: [N, C, H, W] to [N, C*KH*KW, windows]."""
    batch = x if x.rank == 4 else tfl.expand_dims(g, x, 0)
    pads = [(0, 0), (0, 0), *((p, p) for p in padding)]
    image = constant_padded(g, batch, pads, 0)
    rows = window_axis(g, image, 2, kernel_size[0], stride[0], dilation[0])
    both = window_axis(g, rows, 4, kernel_size[1], stride[1], dilation[1])
    n, c, kh, oh, kw, ow = both.shape
    columns = transposed(g, both, (0, 1, 2, 4, 3, 5))
    flat = tfl.reshape(g, columns, (n, c * kh * kw, oh * ow))
    return flat if x.rank == 4 else tfl.reshape(g, flat, flat.shape[1:])


@lowers(aten.col2im.default)
def col2im(
    g: Graph,
    x: Value,
    output_size: Sequence[Size],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """F.fold: [N, C*KH*KW, windows] to [N, C, *output_size], where overlapping windows add up.

    A TRANSPOSE_CONV of each channel by itself, whose filters are 1 at one place of the window each.
    """
    if x.dtype != DType.FLOAT32:
        raise UnsupportedCaseError(f"fold of {x.dtype}: cast to float32 first")
    (kh, kw), (sh, sw) = kernel_size, stride
    spans = [d * (k - 1) + 1 for k, d in zip(kernel_size, dilation, strict=True)]
    padded = [int(o) + 2 * p for o, p in zip(output_size, padding, strict=True)]
    oh, ow = ((p - s) // st + 1 for p, s, st in zip(padded, spans, stride, strict=True))
    lead = x.shape[:-2]
    channels = int(x.shape[-2]) // (kh * kw)
    images = dims.numel(lead) * channels
    columns = tfl.reshape(g, x, (images, kh * kw, oh * ow))
    windows = tfl.reshape(g, tfl.transpose(g, columns, (0, 2, 1)), (images, oh, ow, kh * kw))
    covered = ((oh - 1) * sh + spans[0], (ow - 1) * sw + spans[1])
    filters = _place_filters((kh, kw), (dilation[0], dilation[1]))
    summed = tfl.transpose_conv(g, windows, filters, None, output=covered, stride=(sh, sw))
    ends = [o - c + p for o, c, p in zip(output_size, covered, padding, strict=True)]
    pads = [(0, 0), (-padding[0], ends[0]), (-padding[1], ends[1]), (0, 0)]
    image = constant_padded(g, summed, pads, 0)
    return tfl.reshape(g, image, (*lead, channels, *output_size))


def _place_filters(kernel: tuple[int, int], dilation: tuple[int, int]) -> Value:
    """[1, span, span, KH*KW]: input channel (i, j) is 1 at (i*dilation, j*dilation)."""
    kh, kw = kernel
    shape = (1, dilation[0] * (kh - 1) + 1, dilation[1] * (kw - 1) + 1, kh * kw)
    filters = np.zeros(shape, np.float32)
    for i in range(kh):
        for j in range(kw):
            filters[0, i * dilation[0], j * dilation[1], i * kw + j] = 1
    return const(filters)
