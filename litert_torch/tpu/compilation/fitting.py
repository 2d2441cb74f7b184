"""When a program does not fit: how much is missing, of what, and where it would fit."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator

from litert_torch.errors import ConversionError, DoesNotFitError
from litert_torch.runtime_bindings import child
from litert_torch.tpu.compilation import aot, topologies
from litert_torch.tpu.compilation.report import mib
from litert_torch.tpu.compilation.topologies import Topology
from litert_torch.tpu.sharding import Axes, Mesh, Spec

_SHOWN = 5
_TRIES = 3
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def explain(error: DoesNotFitError, request: aot.Request, topology: Topology) -> str:
    """The compiler's refusal in numbers and names, and the smallest topology that is enough."""
    needed = _needed(str(error)) or sum(size for _, size in _arguments(request))
    available = topology.generation.hbm_bytes
    arguments = sorted(_arguments(request), key=lambda a: -a[1])
    rows = [
        f"does not fit {topology}: needs {mib(needed)} of the {mib(available)} of each device "
        f"({mib(sum(size for _, size in arguments))} of it arguments). Largest tensors:"
    ]
    rows += [f"  {mib(size):>10}  {name}" for name, size in arguments[:_SHOWN]]
    fits = smallest(request, needed)
    where = f"smallest topology that fits: {fits}" if fits else "no known topology fits"
    return "\n".join([*rows, where + _advice(request, fits)])


def _advice(request: aot.Request, fits: Topology | None) -> str:
    if request.shardings.weights:
        return ""
    if fits is not None and fits.devices == 1:
        return ""
    return "; weights are whole on every device: split them with a mesh and shardings"


def _needed(text: str) -> int | None:
    """Bytes in "total memory required for HLO temporaries (16.00G)"."""
    match = re.search(r"required[^(]*\(([\d.]+)([KMGT]?)\)", text)
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


def _arguments(request: aot.Request) -> Iterator[tuple[str, int]]:
    """Bytes per device of each weight, state and input."""
    places = request.shardings
    for shapes, specs in (
        (request.weights, places.weights),
        (request.state, places.state),
        (request.inputs, places.inputs),
    ):
        for name, (shape, dtype) in shapes.items():
            parts = math.prod(places.mesh.parts(axes) for axes in specs.get(name, ()))
            shown = f"{name} {dtype}[{','.join(map(str, shape))}]"
            yield shown, math.prod(shape) * bits(dtype) // 8 // parts


def bits(dtype: str) -> int:
    """Bits of an element."""
    if dtype == "bool":
        return 8
    match = re.match(r"[a-z]+(\d+)", dtype)
    assert match is not None
    return int(match[1])


def smallest(request: aot.Request, needed: int) -> Topology | None:
    """The topology with the least memory in which the program compiles, tried at O0.

    `needed` is what a device of the request's mesh needs. Where something is split over an axis of
    the mesh, that axis is made longer, else only a device with more memory helps.
    """
    axis = _splitting_axis(request)
    old = request.shardings.mesh
    tries = 0
    for topology in topologies.all_topologies():
        mesh = _fitted_mesh(old, axis, topology.devices)
        if mesh is None or not _divides(request, mesh):
            continue
        share = old.axes[axis] / mesh.axes[axis] if axis else 1.0
        if needed * share > topology.generation.hbm_bytes:
            continue
        tries += 1
        if tries > _TRIES:
            return None
        if _compiles(request, topology, mesh):
            return topology
    return None


def _splitting_axis(request: aot.Request) -> str | None:
    """The axis of the mesh that most bytes of weights and state are split over."""
    places = request.shardings
    found: dict[str, int] = {}
    for shapes, specs in ((request.weights, places.weights), (request.state, places.state)):
        for name, spec in specs.items():
            shape, dtype = shapes[name]
            for axis in (a for axes in spec for a in _each(axes)):
                found[axis] = found.get(axis, 0) + math.prod(shape) * bits(dtype)
    return max(found, key=lambda a: found[a], default=None)


def _each(axes: Axes) -> tuple[str, ...]:
    return (axes,) if isinstance(axes, str) else axes or ()


def _fitted_mesh(old: Mesh, axis: str | None, devices: int) -> Mesh | None:
    """The mesh with another length of `axis`, or of its first axis; None where it cannot be."""
    name = axis or next(iter(old.axes))
    others = old.devices // old.axes[name]
    if devices % others:
        return None
    return Mesh({**old.axes, name: devices // others})


def _divides(request: aot.Request, mesh: Mesh) -> bool:
    places = request.shardings
    pairs: list[tuple[tuple[int, ...], Spec]] = []
    for shapes, specs in (
        (request.weights, places.weights),
        (request.state, places.state),
        (request.inputs, places.inputs),
    ):
        pairs += [(shapes[name][0], spec) for name, spec in specs.items()]
    return all(
        size % mesh.parts(axes) == 0
        for shape, spec in pairs
        for size, axes in zip(shape, spec, strict=False)
    )


def _compiles(request: aot.Request, topology: Topology, mesh: Mesh) -> bool:
    changed = dataclasses.replace(
        request,
        topology=topology.name,
        shardings=dataclasses.replace(request.shardings, mesh=mesh),
        level="O0",
        save=None,
    )
    try:
        child.call(aot.compiled, request=changed)
    except (ConversionError, child.ChildError):
        return False
    return True
