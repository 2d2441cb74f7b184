"""What the engine is told about a model: the protocol buffer litert.lm.proto.LlmMetadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MODEL_KINDS = {"gemma3n": 2, "gemma3": 4, "qwen3": 5, "qwen2p5": 7, "lfm2": 11}
"""Fields of LlmModelType beside generic_model, whose tool calls the engine parses."""

_GENERIC = 1
_START, _STOP, _MAX_TOKENS, _KIND, _TEMPLATE, _PAD = 1, 2, 5, 6, 7, 13
_TOKEN_IDS, _IDS = 1, 1


@dataclass(frozen=True)
class Metadata:
    """What `LlmMetadata` says.

    Attributes:
        max_tokens: Tokens of the prompts and answers of a conversation together.
        stop_tokens: Each ends an answer.
        start_token: The engine puts it before the first prompt, whatever that begins with.
        pad_token: For padding.
        template: The chat template, in Jinja.
        kind: One of `MODEL_KINDS`; "" is generic.
    """

    max_tokens: int
    stop_tokens: Sequence[int]
    start_token: int | None = None
    pad_token: int | None = None
    template: str | None = None
    kind: str = ""

    def to_bytes(self) -> bytes:
        """The message, fields in order of their numbers."""
        parts = []
        if self.start_token is not None:
            parts.append(_message(_START, _token(self.start_token)))
        parts += [_message(_STOP, _token(token)) for token in self.stop_tokens]
        parts.append(_number(_MAX_TOKENS, self.max_tokens))
        parts.append(_message(_KIND, _message(MODEL_KINDS.get(self.kind, _GENERIC), b"")))
        if self.template is not None:
            parts.append(_message(_TEMPLATE, self.template.encode()))
        if self.pad_token is not None:
            parts.append(_message(_PAD, _token(self.pad_token)))
        return b"".join(parts)


def _token(token: int) -> bytes:
    """A TokenUnion of one id."""
    return _message(_TOKEN_IDS, _message(_IDS, _varint(token)))


def _message(field: int, data: bytes) -> bytes:
    """A field with a length: a message, text, or packed numbers."""
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; the high bit says that more follow."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])
