"""Ops on a tensor's elements as they lie in memory, taken as contiguous."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indices import flattened
from litert_torch.converter.lowerings.kernel_dtypes import is_nonzero
from litert_torch.converter.lowerings.slicing import elements_at

aten = torch.ops.aten


def storage_places(
    size: Sequence[Size], stride: Sequence[Size], offset: Size | None
) -> "np.ndarray[Any, Any]":
    """Where in memory each element of a strided view lies."""
    at = np.array(int(offset or 0))
    for count, step in zip(dims.static(size), dims.static(stride), strict=True):
        at = at[..., None] + np.arange(count) * step
    return at


@lowers(aten.as_strided_scatter.default)
def as_strided_scatter(
    g: Graph,
    x: Value,
    src: Value,
    size: Sequence[Size],
    stride: Sequence[Size],
    storage_offset: Size | None = None,
) -> Value:
    """x with `src` in the places of a strided view: a choice between both by constant indices."""
    count = int(dims.numel(x.shape))
    source = np.arange(count)
    places = storage_places(size, stride, storage_offset).reshape(-1)
    source[places] = count + np.arange(places.size)
    both = tfl.concatenation(g, [flattened(g, x), flattened(g, src)], axis=0)
    return tfl.reshape(g, elements_at(g, both, 0, source), x.shape)


@lowers(aten.resize.default)
def resize(g: Graph, x: Value, size: Sequence[Size], *, memory_format: Any = None) -> Value:
    """The first elements under another shape; what is new is 0, where PyTorch leaves it open."""
    flat = flattened(g, x)
    have, want = int(dims.numel(x.shape)), int(dims.numel(size))
    if want > have:
        flat = tfl.pad(g, flat, [(0, want - have)], False if x.dtype == DType.BOOL else 0)
    return tfl.reshape(g, tfl.slice(g, flat, [0], [want]), size)


@lowers(aten.resize_as.default)
def resize_as(g: Graph, x: Value, the_template: Value, *, memory_format: Any = None) -> Value:
    """As `resize`, to the shape of another tensor."""
    return resize(g, x, the_template.shape)


@lowers(aten.nonzero_static.default)
def nonzero_static(g: Graph, x: Value, *, size: Size, fill_value: int = -1) -> Value:
    """Int64 coordinates [size, rank] of the first elements that are not 0, then `fill_value`s.

    The lowest `size` of the flat places, with the places of zeros put behind all others.
    """
    count, rows = int(dims.numel(x.shape)), int(size)
    flat = flattened(g, is_nonzero(g, x))
    order = const(count - np.arange(count), DType.INT32)
    key = tfl.select_v2(g, flat, order, const(0, DType.INT32))
    taken = tfl.topk_v2(g, key, min(rows, count))[0]
    taken = tfl.pad(g, taken, [(0, max(rows - count, 0))])
    place = tfl.sub(g, const(count, DType.INT32), taken)
    coordinates = []
    for axis in range(x.rank):
        inner = int(dims.numel(x.shape[axis + 1 :]))
        at = tfl.floor_div(g, place, const(inner, DType.INT32))
        at = tfl.floor_mod(g, at, const(int(x.shape[axis]), DType.INT32))
        coordinates.append(tfl.reshape(g, at, (rows, 1)))
    table = tfl.concatenation(g, coordinates, axis=1)
    found = tfl.reshape(g, tfl.greater(g, taken, const(0, DType.INT32)), (rows, 1))
    table = tfl.select_v2(g, found, table, const(fill_value, DType.INT32))
    return tfl.cast(g, table, DType.INT64)
