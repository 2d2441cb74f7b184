"""The models that the benchmarks convert: name -> a function that builds (module, args).

Every module is in eval mode, returns a tensor or a tuple of tensors, and has random weights from
a fixed seed, made so that nothing cancels out: BatchNorm statistics are those of real
activations, perturbed; constant parameters (zero biases, unit scales, zero heads) are random.
"""

from collections.abc import Callable
from typing import Any

import torch
import transformer_models
from random_weights import image, randomise
from torch import nn

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]
MODELS: dict[str, Callable[[], Built]] = {}

_SEED = 20240607

TORCHVISION_CLASSIFIERS = {
    "alexnet": 224,
    "vgg11_bn": 224,
    "resnet18": 224,
    "resnet50": 224,
    "resnext50_32x4d": 224,
    "wide_resnet50_2": 224,
    "mobilenet_v2": 224,
    "mobilenet_v3_small": 224,
    "mobilenet_v3_large": 224,
    "efficientnet_b0": 224,
    "efficientnet_v2_s": 224,
    "squeezenet1_1": 224,
    "shufflenet_v2_x1_0": 224,
    "densenet121": 224,
    "googlenet": 224,
    "inception_v3": 299,
    "mnasnet1_0": 224,
    "regnet_y_400mf": 224,
    "convnext_tiny": 224,
    "vit_b_16": 224,
    "swin_t": 224,
    "swin_v2_t": 256,
    "maxvit_t": 224,
}
TORCHVISION_SEGMENTERS = (
    "deeplabv3_mobilenet_v3_large",
    "lraspp_mobilenet_v3_large",
    "fcn_resnet50",
)
TIMM = {
    "mobilevit_s": 256,
    "mobilenetv4_conv_small": 224,
    "fastvit_t8": 256,
    "efficientformer_l1": 224,
    "repvit_m0_9": 224,
    "eva02_tiny_patch14_224": 224,
    "convmixer_1024_20_ks9_p14": 224,
    "ghostnet_100": 224,
    "levit_128s": 224,
    "tiny_vit_5m_224": 224,
}


def build(name: str) -> Built:
    """The module in eval mode and its sample inputs; the same at every call."""
    torch.manual_seed(_SEED)
    module, args = MODELS[name]()
    module = module.eval()
    with torch.no_grad():
        randomise(module, args)
    return module, args


class Keyed(nn.Module):
    """Returns one entry of a module's dict of outputs."""

    def __init__(self, module: nn.Module, key: str) -> None:
        super().__init__()
        self.module = module
        self.key = key

    def forward(self, *args: torch.Tensor) -> Any:
        """The entry `key` of what the module returns."""
        return self.module(*args)[self.key]


class DoubleConv(nn.Sequential):
    """Two 3x3 convolutions, each with BatchNorm and ReLU."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        layers: list[nn.Module] = []
        for c in (channels_in, channels_out):
            layers += [nn.Conv2d(c, channels_out, 3, padding=1), nn.BatchNorm2d(channels_out)]
            layers += [nn.ReLU(inplace=True)]
        super().__init__(*layers)


class UNet(nn.Module):
    """A U-Net with max pooling on the way down and transposed convolutions on the way up."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128), classes: int = 5) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            DoubleConv(a, b) for a, b in zip((3, *widths), widths, strict=False)
        )
        steps = list(zip(widths[1:], widths, strict=False))[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in steps)
        self.merge = nn.ModuleList(DoubleConv(2 * b, b) for _, b in steps)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32[B, 3, H, W] to float32[B, classes, H, W]."""
        skips = []
        for i, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1], strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


class Flat(nn.Module):
    """Returns all tensors that a recurrent module returns, as one tuple."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(outputs, last hidden state, last cell state if any)."""
        y, state = self.module(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


class SelfAttention(nn.Module):
    """nn.MultiheadAttention of a tensor with itself, with the averaged weights."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """float32[B, T, 64] to float32[B, T, 64] and float32[B, T, T]."""
        return self.attention(x, x, x)


def _register(name: str, builder: Callable[[], Built]) -> None:
    if name in MODELS:
        raise ValueError(f"two models are named {name}")
    MODELS[name] = builder


def _torchvision(name: str, size: int) -> Built:
    import torchvision

    extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **extra), (image(size),)


def _segmenter(name: str) -> Built:
    import torchvision

    module = torchvision.models.get_model(name, weights=None, weights_backbone=None)
    return Keyed(module, "out"), (image(224),)


def _timm(name: str, size: int) -> Built:
    import timm

    return timm.create_model(name, pretrained=False), (image(size),)


for _name, _size in TORCHVISION_CLASSIFIERS.items():
    _register(_name, lambda n=_name, s=_size: _torchvision(n, s))
for _name in TORCHVISION_SEGMENTERS:
    _register(_name, lambda n=_name: _segmenter(n))
for _name, _size in TIMM.items():
    _register(_name, lambda n=_name, s=_size: _timm(n, s))

_register("unet", lambda: (UNet(), (image(96),)))
_register(
    "lstm_2x_bidirectional",
    lambda: (
        Flat(nn.LSTM(40, 64, num_layers=2, bidirectional=True, batch_first=True)),
        (torch.randn(2, 50, 40),),
    ),
)
_register("gru_2x", lambda: (Flat(nn.GRU(40, 64, num_layers=2)), (torch.randn(50, 2, 40),)))
_register("rnn_tanh", lambda: (Flat(nn.RNN(40, 64)), (torch.randn(30, 2, 40),)))
_register("multihead_attention", lambda: (SelfAttention(), (torch.randn(2, 17, 64),)))
_register(
    "transformer_encoder",
    lambda: (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 3),
        (torch.randn(2, 17, 64),),
    ),
)

for _name, _builder in transformer_models.BUILDERS.items():
    _register(_name, _builder)
