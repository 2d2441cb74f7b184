"""Any source to a .tflite file: export, lower, optimize, quantize, write.

Names are loaded on first use: reading, rewriting and writing graphs needs no PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litert_torch.converter.conversion import (
        GraphTransform,
        Variant,
        convert_program,
        convert_signatures,
        convert_variants,
    )
    from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature

__all__ = [
    "DEFAULT_SIGNATURE_NAME",
    "GraphTransform",
    "Signature",
    "Variant",
    "convert_program",
    "convert_signatures",
    "convert_variants",
]

_HOME = {
    **dict.fromkeys(
        (
            "GraphTransform",
            "Variant",
            "convert_program",
            "convert_signatures",
            "convert_variants",
        ),
        "conversion",
    ),
    **dict.fromkeys(("DEFAULT_SIGNATURE_NAME", "Signature"), "signature"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
