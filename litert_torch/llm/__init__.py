"""Causal language models of transformers to .litertlm files, which LiteRT-LM runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from litert_torch.errors import MissingDependencyError
from litert_torch.progress import Progress, stages

if TYPE_CHECKING:
    from litert_torch.converter import GraphTransform

__all__ = ["export"]


def export(
    source: Any,
    path: str | os.PathLike[str],
    *,
    cache_length: int | None = None,
    prefill_lengths: Sequence[int] | None = None,
    dynamic: bool | None = None,
    quantize: GraphTransform | None = None,
    tokenizer: Any = None,
    chat_template: str | None = None,
    progress: bool | Progress | None = None,
) -> None:
    """Write a model and its tokenizer as a .litertlm file, whole or not at all.

    The model runs through its own code in transformers. The file has the signatures prefill and
    decode on one set of weights; they take tokens int32 [1, N], input_pos int32 [N] and the cache,
    float32, kv_cache_k_i [1, heads, length, width] and kv_cache_v_i [1, heads, width, length]; they
    give the cache, and decode float32 logits [1, 1, vocabulary]. N, and the length, are chosen
    when it runs. With static shapes there is a prefill_N for each N of `prefill_lengths` instead.

    Args:
        source: A loaded PreTrainedModel, float32 and in eval mode, or the path of a folder in
            Hugging Face's form (config.json, safetensors, tokenizer.json).
        path: The file to write.
        cache_length: Most tokens of a conversation, by default 1280, or as many as the model knows
            if that is less. With static shapes, decoding a token takes time in proportion.
        prefill_lengths: For static shapes: tokens of a prompt that are read in one go, 16 and 128
            if it is None. A prompt is read in the largest that fit; each costs memory when loaded.
        dynamic: Whether shapes are dynamic, which is faster on a CPU; accelerators need static
            ones. By default where no `prefill_lengths` are given.
        quantize: A recipe of `litert_torch.quantize.recipe`, or what else has apply(graph).
        tokenizer: A tokenizer of transformers, or a folder with one; by default the source's.
        chat_template: Jinja to use instead of the tokenizer's.
        progress: As in `litert_torch.convert`.

    Raises:
        MissingDependencyError: transformers is not installed.
        InvalidInputError: the source or the tokenizer cannot be loaded, they do not belong
            together, or a length does not fit the model.
        UnsupportedCaseError: the model keeps other state than keys and values.
        ConversionError: the model does not convert, or its chat template cannot be made to work.
        OutputError: the file cannot be written.
    """
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "exporting language models needs transformers: pip install transformers"
        ) from error
    from litert_torch.llm import exporting

    with stages(progress) as stage:
        exporting.export(
            source,
            path,
            cache_length=cache_length,
            prefill_lengths=prefill_lengths,
            dynamic=dynamic,
            quantize=quantize,
            tokenizer=tokenizer,
            chat_template=chat_template,
            progress=stage,
        )
