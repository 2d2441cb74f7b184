"""Chat templates that the engine renders as transformers does.

The engine's Jinja differs: a message's content always arrives as a list of parts, `bos_token` and
`eos_token` are empty, and the start token of the metadata comes before the first prompt whether
or not the template spells it. So templates get a prelude that puts things right, and each is
rendered before it is taken.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from litert_torch.errors import ConversionError

_TEXT_OF_PARTS = """\
{%- set plain = namespace(messages=[], text='') -%}
{%- for message in messages -%}
{%- if message['content'] is iterable and message['content'] is not string -%}
{%- set plain.text = '' -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{%- set plain.text = plain.text + part['text'] -%}{%- endif -%}
{%- endfor -%}
{%- set plain.messages = plain.messages + [dict(message, content=plain.text)] -%}
{%- else -%}
{%- set plain.messages = plain.messages + [message] -%}
{%- endif -%}
{%- endfor -%}
{%- set messages = plain.messages -%}
"""

_QUESTION = {"role": "user", "content": "What is 2 + 2?"}
_CONVERSATIONS = (
    [_QUESTION],
    [{"role": "system", "content": "Be brief."}, _QUESTION],
    [_QUESTION, {"role": "assistant", "content": "4."}, {"role": "user", "content": "And 3?"}],
)


@dataclass(frozen=True)
class Chat:
    """How prompts are put.

    Attributes:
        template: Jinja for the engine; None where the tokenizer has none.
        start_token: Id that the engine puts before the first prompt, if any.
    """

    template: str | None
    start_token: int | None


def prepared(tokenizer: Any, template: str | None = None) -> Chat:
    """The template, or else the tokenizer's, such that the engine renders what transformers does.

    Raises:
        ConversionError: the rewritten template renders something else; shows both.
    """
    template = tokenizer.chat_template if template is None else template
    if template is None:
        return Chat(None, _added_start(tokenizer))
    expected = [_rendered(tokenizer, template, c) for c in _CONVERSATIONS]
    starts = _starts_with_variable(tokenizer, template, expected)
    prelude = "".join(
        f"{{%- set {name} = {json.dumps(token)} -%}}\n"
        for name, token in (
            ("bos_token", "" if starts else tokenizer.bos_token),
            ("eos_token", tokenizer.eos_token),
        )
        if token is not None and re.search(rf"\b{name}\b", template)
    )
    if any(_rendered(tokenizer, template, _in_parts(c)) != e for c, e in _pairs(expected)):
        prelude += _TEXT_OF_PARTS
    rewritten = prelude + template
    for conversation, text in _pairs(expected):
        got = _rendered(tokenizer, rewritten, _in_parts(conversation))
        if (tokenizer.bos_token if starts else "") + (got or "") != text:
            raise ConversionError(
                "the chat template cannot be rewritten for the engine, whose messages come in "
                f"parts: it renders {got!r} instead of {text!r}; pass chat_template= one that "
                "takes lists as message['content']"
            )
    return Chat(rewritten, tokenizer.bos_token_id if starts else None)


def _pairs(expected: list[str | None]) -> list[tuple[list[dict[str, Any]], str]]:
    """The conversations that the template takes, as not all know systems, and their texts."""
    return [(c, e) for c, e in zip(_CONVERSATIONS, expected, strict=True) if e is not None]


def _added_start(tokenizer: Any) -> int | None:
    """The token that the tokenizer itself puts before a text."""
    ids = tokenizer("a").input_ids
    start: int | None = tokenizer.bos_token_id
    return start if start is not None and ids[:1] == [start] else None


def _starts_with_variable(tokenizer: Any, template: str, texts: list[str | None]) -> bool:
    """Whether every text starts with bos_token because the template names it."""
    if tokenizer.bos_token is None or "bos_token" not in template:
        return False
    unnamed = "{%- set bos_token = '' -%}" + template
    return all(
        text == tokenizer.bos_token + (_rendered(tokenizer, unnamed, conversation) or "")
        for conversation, text in _pairs(texts)
    )


def _rendered(tokenizer: Any, template: str, conversation: list[dict[str, Any]]) -> str | None:
    """The prompt as text; None where the template refuses the conversation."""
    import jinja2

    try:
        text: str = tokenizer.apply_chat_template(
            conversation, chat_template=template, tokenize=False, add_generation_prompt=True
        )
    except (jinja2.TemplateError, TypeError):
        return None
    return text


def _in_parts(conversation: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation with contents as the engine passes them."""
    return [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in conversation]
