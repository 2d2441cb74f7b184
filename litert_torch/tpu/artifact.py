"""Writes `model.tpu/`: modules, weights, signature.json; whole or not at all, the same each time.

`runtime_bindings/tpu_artifact.py` describes the folder, and reads it.
"""

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch

from litert_torch._version import __version__
from litert_torch.errors import InvalidInputError
from litert_torch.files import atomic_folder
from litert_torch.runtime_bindings.tpu_artifact import FORMAT, MANIFEST
from litert_torch.tpu import dtypes, quantized_weights, random_keys, shards
from litert_torch.tpu.tracing import Traced, Weights

_PACKAGES = ("torch", "jax", "jaxlib")


@dataclass(frozen=True)
class TorchTensor:
    """A torch tensor as `shards` writes it, read in rows."""

    tensor: torch.Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> Any:
        """Its numpy dtype."""
        return dtypes.to_jax(self.tensor.dtype)

    def chunks(self, limit: int) -> Iterator[Any]:
        """Its rows, as many at a time as fit into `limit` bytes."""
        if self.tensor.dim() == 0 or self.tensor.nbytes <= limit:
            yield dtypes.array_of(self.tensor)
            return
        step = max(1, limit * self.shape[0] // self.tensor.nbytes)
        for begin in range(0, self.shape[0], step):
            yield dtypes.array_of(self.tensor[begin : begin + step])


@dataclass(frozen=True)
class ArrayTensor:
    """A small array that is written as it is."""

    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> Any:
        """Its numpy dtype."""
        return self.array.dtype

    def chunks(self, limit: int) -> Iterator[Any]:
        """The array."""
        del limit
        yield self.array


def write(
    path: str | os.PathLike[str],
    traced: Sequence[Traced],
    weights: Weights,
    *,
    shard_bytes: int = shards.SHARD_BYTES,
) -> None:
    """The artifact at `path`, in place of one that is there.

    Weights on the meta device have no contents: such an artifact compiles and does not run.

    Raises:
        OutputError: the path is not an artifact's, cannot be written, or the disk is full.
    """
    contents = stored(traced, weights)
    with atomic_folder(path, replaces=MANIFEST) as folder:
        modules = {t.name: _write_module(folder, t) for t in traced}
        files = shards.write(folder, contents, shard_bytes=shard_bytes)
        manifest = {
            "format": FORMAT,
            "made_with": {"litert-torch": __version__, **versions()},
            "signatures": {t.name: {**modules[t.name], **_described(t)} for t in traced},
            "weights": {s.name: {"sha256": s.sha256, "tensors": list(s.tensors)} for s in files},
            "without_contents": sorted(_names(traced) - contents.keys()),
        }
        text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")


def _names(traced: Sequence[Traced]) -> set[str]:
    return {a.name for t in traced for a in (*t.weights, *t.state)}


def stored(traced: Sequence[Traced], weights: Weights) -> dict[str, shards.Stored]:
    """What is written: every weight and initial state that some signature takes."""
    found: dict[str, shards.Stored] = {}
    for name in sorted(_names(traced)):
        if name == random_keys.STATE_NAME:
            found[name] = ArrayTensor(np.array(random_keys.INITIAL, np.uint32))
        elif name in weights.forms:
            found |= _quantized(name, weights)
        elif name in weights.tensors and weights.tensors[name].device.type != "meta":
            found[name] = TorchTensor(weights.tensors[name])
    return found


def _quantized(name: str, weights: Weights) -> dict[str, shards.Stored]:
    tensor = weights.tensors[name]
    if tensor.device.type == "meta":
        return {}
    integers, scales = quantized_weights.quantized(name, tensor, weights.forms[name])
    return {name: integers, name + quantized_weights.SCALES: ArrayTensor(scales)}


def _write_module(folder: Path, traced: Traced) -> dict[str, Any]:
    content = bytes(traced.module.serialize())
    name = f"{quote(traced.name, safe='')}.jax_export"
    if len(name) > 255:
        raise InvalidInputError(f"the signature name {traced.name[:40]!r}... is too long")
    (folder / name).write_bytes(content)
    return {
        "module": name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "calling_convention": traced.module.calling_convention_version,
        "platforms": list(traced.module.platforms),
    }


def _described(traced: Traced) -> Mapping[str, Any]:
    return {
        "inputs": [asdict(s) for s in traced.inputs],
        "outputs": [asdict(s) for s in traced.outputs],
        "weights": [asdict(s) for s in traced.weights],
        "state": [asdict(s) for s in traced.state],
    }


def versions() -> dict[str, str]:
    """Of the packages that decide what an artifact's modules say."""
    return {name: importlib.metadata.version(name) for name in _PACKAGES}
