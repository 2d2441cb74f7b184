"""Small random models of Hugging Face's transformers, as plain modules of tensors."""

from collections.abc import Callable
from typing import Any

import torch
from random_weights import image
from torch import nn

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]
BUILDERS: dict[str, Callable[[], Built]] = {}

_SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
_TEXT = {**_SMALL, "vocab_size": 500, "max_position_embeddings": 64}
_IMAGE = {**_SMALL, "image_size": 64, "patch_size": 16}
_LENGTH = 24


class Outputs(nn.Module):
    """Calls a model with named inputs; returns the named fields of its output as a tuple."""

    def __init__(self, model: nn.Module, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs
        self.outputs = outputs

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One tensor for each name in `outputs`."""
        found = self.model(**dict(zip(self.inputs, args, strict=True)))
        return tuple(found[name] for name in self.outputs)


class WhisperDecoderStep(nn.Module):
    """One token of Whisper's decoder, with the cache of earlier tokens as plain tensors."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self, token: torch.Tensor, sound: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The next hidden state and the longer cache.

        Args:
            token: int64[1, 1].
            sound: float32[1, S, D], what the encoder returned.
            keys: float32[layers, 1, heads, T, D / heads] of the T earlier tokens.
            values: As `keys`.
        """
        from transformers.cache_utils import DynamicCache, EncoderDecoderCache

        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        for i, (k, v) in enumerate(zip(keys.unbind(), values.unbind(), strict=True)):
            cache.self_attention_cache.update(k, v, i)
        found = self.decoder(
            input_ids=token, encoder_hidden_states=sound, past_key_values=cache, use_cache=True
        )
        layers = found.past_key_values.self_attention_cache.layers
        return (
            found.last_hidden_state,
            torch.stack([layer.keys for layer in layers]),
            torch.stack([layer.values for layer in layers]),
        )


def _tokens(vocabulary: int = 500) -> torch.Tensor:
    return torch.randint(3, vocabulary, (1, _LENGTH))


def _mask() -> torch.Tensor:
    mask = torch.ones(1, _LENGTH, dtype=torch.int64)
    mask[:, -5:] = 0
    return mask


def _encoder(name: str, **config: Any) -> Callable[[], Built]:
    """A text encoder: token ids and a padding mask to hidden states."""

    def build() -> Built:
        import transformers

        made = getattr(transformers, f"{name}Config")(**config)
        model = getattr(transformers, f"{name}Model")(made)
        inputs = ("input_ids", "attention_mask")
        return Outputs(model, inputs, ("last_hidden_state",)), (_tokens(), _mask())

    return build


def _vision(
    name: str, head: str, outputs: tuple[str, ...], size: int, **config: Any
) -> Callable[[], Built]:
    """An image model: pixels to the named outputs."""

    def build() -> Built:
        import transformers

        made = getattr(transformers, f"{name}Config")(**config)
        model = getattr(transformers, f"{name}{head}")(made)
        return Outputs(model, ("pixel_values",), outputs), (image(size),)

    return build


def _clip() -> Built:
    import transformers

    text = {**_TEXT, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}
    vision = {**_SMALL, "image_size": 64, "patch_size": 16}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=32)
    model = transformers.CLIPModel(config)
    ids = torch.cat([_tokens(), _tokens()])
    ids[0, 9], ids[1, 15] = 2, 2
    outputs = ("logits_per_image", "text_embeds", "image_embeds")
    mask = torch.ones_like(ids)
    mask[0, 10:], mask[1, 16:] = 0, 0
    inputs = ("input_ids", "pixel_values", "attention_mask")
    return Outputs(model, inputs, outputs), (ids, image(64), mask)


def _dpt() -> Built:
    import transformers

    config = transformers.DPTConfig(
        **{**_IMAGE, "num_hidden_layers": 4},
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 24, 32, 48],
        fusion_hidden_size=24,
        is_hybrid=False,
    )
    model = transformers.DPTForDepthEstimation(config)
    model.head.head[4].weight.data.abs_()  # else the ReLU behind it may give zeros only
    return Outputs(model, ("pixel_values",), ("predicted_depth",)), (image(64),)


def _depth_anything() -> Built:
    import transformers

    backbone = transformers.Dinov2Config(
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        mlp_ratio=2,
        image_size=70,
        patch_size=14,
        out_indices=[1, 2, 3, 4],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=14,
        reassemble_hidden_size=64,
        neck_hidden_sizes=[16, 24, 32, 48],
        fusion_hidden_size=24,
        head_hidden_size=16,
        use_pretrained_backbone=False,
    )
    model = transformers.DepthAnythingForDepthEstimation(config)
    model.head.conv3.weight.data.abs_()  # else the ReLU behind it may give zeros only
    return Outputs(model, ("pixel_values",), ("predicted_depth",)), (image(70),)


def _whisper_config() -> Any:
    import transformers

    return transformers.WhisperConfig(
        vocab_size=500,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_source_positions=100,
        max_target_positions=40,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )


def _whisper_encoder() -> Built:
    import transformers

    model = transformers.WhisperModel(_whisper_config()).encoder
    return Outputs(model, ("input_features",), ("last_hidden_state",)), (torch.randn(1, 80, 200),)


def _whisper_decoder_step() -> Built:
    import transformers

    model = transformers.WhisperModel(_whisper_config()).decoder
    cache = (torch.randn(2, 1, 4, 7, 16), torch.randn(2, 1, 4, 7, 16))
    return WhisperDecoderStep(model), (_tokens()[:, :1], torch.randn(1, 50, 64), *cache)


def _wav2vec2() -> Built:
    import transformers

    config = transformers.Wav2Vec2Config(
        **_SMALL,
        vocab_size=40,
        conv_dim=(32, 32, 32),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 3),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
    )
    model = transformers.Wav2Vec2ForCTC(config)
    return Outputs(model, ("input_values",), ("logits",)), (torch.randn(1, 2000),)


def _t5_encoder() -> Built:
    import transformers

    config = transformers.T5Config(
        vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4
    )
    model = transformers.T5EncoderModel(config)
    inputs = ("input_ids", "attention_mask")
    return Outputs(model, inputs, ("last_hidden_state",)), (_tokens(), _mask())


BUILDERS.update(
    bert=_encoder("Bert", **_TEXT),
    distilbert=_encoder(
        "DistilBert",
        vocab_size=500,
        max_position_embeddings=64,
        dim=64,
        n_layers=2,
        n_heads=4,
        hidden_dim=128,
    ),
    mobilebert=_encoder("MobileBert", **_TEXT, embedding_size=32, intra_bottleneck_size=32),
    roberta=_encoder("Roberta", **_TEXT, pad_token_id=1),
    albert=_encoder("Albert", **_TEXT, embedding_size=32),
    electra=_encoder("Electra", **_TEXT, embedding_size=32),
    t5_encoder=_t5_encoder,
    clip=_clip,
    vit=_vision("ViT", "Model", ("last_hidden_state", "pooler_output"), 64, **_IMAGE),
    deit=_vision("DeiT", "ForImageClassification", ("logits",), 64, **_IMAGE),
    segformer=_vision(
        "Segformer",
        "ForSemanticSegmentation",
        ("logits",),
        128,
        depths=[1, 1, 1, 1],
        hidden_sizes=[16, 32, 48, 64],
        num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=32,
        num_labels=7,
    ),
    yolos=_vision(
        "Yolos",
        "ForObjectDetection",
        ("logits", "pred_boxes"),
        64,
        **{**_IMAGE, "image_size": [64, 64]},
        num_detection_tokens=10,
    ),
    dpt=_dpt,
    depth_anything=_depth_anything,
    whisper_encoder=_whisper_encoder,
    whisper_decoder_step=_whisper_decoder_step,
    wav2vec2=_wav2vec2,
)
