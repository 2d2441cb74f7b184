"""Tensors to safetensors files, a part at a time, so that memory does not grow with the model."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

SHARD_BYTES = 4 << 30
_CHUNK = 32 << 20

_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}


class Stored(Protocol):
    """A tensor that can be read in parts."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""

    @property
    def dtype(self) -> Any:
        """Its numpy dtype."""

    def chunks(self, limit: int) -> Iterator[Any]:
        """C-contiguous numpy arrays that make it up, in order, of about `limit` bytes."""


@dataclass(frozen=True)
class Shard:
    """A written file.

    Attributes:
        name: Its file name.
        sha256: Digest of the whole file.
        tensors: Names of what it holds.
    """

    name: str
    sha256: str
    tensors: tuple[str, ...]


def write(
    folder: Path, tensors: Mapping[str, Stored], *, shard_bytes: int = SHARD_BYTES
) -> list[Shard]:
    """The tensors as weights-00001-of-0000N.safetensors in `folder`."""
    groups = list(_groups(tensors, shard_bytes))
    shards = []
    for i, names in enumerate(groups):
        name = f"weights-{i + 1:05}-of-{len(groups):05}.safetensors"
        with open(folder / name, "wb") as file:
            digest = _write(file, {n: tensors[n] for n in names})
        shards.append(Shard(name, digest, tuple(sorted(names))))
    return shards


def _groups(tensors: Mapping[str, Stored], limit: int) -> Iterator[list[str]]:
    """Names in order, as many a shard as fit into `limit` bytes."""
    group: list[str] = []
    size = 0
    for name in sorted(tensors):
        needed = nbytes(tensors[name])
        if group and size + needed > limit:
            yield group
            group, size = [], 0
        group.append(name)
        size += needed
    if group:
        yield group


def nbytes(tensor: Stored) -> int:
    """Bytes of the tensor in a file."""
    count = 1
    for size in tensor.shape:
        count *= size
    return count * int(tensor.dtype.itemsize)


def _write(file: IO[bytes], tensors: Mapping[str, Stored]) -> str:
    """The tensors, those of wide elements first so that all are aligned; gives the digest."""
    order = sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, n))
    digest = hashlib.sha256()

    def put(data: Any) -> None:
        file.write(data)
        digest.update(data)

    put(_header(order, tensors))
    for name in order:
        for part in tensors[name].chunks(_CHUNK):
            put(memoryview(part.reshape(-1).view("uint8")) if part.size else b"")
    return digest.hexdigest()


def _header(order: Sequence[str], tensors: Mapping[str, Stored]) -> bytes:
    entries: dict[str, Any] = {}
    begin = 0
    for name in order:
        tensor = tensors[name]
        end = begin + nbytes(tensor)
        dtype = _NAMES[str(tensor.dtype)]
        entries[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
