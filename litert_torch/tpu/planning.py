"""plan(): which TPUs hold a program, found by compiling it for each, without its weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litert_torch.errors import ConversionError, DoesNotFitError
from litert_torch.runtime_bindings.pjrt import Source
from litert_torch.tpu import compilation, sharding_rules
from litert_torch.tpu.compilation import fitting, topologies
from litert_torch.tpu.compilation.report import Compiled, mib
from litert_torch.tpu.compilation.topologies import Topology

TOPOLOGIES = ("v5e:1x1", "v5e:2x2", "v6e:1x1", "v6e:2x2", "tpu7x:1x1x1", "tpu7x:2x2x1")


@dataclass(frozen=True)
class Row:
    """One topology.

    Attributes:
        topology: Which.
        program: What was planned, as "bfloat16".
        compiled: What the compiler found; None where it does not fit.
        why: Why it does not fit, else empty.
    """

    topology: Topology
    program: str
    compiled: Compiled | None
    why: str = ""


def plan(
    programs: Mapping[str, Any],
    on: Sequence[str] = TOPOLOGIES,
    *,
    signature: str | None = None,
    sizes: Mapping[str, int] | None = None,
    shardings: sharding_rules.Rules = "transformer",
    level: str = "O0",
) -> Iterator[Row]:
    """A row for each program and topology, as soon as it is known.

    Args:
        programs: What `tpu.export` gave, or paths of artifacts, by the name to show; weights may be
            on the meta device.
        on: The topologies; on more than one device, `shardings` splits over all of them.
        signature: Which entry point; by default the only one.
        sizes: A number for each size that varies.
        shardings: As `tpu.compile` takes them; the mesh is {"model": all devices}.
        level: XLA's optimization level: what fits at "O0" fits at others.

    Raises:
        InvalidInputError: no such topology, signature or size.
        MissingDependencyError: jax or libtpu is not installed.
    """
    targets = [topologies.parse(name) for name in on]
    for name, program in programs.items():
        for target in targets:
            options: dict[str, Any] = {"signature": signature, "sizes": sizes, "level": level}
            if target.devices > 1:
                mesh = {sharding_rules.MODEL_AXIS: target.devices}
                options |= {"mesh": mesh, "shardings": shardings}
            yield _row(name, program, target, options)


def _row(name: str, program: Any, target: Topology, options: dict[str, Any]) -> Row:
    least = _least_bytes(compilation.source_of(program), target, options["signature"])
    if least > target.generation.hbm_bytes:  # sure without a compile
        return Row(target, name, None, f"weights alone are {mib(least)} a device")
    try:
        return Row(target, name, compilation.compile(program, target.name, **options))
    except DoesNotFitError as error:
        return Row(target, name, None, str(error).split(" (")[0])
    except ConversionError as error:
        return Row(target, name, None, str(error).split("\n")[0])


def _least_bytes(source: Source, target: Topology, signature: str | None) -> int:
    """Of the weights a device holds, at least, however they are split."""
    spec = source.signature(signature or next(iter(source.signatures)))
    arrays = (*spec.weights, *spec.state)
    sizes = (math.prod(map(int, a.shape)) * fitting.bits(a.dtype) for a in arrays)
    return sum(sizes) // 8 // target.devices


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines that show the rows."""
    head = ("program", "topology", "chips", "fits", "HBM a device", "of it", "at least")
    cells = [head, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*(c[:7] for c in cells), strict=True)]
    for row in cells:
        shown = "  ".join(f"{c:<{w}}" for c, w in zip(row[:7], widths, strict=True))
        yield f"  {shown}  {''.join(row[7:])}".rstrip()


def _cells(row: Row) -> tuple[str, ...]:
    first = (row.program, row.topology.name, str(row.topology.chips))
    if row.compiled is None:
        return (*first, "no", "", "", "", row.why)
    c = row.compiled
    time = "" if c.step_seconds is None else f"{c.step_seconds * 1e3:.3g} ms"
    return (*first, "yes", mib(c.hbm_bytes), f"{c.hbm_share:.1%}", time)
