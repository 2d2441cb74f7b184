"""How many elements fall into each bin."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.converter.lowerings.indices import flattened
from litert_torch.converter.lowerings.kernel_dtypes import widened
from litert_torch.converter.lowerings.promotion import as_float

aten = torch.ops.aten


@lowers(aten.histc.default)
def histc(g: Graph, x: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    """Counts of x's elements in `bins` equal bins from `min` to `max`; both 0: of all elements."""
    flat = as_float(g, flattened(g, x))
    low, high = range_of(g, flat, None if min == max else (min, max))
    counts = _counts(g, flat, low, high, bins, f32(1.0))
    return tfl.cast(g, counts, x.dtype)


@lowers(aten.histogram.bin_ct)
def histogram(
    g: Graph,
    x: Value,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> list[Value]:
    """Counts, or sums of weights, in equal bins, and the bins' edges."""
    flat = flattened(g, x)
    low, high = range_of(g, flat, None if range is None else (range[0], range[1]))
    weights = f32(1.0) if weight is None else flattened(g, weight)
    sums = _counts(g, flat, low, high, bins, weights)
    width = tfl.sub(g, high, low)
    if density:
        volume = tfl.mul(g, tfl.sum(g, sums, [0], False), tfl.mul(g, width, f32(1 / bins)))
        sums = tfl.div(g, sums, volume)
    return [sums, edges_between(g, low, high, bins)]


@lowers(aten.histogram.bins_tensor)
def histogram_of_edges(
    g: Graph, x: Value, bins: Value, *, weight: Value | None = None, density: bool = False
) -> list[Value]:
    """As `histogram`, with the edges given; the last bin holds its upper edge too."""
    flat = flattened(g, x)
    column = tfl.reshape(g, flat, (*flat.shape, 1))
    count = int(bins.shape[0]) - 1
    low = tfl.slice(g, bins, [0], [count])
    high = tfl.slice(g, bins, [1], [count])
    is_last = const(np.arange(count) == count - 1, DType.BOOL)
    closed = tfl.logical_and(g, tfl.equal(g, column, high), is_last)
    below = tfl.logical_or(g, tfl.less(g, column, high), closed)
    inside = tfl.cast(g, tfl.logical_and(g, tfl.greater_equal(g, column, low), below), x.dtype)
    if weight is not None:
        inside = tfl.mul(g, inside, tfl.reshape(g, flattened(g, weight), column.shape))
    sums = tfl.sum(g, inside, [0], False)
    if density:
        total = tfl.sum(g, sums, [0], False)
        sums = tfl.div(g, tfl.div(g, sums, tfl.sub(g, high, low)), total)
    return [sums, bins]


def edges_between(g: Graph, low: Value, high: Value, bins: int) -> Value:
    """The edges of equal bins, counted from the nearer end: both ends are exact."""
    step = tfl.mul(g, tfl.sub(g, high, low), f32(1 / bins))
    place = np.arange(bins + 1)
    from_low = tfl.add(g, tfl.mul(g, const(place, DType.FLOAT32), step), low)
    from_high = tfl.sub(g, high, tfl.mul(g, const(bins - place, DType.FLOAT32), step))
    is_near_low = const(place < (bins + 1) // 2, DType.BOOL)
    return tfl.select_v2(g, is_near_low, from_low, from_high)


def range_of(g: Graph, flat: Value, given: tuple[float, float] | None) -> tuple[Value, Value]:
    """The lowest and the highest edge; apart by 1 where all elements are equal."""
    if given is not None:
        low, high = given
        return (f32(low), f32(high)) if low != high else (f32(low - 0.5), f32(high + 0.5))
    if dims.numel(flat.shape) == 0:
        return f32(0.0), f32(1.0)
    least = tfl.reduce_min(g, flat, [0], False)
    most = tfl.reduce_max(g, flat, [0], False)
    same = tfl.equal(g, least, most)
    lowest = tfl.select_v2(g, same, tfl.sub(g, least, f32(0.5)), least)
    return lowest, tfl.select_v2(g, same, tfl.add(g, most, f32(0.5)), most)


def _counts(g: Graph, flat: Value, low: Value, high: Value, bins: int, weights: Value) -> Value:
    scaled = tfl.mul(g, tfl.sub(g, flat, low), f32(float(bins)))
    place = tfl.floor(g, tfl.div(g, scaled, tfl.sub(g, high, low)))
    place = tfl.minimum(g, place, f32(bins - 1.0))
    inside = tfl.logical_and(g, tfl.greater_equal(g, flat, low), tfl.less_equal(g, flat, high))
    index = tfl.cast(g, tfl.select_v2(g, inside, place, f32(-1.0)), DType.INT32)
    named = tfl.one_hot(g, index, bins, dtype=DType.FLOAT32)
    if weights.rank:
        named = tfl.mul(g, named, tfl.reshape(g, widened(g, weights), (*flat.shape, 1)))
    return tfl.sum(g, named, [0], False)
