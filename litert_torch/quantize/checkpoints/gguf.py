"""GGUF files: metadata and tensors, of which blocks of Q4_0, Q4_1 and Q8_0 are unpacked.

(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.quantize.checkpoints.stored import StoredWeight

BLOCK = 32
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_FLOATS = {0: np.dtype("<f4"), 1: np.dtype("<f2"), 30: np.dtype(ml_dtypes.bfloat16)}
_BLOCKS = {
    2: ("Q4_0", np.dtype([("d", "<f2"), ("q", "u1", 16)])),
    3: ("Q4_1", np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)])),
    8: ("Q8_0", np.dtype([("d", "<f2"), ("q", "i1", 32)])),
}
_OTHERS = {6: "Q5_0", 7: "Q5_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K"}


@dataclass(frozen=True)
class Place:
    """Where a tensor is; `shape` has rows first, as in PyTorch."""

    kind: int
    shape: tuple[int, ...]
    offset: int


class GgufFile:
    """A mapped file.

    Attributes:
        metadata: Values by key, as "llama.attention.head_count".
        places: Tensors by name.

    Raises:
        InvalidInputError: it is not there, no GGUF file, or truncated.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as stream:
                self._data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            self._at = 0
            self._read_head()
        except (OSError, ValueError, struct.error, UnicodeDecodeError, OverflowError) as error:
            raise InvalidInputError(f"cannot read {path}: {error}") from error
        align = int(self.metadata.get("general.alignment", 32))
        self._start = -(-self._at // align) * align

    def _read_head(self) -> None:
        mark, version, tensors, values = self._take("<4sIQQ")
        if mark != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        if version not in (2, 3):
            raise ValueError(f"it has version {version}, not 2 or 3")
        self.metadata = dict(self._pair() for _ in range(values))
        self.places = dict(self._place() for _ in range(tensors))

    def weight(self, name: str) -> StoredWeight | Array:
        """A tensor: of blocks, as it is stored; else as float32.

        Raises:
            UnsupportedCaseError: it is of another type.
        """
        place = self.places[name]
        size = int(np.prod(place.shape, dtype=np.int64))
        if place.kind in _FLOATS:
            dtype = _FLOATS[place.kind]
            return self._bytes(name, size * dtype.itemsize).view(dtype).reshape(place.shape)
        if place.kind not in _BLOCKS:
            kind = _OTHERS.get(place.kind, f"number {place.kind}")
            raise UnsupportedCaseError(
                f"{self.path.name}: {name} is of type {kind}; Q4_0, Q4_1, Q8_0 and floats are "
                "supported: transformers reads others (gguf_file=), and a recipe quantizes anew"
            )
        if len(place.shape) != 2 or place.shape[1] % BLOCK:
            raise InvalidInputError(f"{name} of shape {place.shape} has no blocks of {BLOCK}")
        kind, dtype = _BLOCKS[place.kind]
        blocks = self._bytes(name, size // BLOCK * dtype.itemsize).view(dtype)
        return _stored(kind, blocks, (place.shape[0], place.shape[1]))

    def _bytes(self, name: str, nbytes: int) -> Array:
        start = self._start + self.places[name].offset
        if start + nbytes > len(self._data):
            raise InvalidInputError(f"{self.path} is truncated: it ends within {name}")
        return np.frombuffer(self._data, np.uint8, nbytes, start)

    def _take(self, kind: str) -> tuple[Any, ...]:
        found = struct.unpack_from(kind, self._data, self._at)
        self._at += struct.calcsize(kind)
        return found

    def _text(self) -> str:
        (length,) = self._take("<Q")
        if length > len(self._data) - self._at:
            raise ValueError("a text is longer than the file")
        raw = self._data[self._at : self._at + length]
        self._at += length
        return raw.decode("utf-8", "replace")

    def _pair(self) -> tuple[str, Any]:
        key = self._text()
        return key, self._value(*self._take("<I"))

    def _value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self._take(f"<{_SCALARS[kind]}")[0]
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            raise ValueError(f"a value is of unknown type {kind}")
        kind, count = self._take("<IQ")
        if count > len(self._data):
            raise ValueError("a list is longer than the file")
        return [self._value(kind) for _ in range(count)]

    def _place(self) -> tuple[str, Place]:
        name = self._text()
        (rank,) = self._take("<I")
        if rank > 8:
            raise ValueError(f"{name} has {rank} axes")
        sizes = self._take(f"<{rank}Q")
        kind, offset = self._take("<IQ")
        return name, Place(kind, tuple(int(s) for s in sizes[::-1]), int(offset))


def _stored(kind: str, blocks: Array, shape: tuple[int, int]) -> StoredWeight:
    """Of 4 bits, the first half of a block is in the low bits of its bytes."""
    grid = (shape[0], shape[1] // BLOCK)
    scales = blocks["d"].astype(np.float32).reshape(grid)
    if kind == "Q8_0":
        return StoredWeight(
            shape, 8, lambda: blocks["q"].reshape(shape), scales, np.zeros(grid, np.int16)
        )

    def integers() -> Array:
        q = blocks["q"]
        return np.concatenate([q & 15, q >> 4], axis=1).reshape(shape)

    is_offset = kind == "Q4_1"
    zeros = np.full(grid, 0 if is_offset else 8, np.int16)
    offsets = blocks["m"].astype(np.float32).reshape(grid) if is_offset else None
    return StoredWeight(shape, 4, integers, scales, zeros, offsets)
