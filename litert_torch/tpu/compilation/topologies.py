"""TPU topologies by name, as "v5e:2x2", and what their devices can do.

Numbers are those of Google's public documentation of each generation, and the memory that the
compiler says is available. A device is what XLA sees: of tpu7x, half a chip.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass

from litert_torch.errors import InvalidInputError


@dataclass(frozen=True)
class Generation:
    """A kind of TPU.

    Attributes:
        name: As "v5e".
        hbm_bytes: Memory of a device that programs may use.
        flops: Products and sums of bfloat16 a second and device.
        bandwidth: Bytes a second and device between memory and cores.
        devices_per_chip: How many XLA sees in a chip.
        layouts: Sizes of slices, smallest first.
    """

    name: str
    hbm_bytes: int
    flops: float
    bandwidth: float
    devices_per_chip: int
    layouts: tuple[str, ...]


_GIB = 1 << 30
_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBIC = ("1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8")

GENERATIONS = {
    g.name: g
    for g in (
        Generation("v5e", int(15.75 * _GIB), 197e12, 819e9, 1, _FLAT),
        Generation("v6e", int(31.24 * _GIB), 918e12, 1640e9, 1, _FLAT),
        Generation("v5p", int(95.73 * _GIB), 459e12, 2765e9, 1, _CUBIC[1:]),
        Generation("tpu7x", int(94.74 * _GIB), 1153e12, 3690e9, 2, _CUBIC),
    )
}


@dataclass(frozen=True)
class Topology:
    """A slice of a TPU generation.

    Attributes:
        generation: Which TPUs.
        layout: How many along each axis, as (2, 2).
    """

    generation: Generation
    layout: tuple[int, ...]

    @property
    def name(self) -> str:
        """As "v5e:2x2"."""
        return f"{self.generation.name}:{'x'.join(map(str, self.layout))}"

    @property
    def chips(self) -> int:
        """How many chips."""
        return math.prod(self.layout)

    @property
    def devices(self) -> int:
        """How many devices XLA sees."""
        return self.chips * self.generation.devices_per_chip

    def __str__(self) -> str:
        return self.name


def names() -> list[str]:
    """The topologies that are known to compile, smallest first within a generation."""
    return [f"{g.name}:{layout}" for g in GENERATIONS.values() for layout in g.layouts]


def parse(name: str) -> Topology:
    """The topology called `name`.

    Raises:
        InvalidInputError: there is none; says which have near names, and lists all.
    """
    match = re.fullmatch(r"([a-z0-9]+):(\d+(?:x\d+)*)", str(name))
    if match and name in names():
        generation = GENERATIONS[match[1]]
        return Topology(generation, tuple(int(n) for n in match[2].split("x")))
    near = _near(str(name))
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    every = "; ".join(f"{g.name}:{{{', '.join(g.layouts)}}}" for g in GENERATIONS.values())
    raise InvalidInputError(f"no TPU topology {name!r}: {hint}There are {every}")


_ALIASES = {
    "v5litepod": "v5e",
    "v5lite": "v5e",
    "v6": "v6e",
    "trillium": "v6e",
    "v7": "tpu7x",
    "v7x": "tpu7x",
    "ironwood": "tpu7x",
    "tpuv7x": "tpu7x",
    "v5": "v5e",
}


def _near(name: str) -> list[str]:
    before, _, layout = name.lower().partition(":")
    generation = _ALIASES.get(before, before)
    if generation in GENERATIONS:
        layouts = GENERATIONS[generation].layouts
        found = [n for n in layouts if n.startswith(layout)][:1] or difflib.get_close_matches(
            layout, layouts, 2
        )
        return [f"{generation}:{n}" for n in found or layouts[:2]]
    return difflib.get_close_matches(name, names(), 2)


def all_topologies() -> list[Topology]:
    """Every known topology, by the memory of all its devices together."""
    found = [parse(n) for n in names()]
    return sorted(found, key=lambda t: (t.devices * t.generation.hbm_bytes, t.chips))
