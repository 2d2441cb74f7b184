"""Models whose layers keep a state beside keys and values, or instead: convolutions, recurrences.

A state forgets how it came about, so that padding must never reach it, and many models can continue
from one with a single token only. So prefill is a loop over the tokens that are really there, each
of which does what decode does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DummyLayer,
    DynamicCache,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

from litert_torch.converter.signature import Signature
from litert_torch.llm import cache
from litert_torch.llm.cache import LayerShape, StaticLayer

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class LayerState:
    """What a layer keeps.

    Attributes:
        keys_and_values: What it keeps for each token, if it attends.
        convolutions: The shape of each window of a convolution, by index.
        recurrent: The shape of each recurrent state, by index.
        linear: Whether the model takes it for a layer with such states.
    """

    keys_and_values: LayerShape | None
    convolutions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    recurrent: dict[int, tuple[int, ...]] = field(default_factory=dict)
    linear: bool = False

    def zeros(self, layer: int, length: int, dtype: torch.dtype) -> Tensors:
        """The empty state of layer number `layer`, under the engine's names."""
        found: Tensors = {}
        if self.keys_and_values:
            key, value = f"kv_cache_k_{layer}", f"kv_cache_v_{layer}"
            found[key], found[value] = self.keys_and_values.zeros(length, dtype)
        for kind, shapes in (("c", self.convolutions), ("r", self.recurrent)):
            found |= {_name(kind, layer, i): torch.zeros(s) for i, s in shapes.items()}
        return found

    def with_tensors(self, layer: int, tensors: Tensors, start: torch.Tensor) -> Any:
        """The layer as the model's cache holds it."""
        if not self.linear and not self.keys_and_values:
            return DummyLayer()  # type: ignore[no-untyped-call]
        own = {} if self.keys_and_values is None else _keys_and_values(layer, tensors)
        if not self.linear:
            return StaticLayer(**own, start=start)
        states = {
            kind: {i: tensors[_name(kind, layer, i)].clone() for i in shapes}
            for kind, shapes in (("c", self.convolutions), ("r", self.recurrent))
        }
        if own:
            return _HybridLayer(own["keys"], own["values"], start, states["c"], states["r"])
        return _StateLayer(states["c"], states["r"])


def _keys_and_values(layer: int, tensors: Tensors) -> Tensors:
    return {"keys": tensors[f"kv_cache_k_{layer}"], "values": tensors[f"kv_cache_v_{layer}"]}


def _name(kind: str, layer: int, index: int) -> str:
    return f"kv_cache_{kind}_{layer}" + (f"_{index}" if index else "")


class _StateLayer(LinearAttentionLayer):
    """States that are replaced, never written to, as if a token had been seen before."""

    def __init__(self, convolutions: dict[int, Any], recurrent: dict[int, Any]) -> None:
        indices = {*convolutions, *recurrent}
        super().__init__(max(indices, default=0) + 1)
        self._fill(convolutions, recurrent)

    def _fill(self, convolutions: dict[int, Any], recurrent: dict[int, Any]) -> None:
        self.conv_states.update(convolutions)
        self.recurrent_states.update(recurrent)
        self.has_previous_state = dict.fromkeys(self.conv_states, True)

    def update_conv_state(  # type: ignore[override]
        self, conv_states: torch.Tensor, state_idx: int = 0, **kwargs: Any
    ) -> torch.Tensor:
        """Append to the window; gives it before its oldest columns are dropped."""
        window: Any = self.conv_states[state_idx]
        full = torch.cat([window, conv_states], -1)
        self.conv_states[state_idx] = full[..., -window.shape[-1] :]
        return full

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, state_idx: int = 0, **kwargs: Any
    ) -> torch.Tensor:
        """Replace the state."""
        self.recurrent_states[state_idx] = recurrent_states
        return recurrent_states


class _HybridLayer(_StateLayer, StaticLayer):  # type: ignore[override, no-untyped-call]
    """Keys and values, and states."""

    def __init__(
        self,
        keys: torch.Tensor,
        values: torch.Tensor,
        start: torch.Tensor,
        convolutions: dict[int, Any],
        recurrent: dict[int, Any],
    ) -> None:
        StaticLayer.__init__(self, keys, values, start)
        LinearAttentionLayer.__init__(self, max({*convolutions, *recurrent}) + 1)
        self._fill(convolutions, recurrent)

    get_max_length = StaticLayer.get_max_length
    lazy_initialization = StaticLayer.lazy_initialization  # type: ignore[assignment]


def keeps_state(model: Any) -> bool:
    """Whether transformers' own cache for this model has layers with states."""
    layers: list[Any] = DynamicCache(config=model.config).layers
    return any(isinstance(x, LinearAttentionCacheLayerMixin) for x in layers)


def measured_states(model: Any) -> list[LayerState]:
    """What each layer keeps, found by running the model on one token."""
    seen = DynamicCache(config=model.config)
    first = torch.zeros(1, 1, dtype=torch.int64)
    with torch.no_grad():
        cache.run(model, first, first, seen)
    return [_measured(model, layer) for layer in seen.layers]


def _measured(model: Any, layer: Any) -> LayerState:
    attends = isinstance(layer, CacheLayerMixin) and layer.keys is not None
    shape = cache.layer_shape(model, layer.keys, layer.values) if attends else None
    if not isinstance(layer, LinearAttentionCacheLayerMixin):
        return LayerState(shape)
    windows, states = (
        {i: tuple(t.shape) for i, t in found.items() if t is not None}
        for found in (layer.conv_states, layer.recurrent_states)
    )
    return LayerState(shape, windows, states, linear=True)


class Decode(torch.nn.Module):
    """One token: tokens int32 [1, 1], input_pos int32 [1] and the state to logits and the state."""

    def __init__(self, model: Any, states: Sequence[LayerState]) -> None:
        super().__init__()
        self.model = model
        self.states = states

    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor, **tensors: Any) -> Tensors:
        """Logits [1, 1, vocabulary] and the state, under the names it came with."""
        logits, new = self.step(tokens.to(torch.int64), input_pos.to(torch.int64), tensors)
        return {"logits": logits, **new}

    def step(
        self, token: torch.Tensor, position: torch.Tensor, tensors: Tensors
    ) -> tuple[torch.Tensor, Tensors]:
        """One int64 token [1, 1] at an int64 position [1]."""
        layers = [s.with_tensors(i, tensors, position[0]) for i, s in enumerate(self.states)]
        output = cache.run(self.model, token, position[None], Cache(layers=layers))
        new: Tensors = {}
        for i, layer in enumerate(layers):
            if isinstance(layer, StaticLayer):
                new[f"kv_cache_k_{i}"], new[f"kv_cache_v_{i}"] = layer.keys, layer.values
            if isinstance(layer, _StateLayer):
                for kind, states in (("c", layer.conv_states), ("r", layer.recurrent_states)):
                    new |= {_name(kind, i, j): t for j, t in states.items() if t is not None}
        return output.logits, {name: new[name] for name in tensors}


class Prefill(Decode):
    """Tokens int32 [1, T] at input_pos int32 [T], those behind the last one left out."""

    def forward(self, tokens: torch.Tensor, input_pos: torch.Tensor, **tensors: Any) -> Tensors:
        """The state after the last token whose position follows that of the one before."""
        ids, start = tokens.to(torch.int64), input_pos[0].to(torch.int64)
        count = (input_pos == input_pos[0] + torch.arange(ids.shape[1])).sum().to(torch.int64)
        names, weights = [*tensors], _weights(self.model)

        def more(i: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
            return i < rest[len(names)]

        def body(i: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
            state = dict(zip(names, rest, strict=False))
            _, ids, start, *values = rest[len(names) :]
            with torch.nn.utils.stateless._reparametrize_module(
                self.model, dict(zip(weights, values, strict=True)), tie_weights=True
            ):
                token = ids.index_select(1, i[None])
                _, new = self.step(token, (start + i)[None], state)
            return i + 1, *(t.clone() for t in new.values())

        first = torch.zeros((), dtype=torch.int64)
        carried = (first, *tensors.values())
        _, *last = torch.ops.higher_order.while_loop(
            more, body, carried, (count, ids, start, *weights.values())
        )
        return dict(zip(names, last, strict=True))


def _weights(model: Any) -> Tensors:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def entries(
    model: Any,
    states: Sequence[LayerState],
    *,
    cache_length: int,
    prefill_lengths: Sequence[int],
) -> list[Signature]:
    """A prefill_N for each N, and decode."""

    def samples(tokens: int) -> Tensors:
        found = {
            "tokens": torch.zeros(1, tokens, dtype=torch.int32),
            "input_pos": torch.arange(tokens, dtype=torch.int32),
        }
        for i, state in enumerate(states):
            found |= state.zeros(i, cache_length, model.dtype)
        return found

    prefills = [
        Signature(f"prefill_{n}", Prefill(model, states).eval(), (), samples(n))
        for n in prefill_lengths
    ]
    return [*prefills, Signature("decode", Decode(model, states).eval(), (), samples(1))]
