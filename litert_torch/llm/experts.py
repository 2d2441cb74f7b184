"""Mixtures of experts, in a form whose weights stay constants: each expert a FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_NAME = "litert"


@contextmanager
def installed(model: Any) -> Iterator[None]:
    """Let the experts of `model` be computed by the function below, and as before afterwards."""
    layers = [m for m in model.modules() if hasattr(m, "_is_expert_parallel")]
    if not layers:
        yield
        return
    from transformers.integrations.moe import ExpertsInterface

    ExpertsInterface.register(_NAME, experts)
    before = [(m.config, m.config._experts_implementation) for m in layers]
    for config, _ in before:
        config._experts_implementation = _NAME
    try:
        yield
    finally:
        for config, name in before:
            config._experts_implementation = name


def experts(
    module: Any, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """Every expert for every token, those that were not chosen with weight 0.

    Args:
        module: A layer of experts as transformers has them, with what its decorator notes.
        hidden: [tokens, width].
        chosen: The experts of each token, int64 [tokens, k].
        weights: Their weights, [tokens, k].

    Returns:
        [tokens, width].
    """
    count = module.down_proj.shape[0]
    picked = chosen[:, :, None] == torch.arange(count)
    share = (weights[:, :, None] * picked.to(weights.dtype)).sum(1)
    y: Any = 0
    for i in range(count):
        y = y + _expert(module, hidden, i) * share[:, i : i + 1]
    result: torch.Tensor = y.to(hidden.dtype)
    return result


def _expert(module: Any, x: torch.Tensor, i: int) -> torch.Tensor:
    x = _linear(module, "gate_up_proj" if module.has_gate else "up_proj", x, i)
    x = module._apply_gate(x) if module.has_gate else module.act_fn(x)
    x = _linear(module, "down_proj", x, i)
    return module.post_expert_norm(x) if module.has_post_expert_norm else x


def _linear(module: Any, name: str, x: torch.Tensor, i: int) -> torch.Tensor:
    weight = getattr(module, name)[i]
    bias = getattr(module, name + "_bias")[i] if module.has_bias else None
    return torch.nn.functional.linear(x, weight.T if module.is_transposed else weight, bias)
