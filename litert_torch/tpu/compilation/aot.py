"""Compiles one module for one topology; runs in a process of its own, which needs no torch.

A compile in a process that has run something takes several times the memory, and one that the
compiler aborts takes its process along.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litert_torch.errors import ConversionError, DoesNotFitError
from litert_torch.runtime_bindings import jax_environment
from litert_torch.tpu.sharding import Shardings

Shapes = Mapping[str, tuple[tuple[int, ...], str]]
"""Shape and dtype of each array."""


@dataclass(frozen=True)
class Request:
    """What to compile.

    Attributes:
        module: The serialized `jax.export` module.
        topology: As "v5e:2x2".
        weights: What the module takes, without sizes that vary.
        state: The same.
        inputs: The same.
        shardings: How these are split over the devices.
        level: Optimization level of XLA, "O0" to "O3"; None is XLA's default.
        memory_limit: Bytes that the process may take, or None.
        save: Where to write the serialized executable, or None.
    """

    module: bytes
    topology: str
    weights: Shapes
    state: Shapes
    inputs: Shapes
    shardings: Shardings
    level: str | None = None
    memory_limit: int | None = None
    save: str | None = None


@dataclass(frozen=True)
class Measured:
    """What the compiler says, per device.

    Attributes:
        seconds: Wall time of lowering and compiling.
        arguments: Bytes of weights, state and inputs.
        outputs: Bytes of the results that are not written over arguments.
        temporaries: Bytes of intermediate results.
        code: Bytes of the program.
        flops: Floating-point operations of a call; None where the compiler does not say.
        bytes_accessed: Bytes read and written, in a call.
        collectives: How often each kind of communication occurs; None where it cannot be read.
    """

    seconds: float
    arguments: int
    outputs: int
    temporaries: int
    code: int
    flops: float | None
    bytes_accessed: float | None
    collectives: Mapping[str, int] | None


def compiled(request: Request) -> Measured:
    """Compile; for `runtime_bindings.child.call`.

    Raises:
        DoesNotFitError: the compiler ran out of the devices' memory; its message has the numbers.
        ConversionError: the compiler refused the module.
    """
    _limit_memory(request.memory_limit)
    jax_environment.prepare()
    import jax

    if request.level is not None:
        jax.config.update("jax_optimization_level", request.level)
    start = time.perf_counter()
    try:
        with jax.enable_x64(True):
            executable = _compile(request)
    except jax.errors.JaxRuntimeError as error:
        text = str(error).split("\nSee https")[0].split("\n\n")[0]
        if "RESOURCE_EXHAUSTED" in text:
            raise DoesNotFitError(text) from None
        raise ConversionError(f"XLA cannot compile it for {request.topology}: {text}") from None
    seconds = time.perf_counter() - start
    if request.save is not None:
        _save(executable, request.save)
    return _measured(executable, seconds)


def _limit_memory(limit: int | None) -> None:
    if limit is None:
        return
    try:
        import resource
    except ImportError:  # not on Windows, where libtpu is not either
        return
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _compile(request: Request) -> Any:
    import jax
    import numpy as np
    from jax import export
    from jax.experimental import topologies
    from jax.sharding import Mesh

    topology = topologies.get_topology_desc(platform="tpu", topology_name=request.topology)
    axes = request.shardings.mesh.axes
    mesh = Mesh(np.array(topology.devices).reshape(tuple(axes.values())), tuple(axes))
    module = export.deserialize(bytearray(request.module))
    places = request.shardings
    arguments = (
        _arrays(request.weights, places.weights, mesh),
        _arrays(request.state, places.state, mesh),
        _arrays(request.inputs, places.inputs, mesh),
    )
    lowered = jax.jit(module.call, donate_argnums=(1,), out_shardings=_results(arguments, mesh))
    return lowered.trace(*arguments).lower(lowering_platforms=("tpu",)).compile()


def _arrays(shapes: Shapes, specs: Mapping[str, Any], mesh: Any) -> dict[str, Any]:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return {
        name: jax.ShapeDtypeStruct(
            shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*specs.get(name, ())))
        )
        for name, (shape, dtype) in shapes.items()
    }


def _results(arguments: tuple[Any, ...], mesh: Any) -> Any:
    """Outputs where the compiler likes them, state where it was, so that it is updated in place."""
    del mesh
    return None, {name: array.sharding for name, array in arguments[1].items()}


def _measured(executable: Any, seconds: float) -> Measured:
    memory = executable.memory_analysis()
    cost = executable.cost_analysis() or {}
    return Measured(
        seconds,
        memory.argument_size_in_bytes,
        memory.output_size_in_bytes - memory.alias_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.generated_code_size_in_bytes,
        _positive(cost.get("flops")),
        _positive(cost.get("bytes accessed")),
        _collectives(executable.as_text),
    )


def _positive(number: Any) -> float | None:
    return float(number) if number is not None and math.isfinite(number) and number >= 0 else None


_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_COLLECTIVE = re.compile(rf"= [^=\n]*? ({'|'.join(_KINDS)})(?:-start)?\(")


def _collectives(as_text: Callable[[], str]) -> dict[str, int] | None:
    """Counted in the program's text, which the compiler cannot print for some topologies."""
    try:
        text = as_text()
    except Exception:  # jax's and libtpu's printers disagree on some asynchronous ops
        return None
    found: dict[str, int] = {}
    for kind in _COLLECTIVE.findall(text):
        found[kind] = found.get(kind, 0) + 1
    return found


def _save(executable: Any, path: str) -> None:
    from jax.experimental import serialize_executable

    from litert_torch.files import atomic_file

    content, _, _ = serialize_executable.serialize(executable)
    with atomic_file(Path(path)) as file:
        file.write(content)
