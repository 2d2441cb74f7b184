"""Small language models with random weights, and a tokenizer of bytes."""

import tokenizers
import torch
import transformers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 263  # 256 bytes, 3 special tokens, and 4 that no text gives

CHAT_TEMPLATE = """\
{%- for message in messages %}
{{- '<s>' + message['role'] + ': ' + message['content'] + eos_token }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<s>assistant: ' }}{% endif %}"""

_SHARED = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.4,  # logits far enough apart for a greedy choice
    "bos_token_id": 256,
    "eos_token_id": 257,
    "pad_token_id": 258,
    "tie_word_embeddings": False,  # tied, these repeat one token
}

CONFIGS = {
    "llama": {"tie_word_embeddings": True},
    "qwen2": {},
    "qwen3": {"head_dim": 8},
    "mistral": {"sliding_window": 10},
    "gemma2": {"head_dim": 8, "sliding_window": 10, "query_pre_attn_scalar": 8},
    "gemma3_text": {
        "head_dim": 8,
        "sliding_window": 10,
        "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "phi3": {},
    "stablelm": {},
    "gpt_neox": {},
}


def model(kind, **changes):
    """A model of this type, the same at each call."""
    settings = {**_SHARED, **CONFIGS[kind], **changes}
    config = transformers.AutoConfig.for_model(kind, **settings)
    torch.manual_seed(0)
    built = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if "norm" in name:  # all ones at first, which hides a norm that is left out
                weight += 0.3 * torch.randn_like(weight)
    return built


def tokenizer(chat_template=CHAT_TEMPLATE):
    """Each byte a token, then <s>, </s> and <pad>."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    backend = tokenizers.Tokenizer(
        tokenizers.models.BPE({letter: i for i, letter in enumerate(alphabet)}, [])
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, chat_template=chat_template, **special)


def mamba():
    """A model whose state is no cache of keys and values."""
    config = transformers.MambaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        state_size=4,
        initializer_range=0.4,
        **{key: _SHARED[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")},
    )
    return transformers.MambaForCausalLM(config).eval()
