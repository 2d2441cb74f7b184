"""Chat templates as the engine renders them: contents in parts, no bos_token, no eos_token."""

import jinja2
import pytest

from litert_torch.errors import ConversionError
from litert_torch.llm import chat
from tests.llm import tiny_models

TALK = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Who're you?"},
]
LOOP = (
    "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] | trim }}{{ eos_token }}{% endfor %}"
)


def as_engine(template):
    """What the engine makes of TALK: minijinja, which is near enough to jinja2 here."""
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    parts = [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in TALK]
    return environment.from_string(template).render(
        messages=parts, bos_token="", eos_token="", add_generation_prompt=True
    )


@pytest.mark.parametrize(
    ("template", "starts"),
    [
        (tiny_models.CHAT_TEMPLATE, False),  # spells <s> itself
        ("{{ bos_token }}" + LOOP, True),
        ("{{- bos_token -}}\n" + LOOP, True),
        ("{{ bos_token }}" + LOOP + "{{ bos_token }}", False),  # an empty one would miss the last
        (LOOP + "{{ bos_token }}", False),
        ("<s>{{ bos_token }}" + LOOP, True),  # twice, as it says
        ("Say:\n" + LOOP, False),
        (LOOP.replace("messages", "messages[-1:]"), False),
    ],
)
def test_the_engine_renders_what_transformers_does(template, starts):
    tokenizer = tiny_models.tokenizer(template)
    expected = tokenizer.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True)
    got = chat.prepared(tokenizer)
    assert got.start_token == (tokenizer.bos_token_id if starts else None)
    assert ("<s>" if starts else "") + as_engine(got.template) == expected


def test_templates_for_parts_are_left_as_they_are():
    template = "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    template += "{% for p in m['content'] %}{{ p['text'] }}{% endfor %}{% endif %}{% endfor %}"
    assert chat.prepared(tiny_models.tokenizer(template)).template == template


def test_a_template_given_replaces_the_tokenizers():
    template = chat.prepared(tiny_models.tokenizer(), "{{ messages | length }}").template
    assert template == "{{ messages | length }}"


def test_templates_that_refuse_systems_are_taken():
    refuses = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('none') }}{% endif %}"
    got = chat.prepared(tiny_models.tokenizer(refuses + LOOP))
    assert as_engine(got.template).startswith("[user] Hi</s>[assistant] Hello.</s>")


def test_a_template_that_cannot_be_rewritten_is_an_error():
    tests_for_dict = "{% for m in messages %}{{ m is mapping and m.keys() | length }}{% endfor %}"
    changes = "{% set ns = namespace(n=plain is defined) %}{{ ns.n }}{{ messages[0]['content'] }}"
    assert chat.prepared(tiny_models.tokenizer(tests_for_dict)).template == tests_for_dict
    with pytest.raises(ConversionError, match="cannot be rewritten"):
        chat.prepared(tiny_models.tokenizer(changes))


def test_no_template():
    tokenizer = tiny_models.tokenizer(None)
    assert chat.prepared(tokenizer) == chat.Chat(None, None)
    tokenizer.add_bos_token = True
    expected = tokenizer.bos_token_id if tokenizer("a").input_ids[0] == 256 else None
    assert chat.prepared(tokenizer).start_token == expected
