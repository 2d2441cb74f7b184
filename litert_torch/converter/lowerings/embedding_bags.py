"""Sums, means and maxima of groups of embedding rows."""

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.dynamic_positions import positions
from litert_torch.converter.lowerings.indexing import embedding
from litert_torch.converter.lowerings.indices import as_index, flattened
from litert_torch.converter.lowerings.statistics import vector_norm
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2

Bags = tuple[Value, None, None, None]
"""The result, and in place of what only training needs, nothing."""


@lowers(aten.embedding_renorm.default)
def embedding_renorm(
    g: Graph, x: Value, indices: Value, max_norm: float, norm_type: float
) -> Value:
    """The table x [N, D] with the rows that are named scaled down to `max_norm`."""
    size = vector_norm(g, x, norm_type, [1], True)
    scale = tfl.div(g, tfl.const(max_norm, x.dtype), tfl.add(g, size, tfl.const(1e-7, x.dtype)))
    named = tfl.one_hot(g, flattened(g, as_index(g, indices)), int(x.shape[0]), dtype=DType.FLOAT32)
    is_named = tfl.greater(g, tfl.reduce_max(g, named, [0], False), tfl.const(0.0, x.dtype))
    is_long = tfl.greater(g, size, tfl.const(max_norm, x.dtype))
    scaled = tfl.logical_and(g, tfl.reshape(g, is_named, size.shape), is_long)
    return tfl.mul(g, x, tfl.select_v2(g, scaled, scale, tfl.const(1.0, x.dtype)))


@lowers(aten.embedding_bag.padding_idx)
def embedding_bag_padding_idx(
    g: Graph,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value | None,
    include_last_offset: bool,
    padding_idx: Size | None,
) -> Bags:
    """As embedding_bag, without the rows of `padding_idx`."""
    rows = embedding(g, weight, indices)
    length = _even_length(offsets, indices, include_last_offset)
    if length and padding_idx is None:
        return _reduced_evenly(g, rows, length, mode, per_sample_weights), None, None, None
    skipped = -1 if padding_idx is None else int(padding_idx) % int(weight.shape[0])
    shares = _membership(g, offsets, indices, include_last_offset)
    if skipped >= 0:
        kept = tfl.not_equal(g, as_index(g, indices), const(skipped, DType.INT32))
        shares = tfl.mul(g, shares, tfl.cast(g, kept, DType.FLOAT32))
    if mode == MAX:
        return _largest(g, shares, rows), None, None, None
    scaled = shares
    if per_sample_weights is not None:
        scaled = tfl.mul(g, shares, per_sample_weights)
    total = tfl.batch_matmul(g, scaled, rows)
    if mode == MEAN:
        count = tfl.maximum(g, tfl.sum(g, shares, [1], True), const(1, DType.FLOAT32))
        total = tfl.div(g, total, count)
    return total, None, None, None


@lowers(aten.embedding_bag.default)
def embedding_bag(
    g: Graph,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
) -> Bags:
    """Rows at indices [N] in bags that begin at offsets [B], each summed, averaged or maximized."""
    return embedding_bag_padding_idx(
        g,
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        None,
    )


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag_core(
    g: Graph,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Bags:
    """The form in Core ATen, where -1 is no padding index."""
    return embedding_bag_padding_idx(
        g,
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        None if padding_idx < 0 else padding_idx,
    )


def _even_length(offsets: Value, indices: Value, include_last_offset: bool) -> int:
    """The size that all bags have, if it is known now; else 0."""
    count = indices.shape[0]
    if offsets.const is None or not isinstance(count, int):
        return 0
    starts = offsets.read().astype(np.int64)
    bounds = starts if include_last_offset else np.append(starts, count)
    lengths = set(np.diff(bounds).tolist())
    covered = len(bounds) > 1 and bounds[0] == 0 and bounds[-1] == count
    return int(lengths.pop()) if covered and len(lengths) == 1 else 0


def _reduced_evenly(
    g: Graph, rows: Value, length: int, mode: int, per_sample_weights: Value | None
) -> Value:
    """Rows [B*length, D] as [B, D]."""
    if per_sample_weights is not None:
        rows = tfl.mul(g, rows, tfl.reshape(g, per_sample_weights, (rows.shape[0], 1)))
    bags = tfl.reshape(g, rows, (int(rows.shape[0]) // length, length, rows.shape[1]))
    return {SUM: tfl.sum, MEAN: tfl.mean, MAX: tfl.reduce_max}[mode](g, bags, [1], False)


def _membership(g: Graph, offsets: Value, indices: Value, include_last_offset: bool) -> Value:
    """Float32 [B, N]: 1 where index n is in bag b."""
    count = dims.numel(indices.shape)
    bags = int(offsets.shape[0]) - int(include_last_offset)
    if offsets.const is not None and isinstance(count, int):
        starts = offsets.read().astype(np.int64)
        ends = np.append(starts[1:], [] if include_last_offset else [count])
        at = np.arange(count)
        inside = (at >= starts[:bags, None]) & (at < ends[:bags, None])
        return const(inside, DType.FLOAT32)
    place = tfl.reshape(g, positions(g, count), (1, count))
    starts_now = tfl.reshape(g, as_index(g, offsets), (offsets.shape[0], 1))
    begun = tfl.cast(g, tfl.less_equal(g, starts_now, place), DType.FLOAT32)
    here = tfl.slice(g, begun, [0, 0], [bags, count])
    later = tfl.slice(g, begun, [1, 0], [int(offsets.shape[0]) - 1, count])
    if not include_last_offset:
        later = tfl.pad(g, later, [(0, 1), (0, 0)])
    return tfl.sub(g, here, later)


def _largest(g: Graph, shares: Value, rows: Value) -> Value:
    """Maximum over each bag's rows; zeros for an empty bag."""
    if not dims.is_static(shares.shape):
        raise UnsupportedCaseError("the maximum over bags needs a fixed number of indices")
    inside = tfl.greater(g, tfl.expand_dims(g, shares, 2), const(0, DType.FLOAT32))
    chosen = tfl.select_v2(g, inside, rows, const(-np.inf, DType.FLOAT32))
    largest = tfl.reduce_max(g, chosen, [1], False)
    filled = tfl.reduce_any(g, inside, [1], False)
    return tfl.select_v2(g, filled, largest, const(0, DType.FLOAT32))
