"""Exported files in the engine itself, which the Python of LITERT_LM_PYTHON has installed.

python -m venv lm && lm/bin/pip install litert-lm-api
LITERT_LM_PYTHON=lm/bin/python pytest tests/llm/test_engine.py
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from litert_torch import llm
from tests.llm import tiny_models

PYTHON = os.environ.get("LITERT_LM_PYTHON")
SCRIPT = Path(__file__).with_name("engine_script.py")
CACHE = 96
TEXTS = ["Hello there, what?", "ab", "naïve café ☕, 3 € 5"]
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What's up?"},
]

pytestmark = pytest.mark.skipif(PYTHON is None, reason="LITERT_LM_PYTHON names no Python")


def in_engine(path, texts, conversation):
    done = subprocess.run(
        [PYTHON, SCRIPT],
        input=json.dumps([str(path), texts, conversation]),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def continued(model, tokenizer, text):
    """What transformers generates until the cache is full or the model stops."""
    ids = tokenizer(text, return_tensors="pt").input_ids
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=CACHE - ids.shape[1],
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.no_grad():
        tokens = model.generate(ids, settings, attention_mask=torch.ones_like(ids))
    new = tokens[0, ids.shape[1] :].tolist()
    if new[-1] == tokenizer.eos_token_id:
        new.pop()
    assert len(set(new)) > 3
    return c_string(tokenizer.decode(new))


def c_string(text):
    """The engine hands out C strings, which end at a zero byte."""
    return text.split("\0")[0]


@pytest.mark.parametrize("lengths", [None, [4, 16]])
@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_texts_are_those_of_transformers(kind, lengths, tmp_path):
    model, tokenizer = tiny_models.model(kind), tiny_models.tokenizer()
    path = tmp_path / "model.litertlm"
    llm.export(
        model,
        path,
        tokenizer=tokenizer,
        cache_length=CACHE,
        prefill_lengths=lengths,
        progress=False,
    )
    got = in_engine(path, TEXTS, CONVERSATION)
    assert got["ids"] == [tokenizer(text).input_ids for text in TEXTS]
    assert got["raw"] == [continued(model, tokenizer, text) for text in TEXTS]
    prompt = tokenizer.apply_chat_template(CONVERSATION, tokenize=False, add_generation_prompt=True)
    assert prompt.endswith(got["rendered"])
    assert got["answer"] == continued(model, tokenizer, prompt)
