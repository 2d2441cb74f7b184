"""PyTorch to TPU: the same exported program, as StableHLO that any jax can load.

Names are loaded on first use; `import litert_torch.tpu` imports neither torch nor jax.
"""

import importlib
from typing import Any

from litert_torch.runtime_bindings import jax_environment

jax_environment.prepare()

_HOME = {
    "compile": "compilation",
    "export": "exporting",
    "load": "loading",
    "lowers": "lowerings",
    "plan": "planning",
    "signature": "exporting",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
