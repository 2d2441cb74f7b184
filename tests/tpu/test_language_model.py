import numpy as np
import pytest
import torch

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")
pytest.importorskip("transformers", reason="language models need transformers")

import transformers

from litert_torch import tpu
from litert_torch.tpu import language_model


def llama():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
        max_position_embeddings=64,
    )
    return transformers.LlamaForCausalLM(config).eval()


def logits_of(model, name, tokens, start):
    positions = np.arange(start, start + tokens.shape[1], dtype=np.int32)
    return model(signature_name=name, tokens=tokens.astype(np.int32), input_pos=positions)


def test_greedy_tokens_are_those_of_transformers(tmp_path):
    module = llama()
    prompt = np.array([[7, 93, 4, 51, 22, 68, 31, 9]])
    want = module.generate(torch.tensor(prompt), max_new_tokens=6, do_sample=False)[0].tolist()
    program = language_model.export(module, cache_length=20, prefill_lengths=(8,))
    program.export(tmp_path / "llm.tpu")
    model = tpu.load(tmp_path / "llm.tpu")
    assert sorted(model.signatures) == ["decode", "prefill_8"]
    found = prompt[0].tolist()
    logits = logits_of(model, "prefill_8", prompt, 0)
    for position in range(8, 14):
        found.append(int(logits[0, 0].argmax()))
        logits = logits_of(model, "decode", np.array([found[-1:]]), position)
    assert found == want
