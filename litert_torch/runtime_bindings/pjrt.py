"""Run a TPU artifact through PJRT: on a TPU, or on this machine's CPU. Needs jax, not torch."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidInputError, InvalidModelFileError, MissingDependencyError
from litert_torch.files import atomic_folder
from litert_torch.runtime_bindings import inputs, jax_environment, tpu_artifact
from litert_torch.runtime_bindings.litert import DEFAULT_SIGNATURE_NAME, Model, Outputs
from litert_torch.runtime_bindings.model_file import SignatureSpec, TensorSpec
from litert_torch.runtime_bindings.tpu_artifact import ArraySpec, Artifact

HINT = "pip install 'litert-torch[tpu]'"


class Source(Protocol):
    """What a `PjrtModel` runs: an artifact's folder, or one that is not written yet."""

    @property
    def signatures(self) -> Mapping[str, tpu_artifact.SignatureSpec]:
        """Its entry points."""

    @property
    def made_with(self) -> Mapping[str, str]:
        """Versions of the packages that made it."""

    def signature(self, name: str) -> tpu_artifact.SignatureSpec:
        """One of them."""

    def module(self, name: str) -> bytes:
        """The serialized module of a signature."""

    def tensors(
        self, names: Iterable[str] | None = None, *, verify: bool = True
    ) -> dict[str, npt.NDArray[Any]]:
        """Weights and initial state."""


class Placement(Protocol):
    """Where the arrays of a signature live."""

    def of(
        self, spec: tpu_artifact.SignatureSpec, inputs: Mapping[str, Sequence[int]]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """A jax sharding for each weight, state and input, by name."""


class PjrtModel(Model):
    """A TPU artifact that runs; called as a `LiteRTModel` is.

    Args:
        source: The artifact.
        platform: "tpu", "cpu", or None for a TPU where there is one.
        verify: Whether digests of the weights are compared when they are read.
        placement: Where arrays live, if not all on one device; see `litert_torch.tpu.load`.
    """

    def __init__(
        self,
        source: Source,
        *,
        platform: str | None = None,
        verify: bool = True,
        placement: Placement | None = None,
    ) -> None:
        self._source = source
        self._platform = platform
        self._verify = verify
        self._placement = placement
        self._functions: dict[str, Any] = {}
        self._arrays: dict[str, Any] = {}
        self._state: dict[str, Any] = {}

    @classmethod
    def load(  # type: ignore[override]  # Model.load is for .tflite files
        cls,
        path: str | os.PathLike[str],
        *,
        platform: str | None = None,
        verify: bool = True,
    ) -> PjrtModel:
        """Open the artifact at `path`; it must stay in place as long as the model is used.

        Raises:
            InvalidModelFileError: there is none, or it is damaged.
            MissingDependencyError: jax is not installed.
        """
        require_jax()
        return cls(Artifact(path), platform=platform, verify=verify)

    @property
    def signatures(self) -> Mapping[str, SignatureSpec]:
        """The entry points by name: the names, shapes and dtypes of what they take and give."""
        return {name: _as_file_spec(s) for name, s in self._source.signatures.items()}

    def export(self, path: str | os.PathLike[str]) -> None:
        """Copy the artifact's folder to `path`.

        Raises:
            OutputError: the path is something else's, cannot be written, or the disk is full.
        """
        if not isinstance(self._source, Artifact):
            raise InvalidInputError("this model is not from a folder")
        with atomic_folder(path, replaces=tpu_artifact.MANIFEST) as folder:
            shutil.copytree(self._source.path, folder, dirs_exist_ok=True)

    def reset(self) -> None:
        """Forget the state that calls have gathered."""
        self._state.clear()

    def __call__(
        self, *args: npt.ArrayLike, signature_name: str = DEFAULT_SIGNATURE_NAME, **kwargs: Any
    ) -> Outputs:
        """Run one signature; takes and gives what `LiteRTModel` does.

        Raises:
            InvalidInputError: unknown signature, or inputs of wrong number, name, shape or dtype.
            InvalidModelFileError: the files were changed, or need another version of jax.
        """
        spec = self._source.signature(signature_name)
        feed = inputs.bind(_as_file_spec(spec), args, kwargs)
        with exact_types(self._platform):
            self._read()
            outputs, new_state = self._function(signature_name)(*self._arguments(spec, feed))
            self._state.update(new_state)
        arrays = {s.name: np.asarray(outputs[s.name]) for s in spec.outputs}
        if all(re.fullmatch(r"output_\d+", name) for name in arrays):
            ordered = tuple(arrays[s.name] for s in spec.outputs)
            return ordered[0] if len(ordered) == 1 else ordered
        return arrays

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            import jax

            self._functions[name] = jax.jit(deserialized(self._source, name).call)
        return self._functions[name]

    def _arguments(
        self, spec: tpu_artifact.SignatureSpec, feed: dict[str, npt.NDArray[Any]]
    ) -> tuple[dict[str, Any], ...]:
        """Weights, state and inputs, where they should be."""
        weights = {w.name: self._arrays[w.name] for w in spec.weights}
        state = {s.name: self._state.get(s.name, self._arrays[s.name]) for s in spec.state}
        tables: tuple[dict[str, Any], ...] = (weights, state, feed)
        if self._placement is None:
            return tables
        import jax

        places = self._placement.of(spec, {n: x.shape for n, x in feed.items()})
        tables = tuple(
            {n: jax.device_put(x, p[n]) for n, x in t.items()}
            for t, p in zip(tables, places, strict=True)
        )
        self._arrays.update(tables[0])
        return tables

    def _read(self) -> None:
        """Have all weights, and the initial state, as jax's arrays."""
        if self._arrays:
            return
        import jax

        specs = self._source.signatures.values()
        names = {a.name for s in specs for a in (*s.weights, *s.state)}
        for name, array in self._source.tensors(names, verify=self._verify).items():
            whole = self._placement is not None  # it is split when it is put in its place
            self._arrays[name] = array if whole else jax.device_put(array)


def require_jax() -> None:
    """Import jax.

    Raises:
        MissingDependencyError: it is not installed.
    """
    jax_environment.prepare()
    try:
        import jax.export  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(f"TPU artifacts need jax: {HINT} ({error})") from error


def require_libtpu() -> None:
    """Find the TPU compiler.

    Raises:
        MissingDependencyError: it is not installed.
    """
    if importlib.util.find_spec("libtpu") is None:
        raise MissingDependencyError(f"compiling for TPU needs libtpu, on Linux x86-64: {HINT}")


def deserialized(source: Source, name: str) -> Any:
    """The `jax.export.Exported` of a signature.

    Raises:
        InvalidModelFileError: the module needs another version of jax; both are named.
    """
    import jax
    from jax import export

    spec = source.signature(name)
    newest, oldest = (
        export.maximum_supported_calling_convention_version,
        export.minimum_supported_calling_convention_version,
    )
    if not oldest <= spec.calling_convention <= newest:
        raise InvalidModelFileError(
            f"the module of {name!r} has calling convention {spec.calling_convention}, from "
            f"jax {source.made_with.get('jax')}; jax {jax.__version__} here reads {oldest} to "
            f"{newest}: export it again, or install that jax"
        )
    content = source.module(name)
    try:
        return export.deserialize(bytearray(content))
    except Exception as error:  # flatbuffers and MLIR fail in many ways
        raise InvalidModelFileError(
            f"jax {jax.__version__} cannot read the module of {name!r}, which was made with "
            f"jax {source.made_with.get('jax')}: {error}"
        ) from error


@contextmanager
def exact_types(platform: str | None = None) -> Iterator[None]:
    """Inside the block, jax keeps 64-bit types and runs on `platform`'s first device."""
    import jax

    with jax.enable_x64(True):
        if platform is None:
            yield
        else:
            with jax.default_device(jax.devices(platform)[0]):
                yield


def _as_file_spec(spec: tpu_artifact.SignatureSpec) -> SignatureSpec:
    def tensors(specs: tuple[ArraySpec, ...]) -> tuple[TensorSpec, ...]:
        return tuple(_as_tensor_spec(i, s) for i, s in enumerate(specs))

    return SignatureSpec(spec.name, 0, tensors(spec.inputs), tensors(spec.outputs))


def _as_tensor_spec(index: int, spec: ArraySpec) -> TensorSpec:
    shape = tuple(s if isinstance(s, int) else -1 for s in spec.shape)
    return TensorSpec(spec.name, index, shape, spec.dtype, 0, tuple(abs(s) for s in shape))
