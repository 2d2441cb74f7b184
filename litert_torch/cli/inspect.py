"""`litert-convert inspect FILE`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import click

from litert_torch.cli import reporting


@click.command("inspect", short_help="Show what a LiteRT file holds.")
@click.argument("file", type=click.Path())
@click.option(
    "--delegation/--no-delegation",
    default=True,
    help="Load the file, in a process of its own, to see which operators XNNPACK takes.",
)
@reporting.reporting_options
def command(file: str, delegation: bool, as_json: bool) -> None:
    """Show a file's signatures, operators and weights, and which operators XNNPACK takes.

    XNNPACK is LiteRT's fast CPU code. It is asked about the first subgraph only; what it does not
    take runs in slower kernels, and each change between the two costs time.
    """
    from litert_torch.runtime_bindings.inspection import inspect

    found = inspect(file, delegation=delegation)
    reporting.report(as_json, _record(found), _lines(found))


def _record(found: Any) -> dict[str, Any]:
    record = dataclasses.asdict(found)
    if found.delegation is not None:
        kinds = found.delegation.by_kind().items()
        record["delegation"] |= {
            "delegated": found.delegation.delegated,
            "by_kind": {kind: {"delegated": d, "total": n} for kind, (d, n) in kinds},
        }
    return record


def _lines(found: Any) -> Iterator[str]:
    writer = f", written by {found.description}" if found.description else ""
    yield f"{found.path}: {reporting.size(found.nbytes)}{writer}"
    for signature in found.signatures:
        yield f"signature {signature.name}"
        yield from (f"  takes {tensor}" for tensor in signature.inputs)
        yield from (f"  gives {tensor}" for tensor in signature.outputs)
    total = sum(w.nbytes for w in found.weights.values())
    yield f"weights: {reporting.size(total)}"
    yield from reporting.table(
        [(d, w.tensors, "tensors", reporting.size(w.nbytes)) for d, w in found.weights.items()]
    )
    subgraphs = f" in {found.subgraphs} subgraphs" if found.subgraphs > 1 else ""
    yield f"operators: {sum(found.ops.values())}{subgraphs}, {found.tensors} tensors"
    yield from reporting.table([(kind, count) for kind, count in found.ops.items()])
    if found.metadata:
        yield f"metadata: {', '.join(found.metadata)}"
    if found.problem:
        yield f"LiteRT cannot load it: {found.problem}"
    if found.delegation is not None:
        yield from _delegation(found.delegation)


def _delegation(delegation: Any) -> Iterator[str]:
    count, total = delegation.delegated, len(delegation.nodes)
    partitions = f"{delegation.partitions} partition{'' if delegation.partitions == 1 else 's'}"
    yield f"XNNPACK takes {count} of {total} operators of the first subgraph, in {partitions}"
    left = [(kind, n - d, "left") for kind, (d, n) in delegation.by_kind().items() if d < n]
    yield from reporting.table(left)
