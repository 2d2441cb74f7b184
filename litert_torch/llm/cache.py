"""A static KV cache in the layout that runs fastest, as transformers' models see a cache.

Keys are [1, heads, length, width] and values [1, heads, width, length]: then both products of
attention read the cache as it lies. Nothing is changed in place, so that the cache can be inputs
and outputs of a graph; LiteRT writes the update into the input's own buffer.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from litert_torch.errors import UnsupportedCaseError
from litert_torch.llm.positions import RunTimePositions

KEY_AXIS, VALUE_AXIS = 2, 3
"""Where the tokens lie in keys and values."""


@dataclass(frozen=True)
class LayerShape:
    """What a layer keeps for each token.

    Attributes:
        heads: Heads of the keys and values.
        key_width: Elements of a key.
        value_width: Elements of a value.
    """

    heads: int
    key_width: int
    value_width: int

    def zeros(self, length: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Empty keys and values for `length` tokens."""
        keys = torch.zeros(1, self.heads, length, self.key_width, dtype=dtype)
        return keys, torch.zeros(1, self.heads, self.value_width, length, dtype=dtype)


class StaticLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """One layer's keys and values; tokens are written from a position known at run time.

    Attributes:
        keys: [1, heads, length, key_width].
        values: [1, heads, value_width, length].
        start: Position of the first new token, an int64 scalar.
    """

    is_compileable = True
    is_sliding = False
    keys: Any
    values: Any

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, start: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys, self.values, self.start = keys, values, start
        self.is_initialized = True

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing: it is made with its tensors."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write keys and values [1, heads, tokens, width]; gives all, [1, heads, length, width].

        The rows lie one after the other, which makes the write a DYNAMIC_UPDATE_SLICE.
        """
        positions = self.start + torch.arange(key_states.shape[2])
        self.keys = self.keys.index_copy(2, positions, key_states)
        self.values = self.values.index_copy(3, positions, value_states.transpose(2, 3))
        return self.keys, self.values.transpose(2, 3)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many positions a mask covers, and the first of them."""
        return self.keys.shape[2], 0

    def get_seq_length(self) -> int:
        """Tokens seen so far; a tensor, as in transformers' own static layer."""
        seen: Any = self.start
        return seen

    def get_max_length(self) -> int:
        """How many tokens fit."""
        return self.keys.shape[2]

    get_max_cache_shape = get_max_length


class _MeasuredLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Remembers the shapes of what a model writes."""

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep the tensors and give them back."""
        self.keys, self.values = key_states, value_states
        return key_states, value_states

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Those of an empty cache."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """None seen yet."""
        return 0

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    get_max_cache_shape = get_max_length


def measured_layers(model: Any) -> list[LayerShape]:
    """What each layer of `model` keeps, found by running it on one token.

    Raises:
        UnsupportedCaseError: a layer keeps something else than keys and values.
    """
    kinds = set(getattr(model.config, "layer_types", None) or ()) - _ATTENTION_KINDS
    if kinds:
        raise _unsupported(model, f"its layers are of kind {', '.join(sorted(kinds))}")
    cache = Cache(layer_class_to_replicate=_MeasuredLayer)
    first = torch.zeros(1, 1, dtype=torch.int64)
    with torch.no_grad():
        run(model, first, first, cache)
    layers = cast("list[Any]", cache.layers)
    if not layers:
        raise _unsupported(model, "it does not write to the cache it is given")
    return [layer_shape(model, layer.keys, layer.values) for layer in layers]


_ATTENTION_KINDS = {"full_attention", "sliding_attention", "chunked_attention"}


def _unsupported(model: Any, why: str) -> UnsupportedCaseError:
    return UnsupportedCaseError(
        f"{type(model).__name__} cannot be exported: {why}; only models whose every layer keeps "
        "keys and values are supported"
    )


def layer_shape(model: Any, keys: Any, values: Any) -> LayerShape:
    """What a layer keeps, from the keys and values of one token.

    Raises:
        UnsupportedCaseError: they are something else.
    """
    if keys is None or keys.ndim != 4 or values.ndim != 4 or keys.shape[:3] != values.shape[:3]:
        raise _unsupported(model, "a layer's cache is not of keys and values [1, heads, 1, width]")
    return LayerShape(keys.shape[1], keys.shape[3], values.shape[3])


def run(model: Any, tokens: torch.Tensor, positions: torch.Tensor, cache: Cache) -> Any:
    """Call the model on int64 tokens and positions [1, T]; it gives `logits` [1, 1, vocabulary]."""
    offered = {"position_ids": positions, "logits_to_keep": 1}
    known = inspect.signature(model.forward).parameters
    with _run_time_positions(tokens, cache):
        output = model(
            input_ids=tokens,
            use_cache=True,
            **{cache_parameter(model): cache},
            **{name: value for name, value in offered.items() if name in known},
        )
    if "logits_to_keep" not in known:
        output.logits = output.logits[:, -1:]
    return output


def _run_time_positions(tokens: torch.Tensor, cache: Cache) -> AbstractContextManager[Any]:
    layer: Any = next((x for x in cache.layers if isinstance(x, StaticLayer)), None)
    if layer is None:
        return nullcontext()
    return RunTimePositions(layer.start, tokens.shape[1], layer.get_max_length())


def cache_parameter(model: Any) -> str:
    """What `model.forward` calls its cache.

    "cache" in transformers from 5.20 on, "past_key_values" before, "cache_params" in some models.
    """
    parameters = inspect.signature(model.forward).parameters
    return next((n for n in ("cache", "cache_params") if n in parameters), "past_key_values")


def names(layers: int) -> list[tuple[str, str]]:
    """The engine's names of each layer's keys and values, for inputs and outputs alike."""
    return [(f"kv_cache_k_{i}", f"kv_cache_v_{i}") for i in range(layers)]


def static_layers(tensors: Sequence[torch.Tensor], start: torch.Tensor) -> list[StaticLayer]:
    """Layers of keys, values, keys, values, ... that are written from position `start`."""
    pairs = zip(tensors[::2], tensors[1::2], strict=True)
    return [StaticLayer(keys, values, start) for keys, values in pairs]
