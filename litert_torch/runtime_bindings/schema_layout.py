"""Where the fields of each table of the .tflite schema lie, read from the generated schema module.

Nothing here is written by hand but the names of the unions, so that it follows the installed
schema. `structure.py` walks files by it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

_UNIONS = {
    "ArrayIndices": "SparseIndexVector",
    "ArraySegments": "SparseIndexVector",
    "BuiltinOptions": "BuiltinOptions",
    "BuiltinOptions2": "BuiltinOptions2",
    "Details": "QuantizationDetails",
}
"""Fields that hold one of several tables; the slot before tells which."""

_OFFSET = "PrependUOffsetTRelativeSlot"
_SIZES = {
    "PrependBoolSlot": 1,
    "PrependFloat32Slot": 4,
    "PrependInt8Slot": 1,
    "PrependInt16Slot": 2,
    "PrependInt32Slot": 4,
    "PrependInt64Slot": 8,
    "PrependUint8Slot": 1,
    "PrependUint16Slot": 2,
    "PrependUint32Slot": 4,
    "PrependUint64Slot": 8,
    _OFFSET: 4,
}


@dataclass(frozen=True)
class Field:
    """One field of a table.

    Attributes:
        name: As the generated accessor is called.
        slot: Index in the table's vtable.
        size: Bytes that it takes in the table itself.
        element_size: Bytes of an element, of a vector of numbers or an (8-bit) string; else 0.
        is_string: Whether a zero byte follows the last element.
        table: Name of the table that it points at, or that each element of a vector points at.
        is_vector: Whether it is a vector.
        union: What the table is, by the number in the slot before; None for no union.
    """

    name: str
    slot: int
    size: int
    element_size: int = 0
    is_string: bool = False
    table: str | None = None
    is_vector: bool = False
    union: dict[int, str] | None = None


Tables = dict[str, tuple[Field, ...]]


class _Recorder:
    """A flatbuffer builder that remembers the one call that is made on it."""

    def __getattr__(self, name: str) -> Any:
        def record(*arguments: Any) -> None:
            self.call = (name, arguments)

        return record


@functools.cache
def tables() -> Tables:
    """The fields of every table of the installed schema."""
    from ai_edge_litert import schema_py_generated as schema

    names = {n for n, c in vars(schema).items() if isinstance(c, type) and hasattr(c, "GetRootAs")}
    fields: dict[str, list[Field]] = {name: [] for name in names}
    for function in [n for n in vars(schema) if "Add" in n]:
        for table, name in _splits(function):
            if table in names and hasattr(getattr(schema, table), name):
                fields[table].append(_field(schema, names, table, name))
    return {table: tuple(found) for table, found in fields.items()}


def _splits(function: str) -> list[tuple[str, str]]:
    """How an adder's name may be read: "AddNAddX" is field X of AddN, or "NAddX" of ""."""
    starts = [i for i in range(len(function)) if function.startswith("Add", i)]
    return [(function[:i], function[i + 3 :]) for i in starts]


def _field(schema: Any, tables: set[str], table: str, name: str) -> Field:
    kind, slot = _recorded(getattr(schema, f"{table}Add{name}"))
    size = _SIZES[kind]
    if kind != _OFFSET:
        return Field(name, slot, size)
    if name in _UNIONS:
        members = vars(getattr(schema, _UNIONS[name]))
        numbers = {n: key for key, n in members.items() if isinstance(n, int) and key in tables}
        return Field(name, slot, size, union=numbers)
    used = getattr(getattr(schema, table), name).__code__.co_names
    child = next((n for n in used if n in tables), None)
    start_vector = getattr(schema, f"{table}Start{name}Vector", None)
    if start_vector is not None:
        element = 0 if child else _recorded(start_vector)[1]
        return Field(name, slot, size, element, table=child, is_vector=True)
    if child:
        return Field(name, slot, size, table=child)
    if "String" not in used:
        raise NotImplementedError(f"a field of a kind that is new: {table}.{name}")
    return Field(name, slot, size, 1, is_string=True, is_vector=True)


def _recorded(function: Any) -> tuple[str, Any]:
    """The builder method that `function` calls, and its first argument."""
    recorder = _Recorder()
    function(recorder, 0)
    kind, arguments = recorder.call
    return kind, arguments[0]
