"""Where the parts of a tensor live on a mesh of devices: checks of specs, and defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from litert_torch.errors import InvalidInputError

Axes = None | str | tuple[str, ...]
Spec = tuple[Axes, ...]
"""For each dimension of a tensor, the mesh axis or axes that it is split over."""


@dataclass(frozen=True)
class Mesh:
    """Devices in a grid with named axes, as {"data": 2, "model": 4}."""

    axes: Mapping[str, int]

    @property
    def devices(self) -> int:
        """How many devices."""
        return math.prod(self.axes.values())

    def parts(self, axes: Axes) -> int:
        """Into how many parts a dimension is split over `axes`."""
        named = (axes,) if isinstance(axes, str) else axes or ()
        for name in named:
            if name not in self.axes:
                raise InvalidInputError(
                    f"the mesh has no axis {name!r}; it has {', '.join(self.axes)}"
                )
        return math.prod(self.axes[name] for name in named)


@dataclass(frozen=True)
class Shardings:
    """How each array of a signature is split; those not named are whole on every device."""

    mesh: Mesh
    weights: Mapping[str, Spec] = field(default_factory=dict)
    state: Mapping[str, Spec] = field(default_factory=dict)
    inputs: Mapping[str, Spec] = field(default_factory=dict)


def mesh_of(axes: Mapping[str, int], devices: int) -> Mesh:
    """The mesh of all of `devices`.

    Raises:
        InvalidInputError: it has more or fewer.
    """
    mesh = Mesh(dict(axes))
    if any(not isinstance(n, int) or n < 1 for n in mesh.axes.values()):
        raise InvalidInputError(f"the sizes of a mesh are 1 or more, not {dict(axes)}")
    if mesh.devices != devices:
        shown = " x ".join(f"{name} {size}" for name, size in mesh.axes.items())
        raise InvalidInputError(
            f"the mesh {shown} has {mesh.devices} devices, the topology {devices}"
        )
    return mesh


def check(name: str, shape: Sequence[int], spec: Spec, mesh: Mesh) -> None:
    """Whether `spec` divides an array of this shape.

    Raises:
        InvalidInputError: it does not; says which dimension, and by how much it is off.
    """
    if len(spec) > len(shape):
        raise InvalidInputError(
            f"'{name}' has {len(shape)} dimensions, its sharding {spec} has {len(spec)}"
        )
    for dim, axes in enumerate(spec):
        parts = mesh.parts(axes)
        if shape[dim] % parts:
            raise InvalidInputError(
                f"dimension {dim} of '{name}' ({shape[dim]}) does not divide into {parts} "
                f"parts over {axes!r}: {shape[dim] % parts} left over"
            )


def data_parallel(inputs: Mapping[str, Sequence[int]], mesh: Mesh, axis: str) -> dict[str, Spec]:
    """Inputs whose first dimension divides are split along it, others are on every device."""
    parts = mesh.parts(axis)
    return {name: (axis,) for name, shape in inputs.items() if shape and shape[0] % parts == 0}
