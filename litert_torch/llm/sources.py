"""Where a language model comes from: a loaded one, or a folder in Hugging Face's form."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.llm.bundle import Kind, Section


@dataclass(frozen=True)
class Source:
    """A model and its tokenizer, both of transformers."""

    model: Any
    tokenizer: Any


def load(source: Any, tokenizer: Any = None) -> Source:
    """The model in float32 and eval mode, with its tokenizer.

    Args:
        source: A PreTrainedModel, or the path of a folder that `save_pretrained` made.
        tokenizer: A tokenizer of transformers, or the path of a folder with one; by default that
            of the folder, or of the folder that the model was loaded from.

    Raises:
        InvalidInputError: there is no such folder, it is incomplete, or the tokenizer is missing
            or knows more tokens than the model.
    """
    from transformers import AutoModelForCausalLM, PreTrainedModel

    if isinstance(source, PreTrainedModel):
        folder, model = source.name_or_path, source
    else:
        folder = os.fspath(source)
        model = _from_folder(AutoModelForCausalLM, folder, "model", dtype="float32")
    _check_model(model)
    found = _tokenizer(tokenizer if tokenizer is not None else folder)
    embeddings: Any = model.get_input_embeddings()
    vocabulary = embeddings.weight.shape[0]
    if len(found) > vocabulary:
        raise InvalidInputError(
            f"the tokenizer knows {len(found)} tokens, the model {vocabulary}: they do not belong "
            "together"
        )
    return Source(model, found)


def _check_model(model: Any) -> None:
    import torch

    if not model.can_generate():
        raise InvalidInputError(f"{type(model).__name__} does not generate text")
    if model.training:
        raise InvalidInputError("the model is in training mode; call model.eval() first")
    if model.dtype != torch.float32:
        raise InvalidInputError(f"the model is {model.dtype}; call model.float() first")


def _tokenizer(tokenizer: Any) -> Any:
    if not isinstance(tokenizer, (str, os.PathLike)):
        return tokenizer
    if not tokenizer:
        raise InvalidInputError("a loaded model needs tokenizer=, as the engine needs one")
    from transformers import AutoTokenizer

    return _from_folder(AutoTokenizer, os.fspath(tokenizer), "tokenizer")


def _from_folder(auto: Any, folder: str, what: str, **options: Any) -> Any:
    if not os.path.isdir(folder):
        raise InvalidInputError(f"there is no folder {folder} to load the {what} from")
    try:
        return auto.from_pretrained(folder, local_files_only=True, **options)
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInputError(f"cannot load the {what} of {folder}: {error}") from error


def tokenizer_section(tokenizer: Any) -> Section:
    """The tokenizer as the engine reads it.

    Raises:
        UnsupportedCaseError: it is neither a tokenizer.json nor a SentencePiece model.
    """
    if getattr(tokenizer, "is_fast", False):
        text = tokenizer.backend_tokenizer.to_str().encode()
        data = len(text).to_bytes(8, "little") + zlib.compress(text)
        return Section.of_bytes(Kind.HF_TOKENIZER, data)
    file = getattr(tokenizer, "vocab_file", None)
    if file and str(file).endswith((".model", ".spiece")):
        return Section.of_bytes(Kind.SENTENCE_PIECE, Path(file).read_bytes())
    raise UnsupportedCaseError(
        f"{type(tokenizer).__name__} has neither a tokenizer.json nor a SentencePiece model"
    )
