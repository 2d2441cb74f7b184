"""What a compile for a topology found, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from litert_torch.tpu.compilation.aot import Measured
from litert_torch.tpu.compilation.topologies import Topology
from litert_torch.tpu.sharding import Mesh


@dataclass(frozen=True)
class Compiled:
    """A signature compiled for a topology; all numbers are per device.

    Attributes:
        signature: Which entry point.
        topology: For what.
        mesh: How the devices are arranged.
        measured: What the compiler says.
    """

    signature: str
    topology: Topology
    mesh: Mesh
    measured: Measured

    @property
    def hbm_bytes(self) -> int:
        """Memory of a device that a call needs: arguments, outputs, temporaries and code."""
        m = self.measured
        return m.arguments + m.outputs + m.temporaries + m.code

    @property
    def hbm_share(self) -> float:
        """Of the memory that a device has."""
        return self.hbm_bytes / self.topology.generation.hbm_bytes

    @property
    def compute_seconds(self) -> float | None:
        """Time for the arithmetic alone, at the device's bfloat16 peak."""
        flops = self.measured.flops
        return None if flops is None else flops / self.topology.generation.flops

    @property
    def memory_seconds(self) -> float | None:
        """Time for reading and writing memory alone, at the device's bandwidth."""
        accessed = self.measured.bytes_accessed
        return None if accessed is None else accessed / self.topology.generation.bandwidth

    @property
    def intensity(self) -> float | None:
        """Floating-point operations for each byte read or written."""
        m = self.measured
        return m.flops / m.bytes_accessed if m.flops and m.bytes_accessed else None

    @property
    def step_seconds(self) -> float | None:
        """Roofline: no call is faster than the slower of arithmetic and memory; without network."""
        known = [t for t in (self.compute_seconds, self.memory_seconds) if t is not None]
        return max(known, default=None)

    @property
    def bound_by(self) -> str | None:
        """Which of the two: "compute" or "memory"."""
        if self.compute_seconds is None or self.memory_seconds is None:
            return None
        return "compute" if self.compute_seconds > self.memory_seconds else "memory"

    def record(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {
            "signature": self.signature,
            "topology": self.topology.name,
            "chips": self.topology.chips,
            "devices": self.topology.devices,
            "mesh": dict(self.mesh.axes),
            "hbm_bytes": self.hbm_bytes,
            "hbm_share": self.hbm_share,
            "step_seconds": self.step_seconds,
            "bound_by": self.bound_by,
            "intensity": self.intensity,
            **asdict(self.measured),
        }

    def rows(self) -> Iterator[tuple[str, str]]:
        """Names and values, for people."""
        m = self.measured
        yield "compiled in", f"{m.seconds:.1f} s"
        yield "HBM", f"{mib(self.hbm_bytes)}, {self.hbm_share:.1%} of a device's"
        yield "  arguments", mib(m.arguments)
        yield "  outputs", mib(m.outputs)
        yield "  temporaries", mib(m.temporaries)
        yield "  code", mib(m.code)
        yield "flops", _or_unknown(m.flops, "{:.3g}")
        yield "bytes accessed", _or_unknown(m.bytes_accessed, "{:.3g}")
        yield "flops a byte", _or_unknown(self.intensity, "{:.1f}")
        if m.collectives is not None:
            found = ", ".join(f"{n} {kind}" for kind, n in m.collectives.items())
            yield "collectives", found or "none"
        if self.step_seconds is not None:
            yield "roofline", f"{self.step_seconds * 1e3:.3f} ms a call, bound by {self.bound_by}"

    def __str__(self) -> str:
        title = f"{self.signature} on {self.topology}, per device"
        return "\n".join([title, *(f"  {name:<15} {value}" for name, value in self.rows())])


def table(found: Sequence[Compiled]) -> Iterator[str]:
    """A line a topology: how full its devices are, and how long a call takes at least."""
    head = ("topology", "chips", "HBM a device", "of it", "flops", "bytes", "at least", "bound by")
    rows = [head, *map(_row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([f"  {name:<{widths[0]}}", *shown])


def _row(c: Compiled) -> tuple[str, ...]:
    time = "unknown" if c.step_seconds is None else f"{c.step_seconds * 1e3:.3f} ms"
    return (
        c.topology.name,
        str(c.topology.chips),
        mib(c.hbm_bytes),
        f"{c.hbm_share:.1%}",
        _or_unknown(c.measured.flops, "{:.2e}"),
        _or_unknown(c.measured.bytes_accessed, "{:.2e}"),
        time,
        c.bound_by or "unknown",
    )


def mib(size: float) -> str:
    """Bytes as MiB or GiB."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def _or_unknown(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)
