"""Sums, means and maxima of groups of embedding rows."""

from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.indexing import as_index
from litert_torch.tpu.lowerings.promotion import INT32, INT64, Array
from litert_torch.tpu.lowerings.reduction import vector_norm

aten = torch.ops.aten

SUM, MEAN, MAX = 0, 1, 2

Bags = tuple[Array, Array, Array, Array]


@lowers(aten.embedding_renorm.default)
def embedding_renorm(x: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """The table x [N, D] with the rows that are named scaled down to `max_norm`."""
    size = vector_norm(x, norm_type, [1], True)
    named = jnp.zeros(x.shape[0], bool).at[as_index(indices).reshape(-1)].set(True)
    scale = jnp.where(named[:, None] & (size > max_norm), max_norm / (size + 1e-7), 1)
    return (x * scale).astype(x.dtype)


def _reduced(
    weight: Array,
    indices: Array,
    offsets: Array,
    mode: int,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Bags:
    """(the bags, and of what only the gradient needs: each index's bag, sizes, maxima's rows)."""
    rows = weight.at[as_index(indices)].get(mode="clip")
    count = offsets.shape[0] - int(include_last_offset)
    place = lax.iota(INT32, indices.shape[0])
    bag = jnp.searchsorted(as_index(offsets), place, side="right").astype(INT32) - 1
    kept = bag < count
    if padding_idx is not None:
        kept = kept & (indices != padding_idx % weight.shape[0])
    bag_of = jnp.where(kept, bag, count)
    sizes = jnp.zeros(count, INT32).at[bag_of].add(1, mode="drop")
    if mode == MAX:
        least = jnp.full((count, weight.shape[1]), -jnp.inf, weight.dtype)
        largest = least.at[bag_of].max(rows, mode="drop")
        result = jnp.where(sizes[:, None] > 0, largest, 0).astype(weight.dtype)
    else:
        if per_sample_weights is not None:
            rows = rows * per_sample_weights[:, None]
        result = jnp.zeros((count, weight.shape[1]), weight.dtype).at[bag_of].add(rows, mode="drop")
    if mode == MEAN:
        result = result / jnp.maximum(sizes, 1)[:, None].astype(result.dtype)
    return result, bag.astype(INT64), sizes.astype(INT64), jnp.zeros(count, INT64)


@lowers(aten.embedding_bag.padding_idx)
def embedding_bag_padding_idx(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Array | None,
    include_last_offset: bool,
    padding_idx: Any,
) -> Bags:
    """As embedding_bag, without the rows of `padding_idx`."""
    weights = per_sample_weights
    return _reduced(weight, indices, offsets, mode, weights, include_last_offset, padding_idx)


@lowers(aten.embedding_bag.default)
def embedding_bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
) -> Bags:
    """Rows at indices [N] in bags that begin at offsets [B], each summed, averaged or maximized."""
    return _reduced(weight, indices, offsets, mode, per_sample_weights, include_last_offset, None)


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag_core(
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Bags:
    """The form in Core ATen, where -1 is no padding index."""
    skipped = None if padding_idx < 0 else padding_idx
    weights = per_sample_weights
    return _reduced(weight, indices, offsets, mode, weights, include_last_offset, skipped)
