"""Exported models against transformers: the same tokens, greedily, through prefill and decode."""

import re

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from litert_torch import llm
from litert_torch.errors import InvalidInputError, OutputError
from litert_torch.llm import bundle
from litert_torch.quantize.recipe import Recipe
from litert_torch.runtime_bindings.model_file import ModelFile
from tests.llm import tiny_models
from tests.llm.running import Runner

PROMPT = np.random.default_rng(3).integers(0, 256, 23)
STEPS = 16
NEVER = 1 << 20  # no token: generation goes on


def export(model, folder, **options):
    path = folder / "model.litertlm"
    options = {"cache_length": 48, "prefill_lengths": [8], **options}
    llm.export(model, path, tokenizer=tiny_models.tokenizer(), progress=False, **options)
    return path


def continued(model, prompt, steps):
    """What transformers itself generates."""
    ids = torch.from_numpy(prompt)[None]
    settings = GenerationConfig(
        do_sample=False, max_new_tokens=steps, pad_token_id=0, eos_token_id=NEVER
    )
    with torch.no_grad():
        tokens = model.generate(ids, settings, attention_mask=torch.ones_like(ids))
    return tokens[0, len(prompt) :].tolist()


@pytest.fixture(scope="module")
def llama():
    return tiny_models.model("llama", tie_word_embeddings=True, initializer_range=0.25)


@pytest.mark.parametrize("kind", tiny_models.CONFIGS)
def test_greedy_tokens_are_those_of_transformers(kind, tmp_path):
    model = tiny_models.model(kind)
    expected = continued(model, PROMPT, STEPS)
    assert len(set(expected)) > STEPS // 3  # else a wrong model might repeat the same token
    for lengths, signatures in ((None, ["prefill"]), ([8], ["prefill_8"])):
        runner = Runner(export(model, tmp_path, prefill_lengths=lengths))
        assert sorted(runner.model.signatures) == ["decode", *signatures]
        assert runner.greedy(PROMPT, STEPS) == expected


def test_prompts_in_chunks_of_several_lengths(llama, tmp_path):
    """22 tokens are 16, 4, and 2 with padding; the cache is full after the last step."""
    path = export(llama, tmp_path, cache_length=39, prefill_lengths=[4, 16])
    runner = Runner(path)
    assert runner.greedy(PROMPT, STEPS) == continued(llama, PROMPT, STEPS)
    assert runner.position == len(PROMPT) + STEPS - 1


@pytest.mark.parametrize("lengths", [None, [8]])
def test_logits_are_those_of_transformers(llama, lengths, tmp_path):
    runner = Runner(export(llama, tmp_path, prefill_lengths=lengths))
    with torch.no_grad():
        expected = llama(torch.from_numpy(PROMPT)[None]).logits[0].numpy()
    runner.prefill(PROMPT[:10])
    got = np.stack([runner.decode(token) for token in PROMPT[10:]])
    np.testing.assert_allclose(got, expected[10:], rtol=1e-4, atol=1e-4)


def test_cache_layout(llama, tmp_path):
    model = Runner(export(llama, tmp_path)).model
    shapes = {t.name: t.shape for t in model.signatures["decode"].outputs}
    assert shapes["kv_cache_k_1"] == (1, 2, 48, 8)
    assert shapes["kv_cache_v_1"] == (1, 2, 8, 48)
    assert shapes["logits"] == (1, 1, tiny_models.VOCABULARY)
    assert {t.name for t in model.signatures["prefill_8"].outputs} == {*shapes} - {"logits"}


def test_weights_are_stored_once(llama, tmp_path):
    """Over signatures, and the table that the embedding and the head share."""
    path = export(llama, tmp_path, prefill_lengths=[4, 8, 16])
    file = ModelFile(bundle.contents(path, bundle.Kind.MODEL))
    buffers = {t.buffer for i in range(4) for t in file.tensors(i)}
    stored = sum(file.buffer_nbytes(b) for b in buffers)
    weights = sum(4 * p.numel() for name, p in llama.named_parameters() if "norm" not in name)
    assert weights <= stored < 1.05 * weights


def test_quantized(llama, tmp_path):
    """To int8: a quarter of the bytes, the table still shared, logits near to the float ones."""
    path = export(llama, tmp_path, quantize=Recipe.named("dynamic_wi8_afp32"))
    file = ModelFile(bundle.contents(path, bundle.Kind.MODEL))
    tensors = {t.buffer: t for i in range(2) for t in file.tensors(i) if len(t.shape) == 2}
    table = [t for t in tensors.values() if t.shape == (tiny_models.VOCABULARY, 48)]
    assert [t.dtype for t in table] == ["int8"]
    runner = Runner(path)
    runner.prefill(PROMPT[:-1])
    with torch.no_grad():
        expected = llama(torch.from_numpy(PROMPT)[None]).logits[0, -1].numpy()
    got = runner.decode(PROMPT[-1])
    assert 0.99 < np.corrcoef(got, expected)[0, 1] < 0.999999


def test_attention_is_as_before_after_an_export(llama, tmp_path):
    before = llama.config._attn_implementation
    export(llama, tmp_path)
    assert llama.config._attn_implementation == before


def test_folder(llama, tmp_path):
    llama.save_pretrained(tmp_path / "source")
    tiny_models.tokenizer().save_pretrained(tmp_path / "source")
    llm.export(
        tmp_path / "source", tmp_path / "a", cache_length=48, prefill_lengths=[8], progress=False
    )
    assert (tmp_path / "a").read_bytes() == export(llama, tmp_path).read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache_length": 257}, "more than the 256 positions"),
        ({"cache_length": 1}, "must be 2 or more"),
        ({"prefill_lengths": [8, 49]}, "of 1 to 48 tokens"),
        ({"prefill_lengths": []}, "give one or more"),
        ({"prefill_lengths": [0]}, "give one or more"),
        ({"dynamic": True}, "of static shapes"),
    ],
)
def test_wrong_lengths(llama, tmp_path, options, message):
    with pytest.raises(InvalidInputError, match=message):
        export(llama, tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_wrong_sources(llama, tmp_path):
    with pytest.raises(InvalidInputError, match="no folder"):
        llm.export(tmp_path / "nothing", tmp_path / "a")
    with pytest.raises(InvalidInputError, match="cannot load the model"):
        llm.export(tmp_path, tmp_path / "a")
    with pytest.raises(InvalidInputError, match="needs tokenizer="):
        llm.export(llama, tmp_path / "a")
    llama.save_pretrained(tmp_path / "source")
    with pytest.raises(InvalidInputError, match="cannot load the tokenizer"):
        llm.export(tmp_path / "source", tmp_path / "a")
    small = tiny_models.model("llama", vocab_size=258, pad_token_id=0)
    with pytest.raises(InvalidInputError, match="knows 259 tokens, the model 258"):
        export(small, tmp_path)
    with pytest.raises(InvalidInputError, match=re.escape("call model.eval()")):
        export(tiny_models.model("llama").train(), tmp_path)
    with pytest.raises(InvalidInputError, match=re.escape("call model.float()")):
        export(tiny_models.model("llama").bfloat16(), tmp_path)


def test_unwritable_output(llama, tmp_path):
    (tmp_path / "model.litertlm").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        export(llama, tmp_path)


def test_states_of_recurrent_layers(tmp_path):
    """Prefill is a loop that leaves out padding: 22 tokens are 8, 8 and 6."""
    model = tiny_models.mamba()
    runner = Runner(export(model, tmp_path))
    assert {name[:11] for name in runner.cache} == {"kv_cache_c_", "kv_cache_r_"}
    assert runner.greedy(PROMPT, STEPS) == continued(model, PROMPT, STEPS)
