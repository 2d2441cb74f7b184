"""What `tpu.export` gives: signatures traced for TPU, and the weights that they take."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidInputError
from litert_torch.runtime_bindings import tpu_artifact
from litert_torch.runtime_bindings.litert import DEFAULT_SIGNATURE_NAME, Model, Outputs
from litert_torch.runtime_bindings.model_file import SignatureSpec
from litert_torch.runtime_bindings.pjrt import PjrtModel, Source
from litert_torch.tpu import artifact, shards
from litert_torch.tpu.tracing import Traced, Weights


class TpuProgram(Model):
    """An exported model: call it to run it on this machine, `export(path)` to write it."""

    def __init__(self, traced: Sequence[Traced], weights: Weights) -> None:
        self._traced = {t.name: t for t in traced}
        self._weights = weights

    @property
    def signatures(self) -> Mapping[str, SignatureSpec]:
        """The entry points by name: the names, shapes and dtypes of what they take and give."""
        return self._model.signatures

    @property
    def traced(self) -> Sequence[Traced]:
        """The entry points as `jax.export` modules."""
        return tuple(self._traced.values())

    def __call__(
        self, *args: npt.ArrayLike, signature_name: str = DEFAULT_SIGNATURE_NAME, **kwargs: Any
    ) -> Outputs:
        """Run one signature on the CPU, or on a TPU where there is one; see `PjrtModel`."""
        return self._model(*args, signature_name=signature_name, **kwargs)

    def reset(self) -> None:
        """Forget the state that calls have gathered."""
        self._model.reset()

    def export(
        self, path: str | os.PathLike[str], *, shard_bytes: int = shards.SHARD_BYTES
    ) -> None:
        """Write the artifact, a folder; whole or not at all, the same bytes each time.

        Args:
            path: As "model.tpu"; an artifact that is there is replaced.
            shard_bytes: Largest size of a file of weights; a single larger tensor is one file.

        Raises:
            OutputError: the path is something else's, cannot be written, or the disk is full.
        """
        artifact.write(path, self.traced, self._weights, shard_bytes=shard_bytes)

    @functools.cached_property
    def source(self) -> Source:
        """The program in place of an artifact's folder, for `PjrtModel` and `tpu.compile`."""
        return _Unwritten(self._traced, self._weights)

    @functools.cached_property
    def _model(self) -> PjrtModel:
        return PjrtModel(self.source)


class _Unwritten:
    """The program in place of an artifact's folder."""

    def __init__(self, traced: Mapping[str, Traced], weights: Weights) -> None:
        self._traced = traced
        self._stored = artifact.stored(list(traced.values()), weights)
        self.made_with: Mapping[str, str] = artifact.versions()
        self.signatures = {name: _spec(t) for name, t in traced.items()}

    def signature(self, name: str) -> tpu_artifact.SignatureSpec:
        """The entry point `name`."""
        if name not in self.signatures:
            raise InvalidInputError(
                f"no signature {name!r}; the model has: {', '.join(self.signatures)}"
            )
        return self.signatures[name]

    def module(self, name: str) -> bytes:
        """The serialized module of a signature."""
        return bytes(self._traced[name].module.serialize())

    def tensors(
        self, names: Iterable[str] | None = None, *, verify: bool = True
    ) -> dict[str, npt.NDArray[Any]]:
        """Weights and initial state, from the module that was exported."""
        del verify
        wanted = self._stored.keys() if names is None else set(names)
        missing = sorted(wanted - self._stored.keys())
        if missing:
            raise InvalidInputError(
                f"the module is on the meta device, and {missing[0]} has no contents: "
                "it can be compiled, not run"
            )
        return {name: _whole(self._stored[name]) for name in wanted}


def _whole(tensor: shards.Stored) -> npt.NDArray[Any]:
    parts = list(tensor.chunks(1 << 62))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _spec(traced: Traced) -> tpu_artifact.SignatureSpec:
    return tpu_artifact.SignatureSpec(
        traced.name,
        "",
        "",
        traced.inputs,
        traced.outputs,
        traced.weights,
        traced.state,
        traced.module.calling_convention_version,
    )
