"""A converted model: running it, writing it, reading it back. Never imports torch."""

import os

from litert_torch.runtime_bindings.litert import DEFAULT_SIGNATURE_NAME, LiteRTModel, Model

__all__ = ["DEFAULT_SIGNATURE_NAME", "LiteRTModel", "Model", "load"]


def load(path: str | os.PathLike[str]) -> LiteRTModel:
    """Open a .tflite file, which must stay in place as long as the model is used.

    Raises:
        InvalidModelFileError: no such file, or it is not a LiteRT model (also a ValueError).
    """
    return LiteRTModel.load(path)
