"""The entry points of a language model: prefill_N for N tokens at a time, decode for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import Cache

from litert_torch.converter import Variant
from litert_torch.converter.signature import Signature
from litert_torch.llm import cache
from litert_torch.llm.cache import LayerShape


class Prefill(torch.nn.Module):
    """Writes the keys and values of T tokens.

    Inputs are tokens int32 [1, T], their positions int32 [T] and the cache; the outputs are the
    cache. Tokens lie one after the other from the first position: what the engine puts behind the
    last one is written too, and overwritten before it is read.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, tokens: torch.Tensor, input_pos: torch.Tensor, **tensors: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """The cache, under the names it came with."""
        return self._run(tokens, input_pos, tensors)[1]

    def _run(
        self, tokens: torch.Tensor, input_pos: torch.Tensor, tensors: dict[str, torch.Tensor]
    ) -> tuple[Any, dict[str, torch.Tensor]]:
        start = input_pos[0].to(torch.int64)
        pairs = cache.names(len(tensors) // 2)
        layers = cache.static_layers([tensors[name] for pair in pairs for name in pair], start)
        positions = (start + torch.arange(tokens.shape[1]))[None]
        output = cache.run(self.model, tokens.to(torch.int64), positions, Cache(layers=[*layers]))
        written = {}
        for (key, value), layer in zip(pairs, layers, strict=True):
            written[key], written[value] = layer.keys, layer.values
        return output, written


class Decode(Prefill):
    """Writes one token's keys and values, and gives the logits of the next, [1, 1, vocabulary]."""

    def forward(
        self, tokens: torch.Tensor, input_pos: torch.Tensor, **tensors: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Logits and the cache."""
        output, written = self._run(tokens, input_pos, tensors)
        return {"logits": output.logits, **written}


def entries(
    model: Any, layers: Sequence[LayerShape], *, cache_length: int, prefill_lengths: Sequence[int]
) -> list[Signature]:
    """A prefill_N for each N, and decode."""
    prefills = [
        Signature(
            f"prefill_{n}", Prefill(model).eval(), (), _samples(model, layers, n, cache_length)
        )
        for n in prefill_lengths
    ]
    samples = _samples(model, layers, 1, cache_length)
    return [*prefills, Signature("decode", Decode(model).eval(), (), samples)]


@dataclass(frozen=True)
class Trace:
    """A model traced once, for any number of tokens, and the entry points read from it.

    Only for models that do the same for one token as for several.
    """

    signature: Signature
    variants: list[Variant]


def static_trace(
    model: Any, layers: Sequence[LayerShape], *, cache_length: int, prefill_lengths: Sequence[int]
) -> Trace:
    """A prefill_N for each N, and decode, with a cache of `cache_length` tokens."""
    samples = _samples(model, layers, max(2, *prefill_lengths), cache_length)
    shapes = _token_shapes(cache_length)
    prefills = [Variant(f"prefill_{n}", {_TOKENS: n}, {"logits"}) for n in prefill_lengths]
    return _trace(model, samples, shapes, prefills)


def dynamic_trace(model: Any, layers: Sequence[LayerShape], *, cache_length: int) -> Trace:
    """One prefill for any number of tokens, and decode, with a cache that grows.

    The engine makes the cache as long as the conversation is, up to `cache_length`. It aborts in
    decode where there is no input `mask` [1, 1, T, length]: there is one, which nothing reads.
    """
    tokens, length = 8, 24
    samples = _samples(model, layers, tokens, length)
    samples["mask"] = torch.zeros(1, 1, tokens, length)
    shapes = _token_shapes(cache_length)
    size = torch.export.Dim("cache_length", min=2, max=max(3, cache_length))
    shapes["mask"] = {2: shapes["tokens"][1], 3: size}
    for key, value in cache.names(len(layers)):
        shapes |= {key: {cache.KEY_AXIS: size}, value: {cache.VALUE_AXIS: size}}
    return _trace(model, samples, shapes, [Variant("prefill", without={"logits"})])


_TOKENS = ("tokens", 1)


def _token_shapes(most: int) -> dict[str, Any]:
    count = torch.export.Dim("tokens", min=2, max=max(3, most))
    return {"tokens": {1: count}, "input_pos": {0: count}}


def _trace(
    model: Any, samples: dict[str, torch.Tensor], shapes: dict[str, Any], prefills: list[Variant]
) -> Trace:
    """The trace of Decode, which gives all that a prefill gives."""
    of_cache = {name: shapes.get(name) for name in samples if name not in _OWN_PARAMETERS}
    dynamic = {name: shapes[name] for name in _OWN_PARAMETERS} | {"tensors": of_cache}
    signature = Signature("prefill and decode", Decode(model).eval(), (), samples, dynamic)
    return Trace(signature, [*prefills, Variant("decode", {_TOKENS: 1})])


_OWN_PARAMETERS = ("tokens", "input_pos")  # the others come under forward's `tensors`


def _samples(
    model: Any, layers: Sequence[LayerShape], tokens: int, cache_length: int
) -> dict[str, torch.Tensor]:
    inputs = {
        "tokens": torch.zeros(1, tokens, dtype=torch.int32),
        "input_pos": torch.arange(tokens, dtype=torch.int32),
    }
    for (key, value), shape in zip(cache.names(len(layers)), layers, strict=True):
        inputs[key], inputs[value] = shape.zeros(cache_length, model.dtype)
    return inputs
