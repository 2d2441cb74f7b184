"""compile(): an artifact, ahead of time, for a TPU that is not here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from litert_torch.errors import ConversionError, DoesNotFitError, InvalidInputError
from litert_torch.runtime_bindings import child, pjrt
from litert_torch.runtime_bindings.tpu_artifact import ArraySpec, Artifact, SignatureSpec
from litert_torch.tpu import sharding, sharding_rules
from litert_torch.tpu.compilation import aot, fitting, topologies
from litert_torch.tpu.compilation.report import Compiled

__all__ = ["Compiled", "compile"]

_SHARE_OF_MEMORY = 0.75


def compile(  # noqa: A001  # litert_torch.tpu.compile is what users look for
    artifact: Any,
    topology: str,
    *,
    signature: str | None = None,
    sizes: Mapping[str, int] | None = None,
    mesh: Mapping[str, int] | None = None,
    shardings: sharding_rules.Rules = None,
    level: str | None = None,
    save: str | os.PathLike[str] | None = None,
    memory_limit: int | None = None,
) -> Compiled:
    """Compile an artifact ahead of time for a slice of TPUs; needs libtpu, but no TPU and no torch.

    Args:
        artifact: The folder's path, or what `tpu.export` gave.
        topology: As "v5e:2x2": v5e, v6e, v5p and tpu7x, with the numbers of chips along each axis.
        signature: Which entry point; by default the only one.
        sizes: A number for each size that varies, by the names in the signature ("dim_0").
        mesh: Names and sizes of the axes that the devices are arranged along, as
            {"data": 2, "model": 4}; by default {"data": all of them}.
        shardings: How weights, state and inputs are split over the mesh: "transformer", "fsdp" or
            rules by name, as `sharding_rules.resolve` takes them. By default weights are on every
            device, and inputs are split along dimension 0 where it divides.
        level: XLA's optimization level: "O0" answers quickly whether it fits, None is the default.
        save: Where to write the executable for a TPU runtime of the same libtpu.
        memory_limit: Bytes of this machine's memory that the compiler may take; by default three
            quarters of it.

    Raises:
        DoesNotFitError: the devices have too little memory; names the largest tensors and the
            smallest topology that has enough.
        InvalidInputError: no such topology, signature or size; or a mesh that does not fit.
        ConversionError: the compiler refuses the program, or crashes.
        MissingDependencyError: jax or libtpu is not installed.
    """
    target = topologies.parse(topology)
    pjrt.require_jax()
    pjrt.require_libtpu()
    source = source_of(artifact)
    spec = _entry(source, signature)
    bound = Bound(spec, sizes or {})
    grid = sharding.mesh_of(mesh or {"data": target.devices}, target.devices)
    places = sharding_rules.resolve(
        shardings, _shapes(bound.weights), _shapes(bound.state), _shapes(bound.inputs), grid
    )
    request = aot.Request(
        source.module(spec.name),
        target.name,
        bound.weights,
        bound.state,
        bound.inputs,
        places,
        level,
        memory_limit or _default_limit(),
        None if save is None else str(save),
    )
    try:
        measured = child.call(aot.compiled, request=request)
    except DoesNotFitError as error:
        raise DoesNotFitError(fitting.explain(error, request, target)) from None
    except child.ChildError as error:
        raise ConversionError(f"the compiler for {target} {error}") from error
    return Compiled(spec.name, target, grid, measured)


def _default_limit() -> int | None:
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _SHARE_OF_MEMORY)
    except (AttributeError, ValueError, OSError):
        return None


def source_of(artifact: Any) -> pjrt.Source:
    """Where the modules of a path, or of a program, come from."""
    if isinstance(artifact, (str, os.PathLike)):
        return Artifact(artifact)
    source = getattr(artifact, "source", None)
    if source is None:
        raise InvalidInputError(
            "compile takes the path of an artifact or what tpu.export gave, "
            f"not {type(artifact).__name__}"
        )
    return source


def _entry(source: pjrt.Source, name: str | None) -> SignatureSpec:
    if name is None:
        if len(source.signatures) > 1:
            raise InvalidInputError(f"say which signature: {', '.join(source.signatures)}")
        name = next(iter(source.signatures))
    return source.signature(name)


class Bound:
    """A signature with numbers for the sizes that vary."""

    def __init__(self, spec: SignatureSpec, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)
        self._require_sizes(spec)
        self.weights = self._shapes(spec.weights)
        self.state = self._shapes(spec.state)
        self.inputs = self._shapes(spec.inputs)

    def _require_sizes(self, spec: SignatureSpec) -> None:
        vary = {n for a in spec.inputs for d in a.shape for n in re.findall(r"dim_\d+", str(d))}
        missing = sorted(vary - self._sizes.keys())
        unknown = sorted(self._sizes.keys() - vary)
        if missing or unknown:
            shown = "; ".join(f"{a.name} {list(a.shape)}" for a in spec.inputs)
            what = (
                f"sizes that vary need a number: {', '.join(missing)}"
                if missing
                else f"no size varies that is called {', '.join(unknown)}"
            )
            raise InvalidInputError(f"{what}; signature {spec.name!r} takes {shown}")

    def _shapes(self, arrays: Sequence[ArraySpec]) -> aot.Shapes:
        return {a.name: (tuple(self._size(d) for d in a.shape), a.dtype) for a in arrays}

    def _size(self, size: int | str) -> int:
        """A size as "2*dim_0 + 1" with numbers put in."""
        if isinstance(size, int):
            return size
        known = {"__builtins__": {}, "max": max, "min": min}
        functions = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}
        return int(eval(size, known, {**functions, **self._sizes}))  # jax's own text


def _shapes(arrays: aot.Shapes) -> dict[str, tuple[int, ...]]:
    return {name: shape for name, (shape, _) in arrays.items()}
