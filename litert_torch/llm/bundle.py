"""The .litertlm file: a header that says where each section lies, then the sections.

Bytes 0-7 are the magic, 8-19 the version, 24-31 where the header ends; the header is a flatbuffer
from byte 32. Every section begins at a multiple of 16 KiB. Nothing in it depends on when or where
it was written.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import IO, Any, cast

import flatbuffers
from flatbuffers import number_types
from flatbuffers.table import Table

from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.files import atomic_file

MAGIC = b"LITERTLM"
VERSION = (1, 7, 0)
BLOCK = 16 << 10
_HEADER_BEGIN = 32
_STRING_VALUE = 9  # in the schema's union of values


class Kind(IntEnum):
    """What a section holds, as the schema numbers it."""

    BINARY = 1
    MODEL = 3
    SENTENCE_PIECE = 4
    METADATA = 5
    HF_TOKENIZER = 6
    WEIGHTS = 7


@dataclass(frozen=True)
class Section:
    """A section to write.

    Attributes:
        kind: What it holds.
        write: Writes its bytes to a stream whose `tell()` counts from the section's begin.
        items: Texts the engine finds it by, such as {"model_type": "tf_lite_prefill_decode"}.
    """

    kind: Kind
    write: Callable[[IO[bytes]], Any]
    items: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of_bytes(cls, kind: Kind, data: bytes) -> Section:
        """A section that is already bytes."""
        return cls(kind, lambda stream: stream.write(data))


@dataclass(frozen=True)
class Place:
    """A section of a file: what it holds, and from which byte to which it lies there."""

    kind: int
    begin: int
    end: int
    items: dict[str, str]


class _FromHere:
    """A stream that counts from where it stands."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._begin = stream, stream.tell()

    def write(self, data: Any) -> int:
        """Write to the stream."""
        return self._stream.write(data)

    def tell(self) -> int:
        """Bytes written since."""
        return self._stream.tell() - self._begin


def write(path: str | os.PathLike[str], sections: Sequence[Section]) -> None:
    """Write the file at `path`, whole or not at all; sections are streamed one by one.

    Raises:
        OutputError: the path cannot be written or the disk is full.
    """
    with atomic_file(path) as stream:
        length = len(_header([Place(s.kind, 1, 1, s.items) for s in sections]))
        position = _HEADER_BEGIN + length
        if position > BLOCK:
            raise InvalidInputError(f"too many sections: a header of {position} bytes")
        position = stream.write(b"\0" * position)  # the header's place
        places = []
        for section in sections:
            begin = position + stream.write(b"\0" * (-position % BLOCK))
            section.write(cast(IO[bytes], _FromHere(stream)))
            position = stream.tell()
            places.append(Place(section.kind, begin, position, section.items))
        header = _header(places)
        stream.seek(0)
        stream.write(MAGIC + struct.pack("<4IQ", *VERSION, 0, _HEADER_BEGIN + len(header)))
        stream.write(header)


def read(path: str | os.PathLike[str]) -> list[Place]:
    """The sections of a file.

    Raises:
        InvalidModelFileError: there is no such file, or it is not a whole .litertlm file.
    """
    try:
        with open(path, "rb") as stream:
            header, size = stream.read(BLOCK), os.path.getsize(path)
    except OSError as error:
        raise InvalidModelFileError(f"cannot read {path}: {error.strerror or error}") from error
    if header[:8] != MAGIC or len(header) < _HEADER_BEGIN:
        raise InvalidModelFileError(f"{path} is not a .litertlm file")
    (end,) = struct.unpack_from("<Q", header, 24)
    try:
        places = _places(bytearray(header[_HEADER_BEGIN:end]))
    except (struct.error, IndexError, UnicodeDecodeError, TypeError) as error:
        raise InvalidModelFileError(f"{path} has a damaged header") from error
    if any(not BLOCK <= p.begin <= p.end <= size for p in places):
        raise InvalidModelFileError(f"{path} is truncated: a section lies beyond its end")
    return places


def contents(path: str | os.PathLike[str], kind: Kind) -> bytes:
    """The bytes of the first section of a kind.

    Raises:
        InvalidModelFileError: the file is not whole, or has no such section.
    """
    for place in read(path):
        if place.kind == kind:
            with Path(path).open("rb") as stream:
                stream.seek(place.begin)
                return stream.read(place.end - place.begin)
    raise InvalidModelFileError(f"{path} has no section of kind {kind.name}")


def _header(places: Sequence[Place]) -> bytes:
    """The flatbuffer; its length depends on the items alone."""
    builder = flatbuffers.Builder(1024)
    objects = _vector(builder, [_section_object(builder, p) for p in places])
    section_metadata = _table(builder, [objects])
    system_metadata = _table(builder, [_vector(builder, [])])
    builder.Finish(_table(builder, [system_metadata, section_metadata]))
    return bytes(builder.Output())


def _section_object(builder: Any, place: Place) -> int:
    items = _vector(builder, [_item(builder, k, v) for k, v in place.items.items()])
    builder.StartObject(4)
    builder.PrependUint64Slot(1, place.begin, 0)
    builder.PrependUint64Slot(2, place.end, 0)
    builder.PrependUOffsetTRelativeSlot(0, items, 0)
    builder.PrependUint8Slot(3, place.kind, 0)
    return builder.EndObject()


def _item(builder: Any, key: str, text: str) -> int:
    name = builder.CreateString(key)
    value = _table(builder, [builder.CreateString(text)])
    builder.StartObject(3)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(2, value, 0)
    builder.PrependUint8Slot(1, _STRING_VALUE, 0)
    return builder.EndObject()


def _table(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartObject(len(offsets))
    for slot, offset in enumerate(offsets):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return builder.EndObject()


def _vector(builder: Any, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _places(header: bytearray) -> list[Place]:
    (root,) = struct.unpack_from("<I", header, 0)
    sections = _tables(_child(Table(header, root), 1), 0)
    return [
        Place(
            kind=_number(s, 3, number_types.Uint8Flags),
            begin=_number(s, 1, number_types.Uint64Flags),
            end=_number(s, 2, number_types.Uint64Flags),
            items=dict(_key_value(item) for item in _tables(s, 0)),
        )
        for s in sections
    ]


def _field(table: Table, slot: int) -> int:
    """Where a field lies; 0 where it is absent."""
    offset = table.Offset(4 + 2 * slot)
    return table.Pos + offset if offset else 0


def _number(table: Table, slot: int, flags: Any) -> int:
    at = _field(table, slot)
    return int(table.Get(flags, at)) if at else 0


def _child(table: Table, slot: int) -> Table:
    return Table(table.Bytes, table.Indirect(_field(table, slot)))


def _tables(table: Table, slot: int) -> list[Table]:
    at = _field(table, slot) - table.Pos
    if at < 0:
        return []
    begin, count = table.Vector(at), table.VectorLen(at)
    return [Table(table.Bytes, table.Indirect(begin + 4 * i)) for i in range(count)]


def _key_value(item: Table) -> tuple[str, str]:
    """The key, and the value as text where it is one."""
    key = item.String(_field(item, 0)).decode()
    if _number(item, 1, number_types.Uint8Flags) != _STRING_VALUE:
        return key, ""
    value = _child(item, 2)
    return key, value.String(_field(value, 0)).decode()
