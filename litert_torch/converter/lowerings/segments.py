"""Reductions of runs of slices, whose lengths the model computes."""

import math
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@lowers(aten.segment_reduce.default)
def segment_reduce(
    g: Graph,
    data: Value,
    reduce: str,
    *,
    lengths: Value | None = None,
    indices: Value | None = None,
    offsets: Value | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Value:
    """Of data [..., L, ...] along `axis`; lengths [..., S], or offsets [..., S + 1] of the runs.

    A run of none gives `initial`, or what the reduction starts from; their mean is NaN.
    """
    begin, end = _bounds(g, lengths, offsets)
    axis %= data.rank
    inner = data.rank - axis - 1
    members = _members(g, begin, end, data.shape[axis], inner)
    start = _STARTS[reduce] if initial is None else float(initial)
    rows = tfl.reshape(g, data, (*data.shape[:axis], 1, *data.shape[axis:]))
    reducers = {"max": tfl.reduce_max, "min": tfl.reduce_min, "prod": tfl.reduce_prod}
    picked = tfl.select_v2(g, members, rows, f32(_STARTS[reduce]))
    y = reducers.get(reduce, tfl.sum)(g, picked, [axis + 1], False)
    if initial is not None:
        combine = {"max": tfl.maximum, "min": tfl.minimum, "prod": tfl.mul}.get(reduce, tfl.add)
        y = combine(g, y, f32(start))
    if reduce != "mean":
        return y
    size = tfl.cast(g, tfl.sub(g, end, begin), DType.FLOAT32)
    size = tfl.reshape(g, size, (*size.shape, *[1] * inner))
    if initial is not None:
        size = tfl.maximum(g, size, f32(1.0))
    return tfl.div(g, y, size)


def _bounds(g: Graph, lengths: Value | None, offsets: Value | None) -> tuple[Value, Value]:
    """Where the runs begin and end, as int32 [..., S]."""
    if lengths is not None:
        size = tfl.cast(g, lengths, DType.INT32)
        end = tfl.cumsum(g, size, size.rank - 1)
        return tfl.sub(g, end, size), end
    if offsets is None:
        raise UnsupportedCaseError("segment_reduce by indices: give lengths or offsets")
    at = tfl.cast(g, offsets, DType.INT32)
    outer, count = at.shape[:-1], int(at.shape[-1]) - 1
    rest = [0] * len(outer)
    begin, end = (tfl.slice(g, at, [*rest, i], (*outer, count)) for i in (0, 1))
    return begin, end


def _members(g: Graph, begin: Value, end: Value, length: dims.Size, inner: int) -> Value:
    """Which of the L slices are in which run, as bool [..., S, L, 1, ...]."""
    place = const(np.arange(int(length)), DType.INT32)
    begin, end = (tfl.reshape(g, v, (*v.shape, 1)) for v in (begin, end))
    inside = tfl.logical_and(g, tfl.greater_equal(g, place, begin), tfl.less(g, place, end))
    return tfl.reshape(g, inside, (*inside.shape, *[1] * inner))
