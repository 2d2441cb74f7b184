"""Small random models of every type that transformers can generate text with."""

from typing import Any

import torch
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
)

VOCABULARY = 263
Settings = dict[str, Any]

# What a size is called over all configurations; those that a configuration lacks are left out.
_SIZES: dict[int | float, str] = {
    VOCABULARY: "vocab_size vocab_size_per_layer_input unpadded_vocab_size type_vocab_size",
    512: "max_position_embeddings n_positions max_seq_len n_ctx context_length model_max_length"
    " max_target_positions",
    256: "bos_token_id",
    257: "eos_token_id eod_token_id",
    258: "pad_token_id",
    64: "hidden_size d_model n_embd word_embed_proj_dim lru_width embedding_size embedding_dim"
    " attention_hidden_size input_embedding_size output_embedding_size emb_dim"
    " pronunciation_embed_dim shape_embed_dim",
    80: "intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner dff dim_ff d_inner"
    " ffn_hidden_size feed_forward_size intermediate_size_mlp dense_intermediate_size",
    48: "moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size"
    " expert_ffn_hidden_size shared_experts_intermediate_size moe_shared_expert_intermediate_size"
    " router_hidden_size",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_blocks"
    " num_decoder_layers num_encoder_layers num_key_value_heads num_kv_heads num_query_groups"
    " num_experts_per_tok num_experts_per_token moe_topk moe_k swa_num_key_value_heads"
    " linear_num_key_heads",
    4: "num_attention_heads n_head n_heads num_heads attention_heads decoder_attention_heads"
    " encoder_attention_heads num_decoder_attention_heads num_encoder_attention_heads num_experts"
    " n_routed_experts num_local_experts moe_num_experts linear_num_value_heads linear_num_heads"
    " swa_num_attention_heads index_topk index_n_heads",
    1: "n_group topk_group num_expert_group n_shared_experts num_shared_experts"
    " moe_num_shared_experts n_groups first_k_dense_replace num_dense_layers moe_layer_start_index",
    16: "head_dim dim_head v_head_dim qk_nope_head_dim kv_lora_rank swa_head_dim kv_channels"
    " linear_key_head_dim linear_value_head_dim linear_head_dim index_head_dim d_head"
    " hidden_size_per_layer_input attention_head_size global_head_dim",
    8: "qk_rope_head_dim rotary_dim state_size mamba_d_state ssm_state_size laurel_rank"
    " mamba_dt_rank time_step_rank sliding_window sliding_window_size attention_window_size"
    " local_attention attention_chunk_size window_size query_pre_attn_scalar",
    24: "q_lora_rank qk_head_dim",
}
_SETTINGS = {name: size for size, names in _SIZES.items() for name in names.split()}
_SETTINGS |= {
    "initializer_range": 0.3,
    "init_std": 0.3,
    "tie_word_embeddings": False,  # tied, random models repeat one token
    "is_decoder": True,
    "use_cache": True,
}
_PER_LAYER = ("layer_types", "mlp_layer_types", "indexer_types", "layers_block_type")

# What a type needs beyond that.
_SPECIAL: dict[str, Settings] = {
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8},
        "ffn_config": {"ffn_hidden_size": 48, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "gemma3n_text": {
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
        "activation_sparsity_pattern": [0.9, 0.0, 0.0, 0.0],
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "attention_layers": None},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8},
}


def types() -> list[str]:
    """The model types of transformers' mapping, in its order."""
    return list(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def model(kind: str) -> Any:
    """A model of this type, the same at each call, float32 and in eval mode."""
    config = small_config(kind)
    cls = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    if not isinstance(config, cls.config_class):  # the language part of a larger model
        config = config.get_text_config(decoder=True)
    torch.manual_seed(0)
    built = cls(config).eval().float()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if "norm" in name:  # all ones at first, which hides a norm that is left out
                weight += 0.2 * torch.randn_like(weight)
    return built


def small_config(kind: str) -> PreTrainedConfig:
    """The configuration of a type with every size that we know made small."""
    cls = CONFIG_MAPPING[kind]
    return cls(**{**_small(cls), **_SPECIAL.get(kind, {})})


def _small(cls: type[PreTrainedConfig]) -> Settings:
    try:
        known = cls()
    except Exception:  # no defaults that fit together
        return dict(_SETTINGS)
    settings: Settings = {name: value for name, value in _SETTINGS.items() if _has(known, name)}
    if _has(known, "kv_lora_rank"):  # latent attention: a key for each head, rotated in part
        settings |= {"num_key_value_heads": 4, "head_dim": 8}
    kinds = list(dict.fromkeys(getattr(known, "layer_types", None) or ()))
    layers = max(2, len(kinds))
    if _has(known, "num_hidden_layers"):
        settings["num_hidden_layers"] = layers
    for name in _PER_LAYER:
        values = vars(known).get(name)
        if values:
            distinct = list(dict.fromkeys(values))
            settings[name] = (distinct + distinct[-1:] * layers)[:layers]
    for name in cls.sub_configs:
        inner = getattr(known, name, None)
        if inner is not None:
            settings[name] = type(inner)(**_small(type(inner)))
    return settings


def _has(config: PreTrainedConfig, name: str) -> bool:
    return name in vars(config) and name not in config.attribute_map


__all__ = ["VOCABULARY", "model", "small_config", "types"]
