"""Max pooling undone: values back at the places they came from, zeros elsewhere."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indices import as_index, flattened, with_batch

aten = torch.ops.aten


def _unpooled(g: Graph, x: Value, indices: Value, sizes: Sequence[Size]) -> Value:
    """SCATTER_ND adds where windows overlapped; such places get one value, several times."""
    lead = dims.static(x.shape[: x.rank - len(sizes)])
    planes, plane = int(np.prod(lead)), int(dims.numel(sizes))
    count = int(dims.numel(x.shape)) // planes
    places = with_batch(g, tfl.reshape(g, as_index(g, indices), (planes, count)), planes, plane)
    column = tfl.reshape(g, places, (planes * count, 1))
    sums = tfl.scatter_nd(g, column, flattened(g, x), (planes * plane,))
    ones = const(np.ones(planes * count), x.dtype)
    times = tfl.scatter_nd(g, column, ones, (planes * plane,))
    values = tfl.div(g, sums, tfl.maximum(g, times, const(1, x.dtype)))
    return tfl.reshape(g, values, (*lead, *sizes))


@lowers(aten.max_unpool2d.default)
def max_unpool2d(g: Graph, x: Value, indices: Value, output_size: Sequence[Size]) -> Value:
    """x [N, C, h, w] spread over planes of `output_size` at int64 places in them."""
    return _unpooled(g, x, indices, output_size)


@lowers(aten.max_unpool3d.default)
def max_unpool3d(
    g: Graph,
    x: Value,
    indices: Value,
    output_size: Sequence[Size],
    stride: Sequence[int],
    padding: Sequence[int],
) -> Value:
    """x [N, C, d, h, w] spread over volumes of `output_size` at int64 places in them."""
    return _unpooled(g, x, indices, output_size)
