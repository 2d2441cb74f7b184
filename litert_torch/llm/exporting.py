"""From a causal language model to a .litertlm file."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

from litert_torch import converter
from litert_torch.converter import GraphTransform, flatbuffer
from litert_torch.converter.ir import Graph
from litert_torch.errors import ConversionError, InvalidInputError
from litert_torch.llm import attention, bundle, chat, experts, recurrent, signatures, sources
from litert_torch.llm.cache import measured_layers
from litert_torch.llm.metadata import MODEL_KINDS, Metadata
from litert_torch.progress import Progress

_log = logging.getLogger("litert_torch")

_MODEL_ITEMS = {"model_type": "tf_lite_prefill_decode"}
_DEFAULT_CACHE = 1280
_DEFAULT_PREFILLS = (16, 128)


def export(
    source: Any,
    path: str | os.PathLike[str],
    *,
    cache_length: int | None,
    prefill_lengths: Sequence[int] | None,
    dynamic: bool | None,
    quantize: GraphTransform | None,
    tokenizer: Any,
    chat_template: str | None,
    progress: Progress,
) -> None:
    """`litert_torch.llm.export`, which describes it."""
    progress("load")
    loaded = sources.load(source, tokenizer)
    length = _cache_length(loaded.model, cache_length)
    prefills = (
        None if _is_dynamic(dynamic, prefill_lengths) else _prefill_lengths(prefill_lengths, length)
    )
    tokenizer_section = sources.tokenizer_section(loaded.tokenizer)
    talk = chat.prepared(loaded.tokenizer, chat_template)
    about = _metadata(loaded, talk, length)
    graphs = _graphs(loaded.model, length, prefills, quantize, progress)
    progress("write")
    sections = [
        bundle.Section.of_bytes(bundle.Kind.METADATA, about.to_bytes()),
        tokenizer_section,
        bundle.Section(
            bundle.Kind.MODEL, lambda stream: flatbuffer.to_stream(graphs, stream), _MODEL_ITEMS
        ),
    ]
    bundle.write(path, sections)


def _graphs(
    model: Any,
    cache_length: int,
    prefill_lengths: Sequence[int] | None,
    quantize: GraphTransform | None,
    progress: Progress,
) -> list[Graph]:
    """One graph for each signature; the weights are shared. Without lengths, dynamic shapes.

    One trace serves all signatures where the model allows it: tracing takes most of the time.
    """
    options: dict[str, Any] = {"progress": progress}
    options["transforms"] = [] if quantize is None else [quantize]
    with attention.installed(model), experts.installed(model):
        if recurrent.keeps_state(model):
            entries = recurrent.entries(
                model,
                recurrent.measured_states(model),
                cache_length=cache_length,
                prefill_lengths=prefill_lengths or _prefill_lengths(None, cache_length),
            )
            return converter.convert_signatures(entries, **options)
        layers = measured_layers(model)
        if prefill_lengths is None:
            trace = signatures.dynamic_trace(model, layers, cache_length=cache_length)
            try:
                return converter.convert_variants(trace.signature, trace.variants, **options)
            except ConversionError as error:
                _log.warning("Static shapes, as dynamic ones do not convert: %s", error)
        lengths = prefill_lengths or _prefill_lengths(None, cache_length)
        sizes: Any = {"cache_length": cache_length, "prefill_lengths": lengths}
        trace = signatures.static_trace(model, layers, **sizes)
        try:
            return converter.convert_variants(trace.signature, trace.variants, **options)
        except ConversionError as error:
            _log.info("Each signature is traced, as one trace does not convert: %s", error)
        entries = signatures.entries(model, layers, **sizes)
        return converter.convert_signatures(entries, **options)


def _cache_length(model: Any, asked: int | None) -> int:
    """Tokens that the cache holds.

    Raises:
        InvalidInputError: it is not positive, or more than the model's positions.
    """
    config = model.config.get_text_config()
    limit = getattr(config, "max_position_embeddings", None)
    if asked is None:
        return min(_DEFAULT_CACHE, limit or _DEFAULT_CACHE)
    if asked < 2:
        raise InvalidInputError(f"cache_length must be 2 or more, not {asked}")
    if limit and asked > limit:
        raise InvalidInputError(
            f"cache_length={asked} is more than the {limit} positions that the model knows"
        )
    return asked


def _is_dynamic(asked: bool | None, prefill_lengths: Sequence[int] | None) -> bool:
    """Whether sizes are chosen at run time: where asked for, else where no lengths are given."""
    if asked and prefill_lengths is not None:
        raise InvalidInputError(
            "prefill_lengths are of static shapes; leave them out, or dynamic=True"
        )
    return prefill_lengths is None if asked is None else asked


def _prefill_lengths(asked: Sequence[int] | None, cache_length: int) -> list[int]:
    if asked is None:
        fitting = [n for n in _DEFAULT_PREFILLS if n <= cache_length]
        return fitting or [cache_length]
    lengths = sorted(set(asked))
    if not lengths or lengths[0] < 1 or lengths[-1] > cache_length:
        raise InvalidInputError(
            f"prefill_lengths={list(asked)}: give one or more, of 1 to {cache_length} tokens"
        )
    return lengths


def _metadata(loaded: sources.Source, talk: chat.Chat, cache_length: int) -> Metadata:
    stops = _stop_tokens(loaded)
    if not stops:
        raise InvalidInputError(
            "no token ends an answer: the tokenizer has no eos_token, nor has the model's "
            "generation_config"
        )
    return Metadata(
        max_tokens=cache_length,
        stop_tokens=stops,
        start_token=talk.start_token,
        pad_token=loaded.tokenizer.pad_token_id,
        template=talk.template,
        kind=_kind(loaded.model.config.model_type),
    )


def _stop_tokens(loaded: sources.Source) -> list[int]:
    """What the tokenizer and the model's generation_config say, without repeats."""
    generation = getattr(loaded.model, "generation_config", None)
    found: list[int] = []
    for ids in (loaded.tokenizer.eos_token_id, getattr(generation, "eos_token_id", None)):
        found += ids if isinstance(ids, Iterable) else [] if ids is None else [ids]
    return list(dict.fromkeys(found))


def _kind(model_type: str) -> str:
    """The engine's name of a model type."""
    renamed = {"qwen2": "qwen2p5", "gemma3_text": "gemma3", "gemma3n_text": "gemma3n"}
    kind = renamed.get(model_type, model_type)
    return kind if kind in MODEL_KINDS else ""
