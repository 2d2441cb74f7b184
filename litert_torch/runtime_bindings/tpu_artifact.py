"""The folder `model.tpu/` and reading it; needs neither torch nor jax.

* `signature.json`: format, versions it was made with, and for each signature its module's file and
  digest, and names, shapes and types of its inputs, outputs, weights and state.
* `NAME.jax_export`: the signature, as `jax.export` serializes it. It takes dicts by name,
  `(weights, state, inputs)`, and gives `(outputs, state)`.
* `weights-*.safetensors`: weights and initial state by name. signature.json has the digests.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from litert_torch.errors import InvalidInputError, InvalidModelFileError

FORMAT = 1
MANIFEST = "signature.json"

_DTYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I16": np.int16,
    "U16": np.uint16,
    "I32": np.int32,
    "U32": np.uint32,
    "I64": np.int64,
    "U64": np.uint64,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F32": np.float32,
    "F64": np.float64,
    "C64": np.complex64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
}


@dataclass(frozen=True)
class ArraySpec:
    """A named array; a size that varies is an expression such as "2*dim_0"."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class SignatureSpec:
    """An entry point: what it takes and gives, in order."""

    name: str
    module: str
    sha256: str
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    weights: tuple[ArraySpec, ...]
    state: tuple[ArraySpec, ...]
    calling_convention: int


class Artifact:
    """A `model.tpu/` folder.

    Attributes:
        path: The folder.
        signatures: Its entry points by name.
        made_with: Versions of the packages that made it.
        without_contents: Names of weights that it does not hold: it was made from shapes only.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        manifest = self._manifest()
        try:
            self.signatures = {
                name: _signature(name, found) for name, found in manifest["signatures"].items()
            }
            self.made_with: Mapping[str, str] = manifest["made_with"]
            self.without_contents: tuple[str, ...] = tuple(manifest["without_contents"])
            self._shards = {
                name: (str(s["sha256"]), tuple(s["tensors"]))
                for name, s in manifest["weights"].items()
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidModelFileError(f"{self.path / MANIFEST} is damaged: {error!r}") from error

    def _manifest(self) -> dict[str, Any]:
        try:
            manifest = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidModelFileError(
                f"{self.path} is not a TPU artifact: no {MANIFEST} in it ({error.strerror})"
            ) from error
        except ValueError as error:
            raise InvalidModelFileError(f"{self.path / MANIFEST} is damaged: {error}") from error
        found = manifest.get("format") if isinstance(manifest, dict) else None
        if found != FORMAT:
            raise InvalidModelFileError(
                f"{self.path} has format {found}; this version of litert-torch reads {FORMAT}"
            )
        return dict(manifest)

    def signature(self, name: str) -> SignatureSpec:
        """The entry point `name`.

        Raises:
            InvalidInputError: there is none; lists those there are.
        """
        if name not in self.signatures:
            raise InvalidInputError(
                f"no signature {name!r}; the model has: {', '.join(self.signatures)}"
            )
        return self.signatures[name]

    def module(self, name: str) -> bytes:
        """The serialized module of a signature.

        Raises:
            InvalidModelFileError: it is missing or was changed.
        """
        spec = self.signature(name)
        content = self._read(spec.module)
        self._check(spec.module, hashlib.sha256(content).hexdigest(), spec.sha256)
        return content

    def _read(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise InvalidModelFileError(
                f"{self.path / name} cannot be read: {error.strerror}"
            ) from error

    def _check(self, name: str, digest: str, expected: str) -> None:
        if digest != expected:
            raise InvalidModelFileError(
                f"{self.path / name} was changed after it was made: its SHA-256 is "
                f"{digest[:12]}..., signature.json says {expected[:12]}..."
            )

    def tensors(
        self, names: Iterable[str] | None = None, *, verify: bool = True
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Weights and initial state as arrays that map the files, not copies.

        Args:
            names: Which; all by default.
            verify: Compare the digests of the files they are in, which reads all of them.

        Raises:
            InvalidModelFileError: a file is missing, truncated or was changed; or a tensor has no
                contents because the model was exported from shapes only.
        """
        wanted = None if names is None else set(names)
        missing = sorted(set(self.without_contents) & (wanted or set(self.without_contents)))
        if missing:
            raise InvalidModelFileError(
                f"{self.path} was made from shapes only and has no contents for {missing[0]} and "
                f"{len(missing) - 1} more: it can be compiled, not run"
            )
        found: dict[str, np.ndarray[Any, Any]] = {}
        for shard, (digest, held) in self._shards.items():
            if wanted is None or wanted & set(held):
                arrays = self._open(shard, digest if verify else None)
                found |= {n: a for n, a in arrays.items() if wanted is None or n in wanted}
        absent = (wanted or set()) - found.keys()
        if absent:
            raise InvalidModelFileError(f"{self.path} does not hold {', '.join(sorted(absent))}")
        return found

    def _open(self, name: str, digest: str | None) -> dict[str, np.ndarray[Any, Any]]:
        path = self.path / name
        try:
            with open(path, "rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InvalidModelFileError(f"{path} cannot be read: {error}") from error
        if digest is not None:
            self._check(name, hashlib.sha256(content).hexdigest(), digest)
        try:
            return _arrays(content)
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidModelFileError(f"{path} is damaged: {error}") from error


def _arrays(content: mmap.mmap) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors of a safetensors file."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        count = (end - begin) // dtype.itemsize
        flat = np.frombuffer(content, dtype, count, start + begin)
        arrays[name] = flat.reshape(entry["shape"])
    return arrays


def _signature(name: str, found: Mapping[str, Any]) -> SignatureSpec:
    return SignatureSpec(
        name,
        found["module"],
        found["sha256"],
        tuple(_array(a) for a in found["inputs"]),
        tuple(_array(a) for a in found["outputs"]),
        tuple(_array(a) for a in found["weights"]),
        tuple(_array(a) for a in found["state"]),
        found["calling_convention"],
    )


def _array(found: Mapping[str, Any]) -> ArraySpec:
    return ArraySpec(found["name"], tuple(found["shape"]), found["dtype"])
