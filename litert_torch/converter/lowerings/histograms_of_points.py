"""How many points of several dimensions fall into each box of a grid."""

from collections.abc import Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.histograms import edges_between, range_of
from litert_torch.converter.lowerings.indices import flattened

aten = torch.ops.aten


@lowers(aten._histogramdd_bin_edges.default)
def histogramdd_bin_edges(
    g: Graph,
    x: Value,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> list[Value]:
    """The edges of equal bins along each of the D dimensions of x [..., D]."""
    return [
        edges_between(g, *_limits(g, column, d, range), count)
        for d, (column, count) in enumerate(zip(_columns(g, x), bins, strict=True))
    ]


@lowers(aten._histogramdd_from_bin_cts.default)
def histogramdd_from_bin_cts(
    g: Graph,
    x: Value,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> Value:
    """Counts, or sums of weights, in equal bins."""
    edges = histogramdd_bin_edges(g, x, bins, range=range)
    return histogramdd_from_bin_tensors(g, x, edges, weight=weight, density=density)


@lowers(aten._histogramdd_from_bin_tensors.default)
def histogramdd_from_bin_tensors(
    g: Graph,
    x: Value,
    bins: Sequence[Value],
    *,
    weight: Value | None = None,
    density: bool = False,
) -> Value:
    """Counts, or sums of weights, between given edges; the last bin holds its upper edge too."""
    counts = [int(b.shape[0]) - 1 for b in bins]
    points = dims.numel(x.shape[:-1])
    total: Value | None = None
    for column, edges in zip(_columns(g, x), bins, strict=True):
        inside = _inside(g, column, edges)
        if total is None:
            total = inside
            continue
        boxes = total.shape[1] * inside.shape[1]
        pairs = tfl.mul(
            g,
            tfl.reshape(g, total, (points, total.shape[1], 1)),
            tfl.reshape(g, inside, (points, 1, inside.shape[1])),
        )
        total = tfl.reshape(g, pairs, (points, boxes))
    assert total is not None
    if weight is not None:
        total = tfl.mul(g, total, tfl.reshape(g, weight, (points, 1)))
    sums = tfl.reshape(g, tfl.sum(g, total, [0], False), counts)
    return _as_density(g, sums, bins) if density else sums


def _columns(g: Graph, x: Value) -> list[Value]:
    """The coordinates of all points along each dimension."""
    points, count = dims.numel(x.shape[:-1]), int(x.shape[-1])
    rows = tfl.reshape(g, x, (points, count))
    return [flattened(g, tfl.slice(g, rows, [0, d], (points, 1))) for d in range(count)]


def _limits(g: Graph, column: Value, d: int, given: Sequence[float] | None) -> tuple[Value, Value]:
    return range_of(g, column, None if given is None else (given[2 * d], given[2 * d + 1]))


def _inside(g: Graph, column: Value, edges: Value) -> Value:
    """1.0 where a point is in a bin: float32 [points, bins]."""
    count = int(edges.shape[0]) - 1
    low, high = (tfl.slice(g, edges, [i], [1]) for i in (0, count))
    within = tfl.logical_and(g, tfl.greater_equal(g, column, low), tfl.less_equal(g, column, high))
    place = tfl.sub(g, _upper_bound(g, edges, column), const(1, DType.INT32))
    place = tfl.minimum(g, place, const(count - 1, DType.INT32))
    place = tfl.select_v2(g, within, place, const(-1, DType.INT32))
    return tfl.one_hot(g, place, count, dtype=DType.FLOAT32)


def _upper_bound(g: Graph, edges: Value, column: Value) -> Value:
    """The first edge above each element, by halving as std::upper_bound does, sorted or not."""
    size = int(edges.shape[0])
    zero = const(0, DType.INT32)
    first = tfl.broadcast_to(g, zero, column.shape)
    left = tfl.broadcast_to(g, const(size, DType.INT32), column.shape)
    for _ in range(size.bit_length()):
        half = tfl.floor_div(g, left, const(2, DType.INT32))
        middle = tfl.add(g, first, half)
        edge = tfl.gather(g, edges, tfl.minimum(g, middle, const(size - 1, DType.INT32)), axis=0)
        searching = tfl.greater(g, left, zero)
        above = tfl.logical_and(g, searching, tfl.less_equal(g, edge, column))
        after = tfl.add(g, half, const(1, DType.INT32))
        first = tfl.select_v2(g, above, tfl.add(g, first, after), first)
        left = tfl.select_v2(g, above, tfl.sub(g, left, after), half)
    return first


def _as_density(g: Graph, sums: Value, bins: Sequence[Value]) -> Value:
    """Divided by the total and by each box's volume."""
    y = tfl.div(g, sums, tfl.sum(g, sums, list(range(sums.rank)), False))
    for d, edges in enumerate(bins):
        count = int(edges.shape[0]) - 1
        low, high = (tfl.slice(g, edges, [i], [count]) for i in (0, 1))
        width = tfl.reshape(g, tfl.sub(g, high, low), (count, *[1] * (len(bins) - d - 1)))
        y = tfl.div(g, y, width)
    return y
