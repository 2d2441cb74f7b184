"""Attention and masks as transformers' models call them, in the form that LiteRT runs fastest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from litert_torch.errors import UnsupportedCaseError

_NAME = "litert"
_HIDDEN = -1e9  # exp of a score with it added is 0, and no such sum overflows


@contextmanager
def installed(model: Any) -> Iterator[None]:
    """Let `model` compute attention by the functions below, and as before after the block.

    Models that do not let attention be replaced use their own ("eager").
    """
    AttentionInterface.register(_NAME, attention)
    AttentionMaskInterface.register(_NAME, mask)
    before = model.config._attn_implementation
    replaceable = getattr(model, "_supports_attention_backend", False)
    model.set_attn_implementation(_NAME if replaceable else "eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """The queries of all heads that share a key are rows of one product with it.

    Args:
        module: The attention layer.
        query: [1, heads, T, D].
        key: [1, groups, S, D].
        value: [1, groups, S, E].
        attention_mask: What to add to the scores, [1, 1, T, S].
        dropout: Not used.
        scaling: Factor of the scores; 1 / sqrt(D) by default.
        softcap: Scores stay within -softcap .. softcap.
        **kwargs: What else models pass; attention sinks are refused.

    Returns:
        [1, T, heads, E], and None for the weights.
    """
    if any(kwargs.get(name) is not None for name in ("s_aux", "position_bias", "head_mask")):
        raise UnsupportedCaseError("attention sinks and position biases are not supported")
    _, heads, tokens, width = query.shape
    groups = key.shape[1]
    scale = width**-0.5 if scaling is None else scaling
    rows = (query * scale).reshape(1, groups, heads // groups * tokens, width)
    scores = rows @ key.transpose(2, 3)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if attention_mask is not None:
        repeats = 1 if tokens == 1 else heads // groups
        scores = scores + attention_mask.repeat(1, 1, repeats, 1)
    y = torch.softmax(scores, -1) @ value
    return y.reshape(1, heads, tokens, -1).transpose(1, 2), None


def mask(*args: Any, dtype: torch.dtype = torch.float32, **kwargs: Any) -> torch.Tensor:
    """Transformers' mask [1, 1, T, S], as a number to add to the scores."""
    kwargs |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    attended = sdpa_mask(*args, **kwargs)
    assert attended is not None
    zero = torch.zeros((), dtype=dtype)
    return torch.where(attended, zero, torch.full((), _HIDDEN, dtype=dtype))
