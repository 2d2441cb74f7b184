"""Distances between all pairs of points."""

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.slicing import elements_at
from litert_torch.converter.lowerings.statistics import vector_norm
from litert_torch.converter.lowerings.views import broadcast, transpose

aten = torch.ops.aten

_BY_PRODUCT_ABOVE = 25  # points; as PyTorch, which then takes |x|^2 + |y|^2 - 2 x y
_BY_PRODUCT_IF_LARGE, _BY_PRODUCT, _BY_DIFFERENCE = 0, 1, 2


@lowers(aten.cdist.default)
def cdist(g: Graph, x1: Value, x2: Value, p: float = 2.0, compute_mode: int | None = None) -> Value:
    """Norms of x1[..., i, :] - x2[..., j, :]: [..., P, R]."""
    x1, x2 = as_float(g, x1), as_float(g, x2)
    batch = dims.broadcast(x1.shape[:-2], x2.shape[:-2])
    x1, x2 = (broadcast(g, x, (*batch, *x.shape[-2:])) for x in (x1, x2))
    mode = compute_mode or _BY_PRODUCT_IF_LARGE
    is_large = any(_is_many(x.shape[-2]) for x in (x1, x2))
    if p == 2 and (mode == _BY_PRODUCT or (mode == _BY_PRODUCT_IF_LARGE and is_large)):
        return _euclidean(g, x1, x2)
    difference = tfl.sub(g, tfl.expand_dims(g, x1, -2), tfl.expand_dims(g, x2, -3))
    return vector_norm(g, difference, p, [-1], False)


@lowers(aten._pdist_forward.default, aten.pdist.default)
def pdist(g: Graph, x: Value, p: float = 2) -> Value:
    """Norms of x[i] - x[j] for each i < j, of x [N, D]."""
    first, second = np.triu_indices(int(x.shape[0]), 1)
    difference = tfl.sub(g, elements_at(g, x, 0, first), elements_at(g, x, 0, second))
    return vector_norm(g, difference, p, [-1], False)


def _is_many(points: Size) -> bool:
    return not isinstance(points, int) or points > _BY_PRODUCT_ABOVE


@lowers(aten._cdist_forward.default)
def cdist_forward(g: Graph, x1: Value, x2: Value, p: float, compute_mode: int | None) -> Value:
    """As `cdist`."""
    return cdist(g, x1, x2, p, compute_mode)


def _euclidean(g: Graph, x1: Value, x2: Value) -> Value:
    """By a product: fast, and as inexact for close points as PyTorch is."""
    first = tfl.sum(g, tfl.square(g, x1), [-1], True)
    second = transpose(g, tfl.sum(g, tfl.square(g, x2), [-1], True), -1, -2)
    both = tfl.mul(g, tfl.batch_matmul(g, x1, x2, adj_y=True), number(-2))
    squares = tfl.add(g, tfl.add(g, both, first), second)
    return tfl.sqrt(g, tfl.maximum(g, squares, number(0)))
