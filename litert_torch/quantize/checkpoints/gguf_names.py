"""What transformers calls the tensors of a GGUF file, and how it orders their rows."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.errors import UnsupportedCaseError
from litert_torch.quantize.checkpoints.gguf import GgufFile
from litert_torch.quantize.checkpoints.stored import StoredWeight

_ARCHITECTURES = ("llama", "qwen2", "qwen3")
_WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYERS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")


def names_of(file: GgufFile) -> dict[str, str]:
    """Names in the module by names in the file; those of no parameter are left out.

    Raises:
        UnsupportedCaseError: the model is of an architecture whose names are not known here.
    """
    kind = str(file.metadata.get("general.architecture", ""))
    if kind not in _ARCHITECTURES:
        raise UnsupportedCaseError(
            f"{file.path.name} has a model of architecture {kind!r}; known: "
            f"{', '.join(_ARCHITECTURES)}"
        )
    found = {}
    for name in file.places:
        match = _LAYER.fullmatch(name)
        if match and match[2] in _IN_LAYERS:
            found[name] = f"model.layers.{match[1]}.{_IN_LAYERS[match[2]]}.{match[3]}"
        elif name in _WHOLE:
            found[name] = _WHOLE[name]
    return found


def heads_of(file: GgufFile, name: str) -> int:
    """Heads whose rows are in the order of neighbouring pairs; 0 where they are in ours.

    llama.cpp turns neighbours of a head's channels, transformers one half with the other.
    """
    match = _LAYER.fullmatch(name)
    if file.metadata.get("general.architecture") != "llama" or not match:
        return 0
    heads = int(file.metadata["llama.attention.head_count"])
    key = "llama.attention.head_count_kv"
    return {"attn_q": heads, "attn_k": int(file.metadata.get(key, heads))}.get(match[2], 0)


def rows_in_order(x: Array, heads: int) -> Array:
    """Rows of pairs (0, n/2), (1, n/2 + 1), ... of each head as 0, 1, ..."""
    pairs = x.reshape(heads, -1, 2, *x.shape[1:])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(x.shape)


def in_order(w: StoredWeight, heads: int) -> StoredWeight:
    """`w` with its rows in the order of transformers."""
    return replace(
        w,
        read=lambda: rows_in_order(w.read(), heads),
        scales=rows_in_order(w.scales, heads),
        zero_points=rows_in_order(w.zero_points, heads),
        offsets=None if w.offsets is None else rows_in_order(w.offsets, heads),
    )
