"""convert() and its relatives: from a PyTorch module to a LiteRTModel in one call."""

from __future__ import annotations

from typing import Any

import torch

from litert_torch import converter
from litert_torch.converter import flatbuffer
from litert_torch.converter.frontends.module import Strictness
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature
from litert_torch.errors import InvalidInputError
from litert_torch.runtime_bindings import LiteRTModel

_IN_MEMORY = 32 << 20  # bytes of weights; larger files live in a temporary file


class Converter:
    """Collects signatures, then converts them into one model whose weights are stored once."""

    def __init__(self) -> None:
        self._signatures: list[Signature] = []

    def signature(
        self,
        name: str,
        module: torch.nn.Module,
        sample_args: tuple[Any, ...] | None = None,
        sample_kwargs: dict[str, Any] | None = None,
        *,
        dynamic_shapes: Any = None,
    ) -> Converter:
        """Add a named entry point; see `convert` for the arguments."""
        if any(s.name == name for s in self._signatures):
            raise InvalidInputError(f"a signature named {name!r} is already added")
        self._signatures.append(
            Signature.checked(name, module, sample_args, sample_kwargs, dynamic_shapes)
        )
        return self

    add_signature = signature

    def convert(
        self,
        module: torch.nn.Module | None = None,
        sample_args: tuple[Any, ...] | None = None,
        sample_kwargs: dict[str, Any] | None = None,
        *,
        strict_export: Strictness = False,
        quant_config: Any = None,
        dynamic_shapes: Any = None,
        lightweight_conversion: bool = False,
    ) -> LiteRTModel:
        """Convert what was added, and `module` as the default signature where one is given."""
        del lightweight_conversion  # constants are always lazy
        if module is not None:
            self.signature(
                DEFAULT_SIGNATURE_NAME,
                module,
                sample_args,
                sample_kwargs,
                dynamic_shapes=dynamic_shapes,
            )
        graphs = converter.convert_signatures(self._signatures, strict=strict_export)
        return _to_model(graphs)


def _to_model(graphs: list[converter.Graph]) -> LiteRTModel:
    size = sum(
        v.const.nbytes for g in graphs for op in g.ops for v in op.inputs if v and v.const
    )
    if size <= _IN_MEMORY:
        return LiteRTModel(flatbuffer.to_bytes(graphs))
    return LiteRTModel.from_temporary(lambda path: flatbuffer.to_file(graphs, path))


def convert(
    module: torch.nn.Module | None = None,
    sample_args: tuple[Any, ...] | None = None,
    sample_kwargs: dict[str, Any] | None = None,
    *,
    strict_export: Strictness = False,
    quant_config: Any = None,
    dynamic_shapes: Any = None,
    lightweight_conversion: bool = False,
) -> LiteRTModel:
    """Convert a PyTorch module to a LiteRT model."""
    return Converter().convert(
        module,
        sample_args,
        sample_kwargs,
        strict_export=strict_export,
        quant_config=quant_config,
        dynamic_shapes=dynamic_shapes,
        lightweight_conversion=lightweight_conversion,
    )


def signature(
    name: str,
    module: torch.nn.Module,
    sample_args: tuple[Any, ...] | None = None,
    sample_kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Converter:
    """A Converter that has one named entry point."""
    return Converter().signature(
        name, module, sample_args, sample_kwargs, dynamic_shapes=dynamic_shapes
    )
