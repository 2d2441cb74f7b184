"""PyTorch to LiteRT: `convert(module, sample_args)` gives a model that runs on devices.

Names are loaded on first use, so that `litert-convert --help` does not import torch.
"""

import importlib
from typing import Any

from litert_torch._version import __version__ as __version__

_HOME = {
    "LiteRTModel": "runtime_bindings",
    "Model": "runtime_bindings",
    "compare": "verification",
    "compare_all": "verification",
    "convert": "interface",
    "experimental_add_compilation_backend": "interface",
    "load": "model",
    "lowers": "converter.lowerings",
    "signature": "interface",
    "to_channel_last_io": "channel_last",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"litert_torch.{_HOME[name]}"), name)
    try:
        return importlib.import_module(f"litert_torch.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"litert_torch.{name}":
            raise
        raise AttributeError(f"module 'litert_torch' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
