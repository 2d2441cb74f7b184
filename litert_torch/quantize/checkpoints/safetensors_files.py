"""Tensors in .safetensors files, mapped: one is in memory while it is looked at."""

from __future__ import annotations

import json
import mmap
from pathlib import Path

import ml_dtypes
import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.errors import InvalidInputError

_TYPES = {
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "BOOL": np.dtype(bool),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
}
_LARGEST_HEADER = 100 << 20


class SafetensorsFiles:
    """The tensors of all .safetensors files of a folder by name.

    Raises:
        InvalidInputError: there is no such file, or one is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._places: dict[str, tuple[mmap.mmap, int, str, tuple[int, ...], int]] = {}
        paths = sorted(folder.glob("*.safetensors"))
        if not paths:
            raise InvalidInputError(f"there is no .safetensors file in {folder}")
        for path in paths:
            self._open(path)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def names(self) -> list[str]:
        """All names."""
        return list(self._places)

    def read(self, name: str) -> Array:
        """A tensor, as a view of the file."""
        data, start, kind, shape, nbytes = self._places[name]
        if kind not in _TYPES:
            raise InvalidInputError(f"tensor {name} is of type {kind}, which is not supported")
        return np.frombuffer(data, np.uint8, nbytes, start).view(_TYPES[kind]).reshape(shape)

    def _open(self, path: Path) -> None:
        try:
            with open(path, "rb") as stream:
                data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            self._read_header(data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"cannot read {path}: {error}") from error

    def _read_header(self, data: mmap.mmap) -> None:
        length = int.from_bytes(data[:8], "little")
        if not 0 < length <= min(len(data) - 8, _LARGEST_HEADER):
            raise ValueError("its header is longer than the file")
        start = 8 + length
        for name, entry in json.loads(data[8:start]).items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            shape = tuple(int(s) for s in entry["shape"])
            known = _TYPES.get(entry["dtype"])
            nbytes = int(np.prod(shape, dtype=np.int64)) * known.itemsize if known else end - begin
            if not 0 <= begin <= end <= len(data) - start or nbytes != end - begin:
                raise ValueError(f"tensor {name} is not where the header says")
            self._places[name] = data, start + begin, entry["dtype"], shape, nbytes
