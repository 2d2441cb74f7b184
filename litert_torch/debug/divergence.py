"""The first op from which on a converted model differs from eager PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from litert_torch import interface, verification
from litert_torch.converter.frontends import module as frontend
from litert_torch.converter.lower import source_of
from litert_torch.converter.signature import Signature
from litert_torch.debug.search import shortest
from litert_torch.debug.subgraphs import Program
from litert_torch.errors import ConversionError


def first_divergence(signature: Signature, bound: float | None = None) -> str | None:
    """The first op whose converted prefix differs, as "aten.gelu.default at model.py:7 in mlp".

    Halves the model: about log2(ops) prefixes of it are converted and run. None where the whole
    program, converted this way, does not differ.

    Args:
        signature: What was converted, with the inputs to compare on.
        bound: Largest relative error that does not count, by default that of the output's dtype.

    Raises:
        ExportError: torch.export cannot trace the module.
    """
    program = Program(frontend.export(signature))
    units = program.units

    def differs(count: int) -> bool:
        part = program.subgraph(units[:count])
        return _differs(part.graph_module, part.inputs, bound)

    if not units or not differs(len(units)):
        return None
    node = units[shortest(1, len(units), differs) - 1][0]
    source = source_of(node)
    return f"{node.target} at {source}"


def _differs(module: torch.fx.GraphModule, inputs: Sequence[Any], bound: float | None) -> bool:
    model = interface.convert(module, tuple(inputs), progress=False)
    try:
        return not verification.compare(model, module, tuple(inputs)).within(bound)
    except ConversionError:
        return True
