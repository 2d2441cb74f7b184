"""The smallest parts of a program that have some property, found by halving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from litert_torch.debug.subgraphs import Program, Subgraph, Unit, program_of

Predicate = Callable[[torch.fx.GraphModule, Sequence[Any]], bool]


class SearchResult:
    """A part of a program that has the property.

    Attributes:
        graph_module: The ops of it; weights are attributes.
        inputs: Tensors to call it with.
    """

    def __init__(self, found: Subgraph) -> None:
        self.graph_module = found.graph_module
        self.inputs = found.inputs

    @property
    def graph(self) -> torch.fx.Graph:
        """The graph of `graph_module`."""
        return self.graph_module.graph


def search_model(
    predicate_f: Predicate,
    model: torch.nn.Module | ExportedProgram,
    export_args: tuple[Any, ...] | None = None,
    *,
    max_granularity: int | None = None,
    enable_fx_minifier_logging: bool = False,
) -> Iterator[SearchResult]:
    """Yield small parts of `model` for which `predicate_f` holds, until none is left.

    It is taken to hold for all that contains a part for which it holds. Each part is cut short at
    both ends by halving, then its ops are left out one by one where it still holds without.

    Args:
        predicate_f: Takes a GraphModule and its inputs.
        model: A module, or an exported program with sample inputs.
        export_args: The inputs to trace a module with.
        max_granularity: Stop making a part smaller at this many ops; None makes it minimal.
        enable_fx_minifier_logging: Accepted for code that passes it; nothing is printed.

    Raises:
        ExportError: torch.export cannot trace the module.
    """
    del enable_fx_minifier_logging
    program = Program(program_of(model, export_args))

    def holds(units: Sequence[Unit]) -> bool:
        if not units:
            return False
        part = program.subgraph(units)
        return predicate_f(part.graph_module, part.inputs)

    for part in _parts(list(program.units), holds, max_granularity or 1):
        yield SearchResult(program.subgraph(part))


Holds = Callable[[list[Unit]], bool]


def _parts(left: list[Unit], holds: Holds, enough: int) -> Iterator[list[Unit]]:
    known = 0  # so many of the first units are known to be free of the property
    while holds(left):
        part = _first_part(left, known, holds, enough)
        yield part
        known = left.index(part[-1]) + 1 - len(part)
        left = [u for u in left if u not in part]


def _first_part(left: list[Unit], known: int, holds: Holds, enough: int) -> list[Unit]:
    end = shortest(known + 1, len(left), lambda n: holds(left[:n]))
    if end <= enough:
        return left[:end]
    start = end - shortest(enough, end, lambda n: holds(left[end - n : end]))
    return _thinned(left[start:end], holds, enough)


def shortest(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The smallest n in `low`..`high` for which `holds`, which does for `high` and all above n."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _thinned(part: list[Unit], holds: Holds, enough: int) -> list[Unit]:
    """`part` without the inner ops that the property does not need."""
    for unit in part[1:-1]:
        smaller = [u for u in part if u is not unit]
        if len(part) > enough and holds(smaller):
            part = smaller
    return part
