"""Attention: softmax of query times key, times value."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu import random_keys
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, Array, wide
from litert_torch.tpu.lowerings.softmax import softmax_of

aten = torch.ops.aten


@lowers(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """Query [..., H, L, E], key [..., H, S, E], value [..., H, S, F] to [..., H, L, F]."""
    if enable_gqa:
        key, value = (_repeated_heads(t, query) for t in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = wide(jnp.matmul(query * jnp.asarray(factor, query.dtype), jnp.swapaxes(key, -1, -2)))
    if is_causal:
        scores = jnp.where(_causal(scores), scores, -jnp.inf)
    if attn_mask is not None and attn_mask.dtype == bool:
        scores = jnp.where(attn_mask, scores, -jnp.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask.astype(scores.dtype)
    weights = softmax_of(scores)
    if attn_mask is not None:  # a row of which nothing is seen is 0, not NaN
        weights = jnp.where(jnp.all(scores == -jnp.inf, -1, keepdims=True), 0, weights)
    if dropout_p > 0:
        kept = jax.random.bernoulli(random_keys.take(), 1 - dropout_p, weights.shape)
        weights = jnp.where(kept, weights / (1 - dropout_p), 0)
    return jnp.matmul(weights.astype(query.dtype), value)


def _causal(scores: Array) -> Array:
    """Where a query sees a key: up to its own place."""
    shape = scores.shape[-2:]
    rows, columns = (lax.broadcasted_iota(INT32, shape, i) for i in (0, 1))
    return columns <= rows


def _repeated_heads(t: Array, query: Array) -> Array:
    """[..., H, S, E] with each head as often as query has heads for it."""
    groups = query.shape[-3] // t.shape[-3]
    return t if groups == 1 else jnp.repeat(t, groups, axis=-3)


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention_for_cpu(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Array | None = None,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """(attention, the log of each row's sum of exponentials)."""
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = wide(jnp.matmul(query, jnp.swapaxes(key, -1, -2))) * factor
    if is_causal:
        scores = jnp.where(_causal(scores), scores, -jnp.inf)
    if attn_mask is not None:
        scores = scores + attn_mask.astype(scores.dtype)
    result: Any = scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )
    return result, jax.nn.logsumexp(scores, -1)
