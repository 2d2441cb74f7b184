"""Whether bytes are a well-formed flatbuffer of the .tflite schema.

Every offset is followed once and checked to stay inside, before the runtime, which
trusts its files, sees them. Time and memory are bounded by the size of the metadata.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from litert_torch.errors import InvalidModelFileError
from litert_torch.runtime_bindings import schema_layout
from litert_torch.runtime_bindings.schema_layout import Field

IDENTIFIER = b"TFL3"
_LARGEST = 2**32 - 1  # what an offset can reach
_MOST_REFERENCES = 4_000_000  # four times what LiteRT's own verifier allows

Data = Any  # bytes, a memoryview or an mmap
Pending = tuple[int, str]  # position and name of a table


def check(data: Data, name: str) -> None:
    """Raise InvalidModelFileError unless all tables, vectors and strings of the file lie inside it.

    Args:
        data: The file, mapped or read.
        name: What to call it in the error.
    """
    if len(data) == 0:
        raise InvalidModelFileError(f"{name} is empty")
    if len(data) < 8 or bytes(data[4:8]) != IDENTIFIER:
        raise InvalidModelFileError(
            f"{name} is not a LiteRT model: bytes 4 to 8 are {bytes(data[4:8])!r}, "
            f"not {IDENTIFIER!r}{_guess(bytes(data[:512]))}"
        )
    try:
        _Walk(data).run()
    except _Damage as damage:
        raise InvalidModelFileError(f"{name} is truncated or damaged: {damage}") from None


_KNOWN = {
    b"PK\x03\x04": "a zip archive, such as a .pt2 or .pt file; convert it first",
    b"\x89HDF": "an HDF5 file, such as a Keras model",
    b"GGUF": "a GGUF file",
    b"LITERTLM": "a .litertlm bundle",
    b"version https://git-lfs": "a Git LFS pointer; run `git lfs pull`",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"<": "a web page or XML, perhaps a failed download",
    b"{": "JSON text",
}


def _guess(head: bytes) -> str:
    found = next((what for start, what in _KNOWN.items() if head.lstrip().startswith(start)), None)
    return f"; it looks like {found}" if found else ""


class _Damage(Exception):  # noqa: N818 - never leaves this module
    """What is wrong, and where."""


class _Walk:
    """Visits each table of a file once."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._end = min(len(data), _LARGEST)
        self._tables = schema_layout.tables()
        self._seen: set[Pending] = set()
        self._budget = min(len(data) // 2 + 1024, _MOST_REFERENCES)  # each takes 4 bytes

    def run(self) -> None:
        root = self._target(0, "the root")
        pending = [(root, "Model")]
        while pending:
            table = pending.pop()
            if table not in self._seen:
                self._seen.add(table)
                pending.extend(self._children(*table))

    def _children(self, at: int, table: str) -> Iterator[Pending]:
        """Check the table at `at`, and give the tables that it points at."""
        slots = self._slots(at, table)
        for field in self._tables[table]:
            offset = slots[field.slot] if field.slot < len(slots) else 0
            if offset == 0:
                continue
            if offset + field.size > self._table_size:
                raise _Damage(f"{table}.{field.name} at byte {at} lies outside its table")
            if field.union is not None:
                yield from self._union(field, table, at, offset, slots[field.slot - 1])
            elif field.is_vector or field.table:
                yield from self._reference(field, f"{table}.{field.name}", at + offset)

    def _slots(self, at: int, table: str) -> tuple[int, ...]:
        """The vtable of the table at `at`: where in it each field lies, 0 for absent ones."""
        self._inside(at, 4, f"a {table} table")
        vtable = at - self._number("<i", at)
        self._inside(vtable, 4, f"the vtable of {table} at byte {at}")
        size, self._table_size = struct.unpack_from("<HH", self._data, vtable)
        if size < 4 or size % 2 or self._table_size < 4:
            raise _Damage(f"the vtable of {table} at byte {at} has impossible sizes")
        self._inside(vtable, size, f"the vtable of {table} at byte {at}")
        self._inside(at, self._table_size, f"the {table} table at byte {at}")
        return struct.unpack_from(f"<{size // 2 - 2}H", self._data, vtable + 4)

    def _union(
        self, field: Field, table: str, at: int, offset: int, kind_offset: int
    ) -> Iterator[Pending]:
        assert field.union is not None
        if kind_offset + 1 > self._table_size:
            raise _Damage(f"the kind of {table}.{field.name} at byte {at} lies outside its table")
        kind = self._data[at + kind_offset] if kind_offset else 0
        target = self._target(at + offset, f"{table}.{field.name}")
        if kind in field.union:
            yield target, field.union[kind]
        elif kind:
            raise _Damage(f"{table}.{field.name} at byte {at} is of an unknown kind, {kind}")

    def _reference(self, field: Field, label: str, at: int) -> Iterator[Pending]:
        target = self._target(at, label)
        if not field.is_vector:
            assert field.table is not None
            yield target, field.table
            return
        self._inside(target, 4, label)
        length = self._number("<I", target)
        self._inside(target + 4, length * (field.element_size or 4) + field.is_string, label)
        if field.is_string and self._data[target + 4 + length]:
            raise _Damage(f"the text {label} at byte {target} does not end")
        if field.table:
            self._spend(length)
            for element in range(target + 4, target + 4 + 4 * length, 4):
                yield self._target(element, label), field.table

    def _target(self, at: int, label: str) -> int:
        """Where the offset at `at` points to."""
        self._spend(1)
        self._inside(at, 4, f"the offset of {label}")
        target = at + self._number("<I", at)
        if target % 4 or target == at:
            raise _Damage(f"the offset of {label} at byte {at} points to byte {target}")
        return target

    def _spend(self, references: int) -> None:
        self._budget -= references
        if self._budget < 0:
            raise _Damage("its tables overlap each other")

    def _inside(self, at: int, size: int, label: str) -> None:
        if at < 0 or at + size > self._end:
            raise _Damage(
                f"{label} would take bytes {at} to {at + size} of a file of {len(self._data)}"
            )

    def _number(self, kind: str, at: int) -> int:
        return int(struct.unpack_from(kind, self._data, at)[0])
