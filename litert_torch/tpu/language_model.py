"""Causal language models for TPU: prefill and decode that share weights and a cache.

The cache is state of the program: it stays on the devices, each call writes it in place, and it
may be split by heads ("transformer" shardings do that).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache

from litert_torch import progress
from litert_torch.converter.signature import Signature
from litert_torch.llm import attention, cache
from litert_torch.llm.cache import LayerShape
from litert_torch.quantize.recipe import Recipe
from litert_torch.tpu.exporting import export_signatures
from litert_torch.tpu.program import TpuProgram


class CachedModel(torch.nn.Module):
    """A causal language model with a cache in buffers, for tokens int32 [1, T]."""

    def __init__(self, model: Any, layers: Sequence[LayerShape], length: int, dtype: Any) -> None:
        super().__init__()
        self.model = model
        for (key, value), shape in zip(cache.names(len(layers)), layers, strict=True):
            keys, values = shape.zeros(length, dtype)
            device = next(model.parameters()).device
            self.register_buffer(key, keys.to(device))
            self.register_buffer(value, values.to(device))
        self._names = [name for pair in cache.names(len(layers)) for name in pair]

    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor) -> torch.Tensor:
        """Logits [1, 1, vocabulary] after the last of `tokens` [1, T] at positions [T].

        The positions follow one another; the cache holds what came before them.
        """
        start = input_pos[0].to(torch.int64)
        tensors = [self.get_buffer(name) for name in self._names]
        layers = cache.static_layers(tensors, start)
        positions = (start + torch.arange(tokens.shape[1], device=tokens.device))[None]
        output = cache.run(self.model, tokens.to(torch.int64), positions, Cache(layers=[*layers]))
        written = [tensor for layer in layers for tensor in (layer.keys, layer.values)]
        for name, tensor in zip(self._names, written, strict=True):
            self.get_buffer(name).copy_(tensor)
        logits: torch.Tensor = output.logits
        return logits


def export(
    model: Any,
    *,
    cache_length: int,
    prefill_lengths: Sequence[int] = (128,),
    cache_dtype: torch.dtype | None = None,
    quant_config: Recipe | None = None,
    progress: bool | progress.Progress | None = None,
) -> TpuProgram:
    """A model of transformers as signatures `prefill_N`, for each N, and `decode`.

    Each takes `tokens` int32 [1, N] and `input_pos` int32 [N], consecutive positions, and gives the
    logits after the last one, [1, 1, vocabulary]. Prefill reads whole chunks of N tokens: what is
    left of a prompt goes through a shorter prefill or decode.

    Args:
        model: A causal language model; weights may be on the meta device, to plan or compile only.
        cache_length: Tokens that the cache holds.
        prefill_lengths: Tokens that the prefills read.
        cache_dtype: Of the cache; by default the model's.
        quant_config: As `litert_torch.tpu.export` takes it.
        progress: As `litert_torch.tpu.export` takes it.

    Raises:
        UnsupportedCaseError: a layer keeps something else than keys and values.
    """
    device = next(model.parameters()).device
    with attention.installed(model), device:  # tensors made while tracing are where weights are
        layers = cache.measured_layers(model)
        dtype = cache_dtype or next(model.parameters()).dtype
        module = CachedModel(model, layers, cache_length, dtype).eval()
        entries = [
            Signature(name, module, (), _samples(count, device))
            for name, count in [*((f"prefill_{n}", n) for n in prefill_lengths), ("decode", 1)]
        ]
        return export_signatures(entries, quant_config=quant_config, progress=progress)


def _samples(count: int, device: Any) -> dict[str, torch.Tensor]:
    return {
        "tokens": torch.zeros(1, count, dtype=torch.int32, device=device),
        "input_pos": torch.arange(count, dtype=torch.int32, device=device),
    }
