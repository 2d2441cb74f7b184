"""Whether the numbers in a well-formed .tflite file refer to what the file has."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from litert_torch.errors import InvalidModelFileError

_EMPTY = np.empty(0, np.int32)
_LARGEST_TENSOR = 2**47  # bytes; more than any address space has

_BITS = {
    **dict.fromkeys(("FLOAT64", "INT64", "UINT64", "COMPLEX64"), 64),
    **dict.fromkeys(("FLOAT32", "INT32", "UINT32"), 32),
    **dict.fromkeys(("FLOAT16", "BFLOAT16", "INT16", "UINT16"), 16),
    **dict.fromkeys(("INT8", "UINT8", "BOOL", "FLOAT8_E4M3FN", "FLOAT8_E5M2"), 8),
    **dict.fromkeys(("INT4", "UINT4"), 4),
    "INT2": 2,
    "COMPLEX128": 128,
}
"""Bits of an element; types that are not here have no fixed size."""


def check(model: Any, file_size: int, name: str) -> None:
    """Raise InvalidModelFileError unless every index, count and size in `model` makes sense.

    Args:
        model: `schema_py_generated.Model`, whose structure was checked.
        file_size: Bytes of the file.
        name: What to call it in the error.
    """
    problem = next(iter(_problems(model, file_size)), None)
    if problem is not None:
        raise InvalidModelFileError(f"{name} is damaged or not meant for LiteRT: {problem}")


@functools.cache
def tensor_types() -> dict[int, str]:
    """Names of the element types by number."""
    from ai_edge_litert import schema_py_generated as schema

    return {n: key for key, n in vars(schema.TensorType).items() if isinstance(n, int)}


@functools.cache
def builtin_operators() -> dict[int, str]:
    """Names of the operators by number."""
    from ai_edge_litert import schema_py_generated as schema

    return {n: key for key, n in vars(schema.BuiltinOperator).items() if isinstance(n, int)}


def builtin_code(code: Any) -> int:
    """The operator's number; old files have it in the deprecated 8-bit field."""
    return max(int(code.BuiltinCode()), int(code.DeprecatedBuiltinCode()))


def _problems(model: Any, file_size: int) -> Iterable[str]:
    if model.Version() != 3:
        yield f"it has schema version {model.Version()}, not 3"
    if model.SubgraphsLength() == 0:
        yield "it has no subgraph"
    if model.BuffersLength() == 0:
        yield "it has no buffers"
    yield from _buffers(model, file_size)
    for i in range(model.OperatorCodesLength()):
        code = model.OperatorCodes(i)
        if builtin_code(code) not in builtin_operators():
            yield f"it uses operator number {builtin_code(code)}, which LiteRT does not have"
        if builtin_operators()[builtin_code(code)] == "CUSTOM" and not code.CustomCode():
            yield f"operator code {i} is custom, but has no name"
    counts = _Counts(model, file_size)
    for i in range(counts.subgraphs):
        yield from _subgraph(model.Subgraphs(i), i, counts)
    yield from _call_cycles(counts.calls)
    yield from _signatures(model)
    for i in range(model.MetadataLength()):
        yield from _index("metadata", model.Metadata(i).Buffer(), model.BuffersLength(), "buffers")


class _Counts:
    """What the parts of a file may refer to, read once."""

    def __init__(self, model: Any, file_size: int) -> None:
        self.file_size = file_size
        self.codes = model.OperatorCodesLength()
        self.subgraphs = model.SubgraphsLength()
        self.buffers = [_nbytes(model.Buffers(i)) for i in range(model.BuffersLength())]
        self.calls: dict[int, set[int]] = {i: set() for i in range(self.subgraphs)}


def _nbytes(buffer: Any) -> int:
    return int(buffer.Size() if buffer.Offset() > 1 else buffer.DataLength())


def _buffers(model: Any, file_size: int) -> Iterable[str]:
    for i in range(model.BuffersLength()):
        buffer = model.Buffers(i)
        if buffer.Offset() > 1 and buffer.Offset() + buffer.Size() > file_size:
            end = buffer.Offset() + buffer.Size()
            yield f"buffer {i} ends at byte {end}, but the file has {file_size} (cut short?)"


def _subgraph(graph: Any, number: int, counts: _Counts) -> Iterable[str]:
    count = graph.TensorsLength()
    where = f"subgraph {number}"
    for i in range(count):
        yield from _tensor(graph.Tensors(i), f"tensor {i} of {where}", count, counts.buffers)
    yield from _indices(f"inputs of {where}", _numbers(graph, "Inputs"), count)
    yield from _indices(f"outputs of {where}", _numbers(graph, "Outputs"), count)
    for i in range(graph.OperatorsLength()):
        operator = graph.Operators(i)
        label = f"operator {i} of {where}"
        yield from _index(label, operator.OpcodeIndex(), counts.codes, "codes")
        for vector in ("Inputs", "Outputs", "Intermediates"):
            yield from _indices(label, _numbers(operator, vector), count, optional=True)
        start = operator.LargeCustomOptionsOffset()
        if start > 1 and start + operator.LargeCustomOptionsSize() > counts.file_size:
            yield f"the options of {label} end behind byte {counts.file_size}, the last one"
        for callee in _callees(operator):
            yield from _index(label, callee, counts.subgraphs, "subgraphs")
            counts.calls[number].add(callee)


def _tensor(tensor: Any, label: str, count: int, buffers: list[int]) -> Iterable[str]:
    yield from _index(label, tensor.Buffer(), len(buffers), "buffers")
    kind = tensor_types().get(tensor.Type())
    if kind is None:
        yield f"{label} is of type number {tensor.Type()}, which LiteRT does not have"
        return
    shape = _numbers(tensor, "Shape").tolist()
    if any(size < 0 for size in shape):
        yield f"{label} has the impossible shape {shape}"
    declared = tensor.ShapeSignatureLength()
    if declared and declared != len(shape):
        yield f"{label} has {len(shape)} axes, but {declared} in its shape_signature"
    needed = math.prod(shape) * _BITS.get(kind, 0) / 8
    if needed > _LARGEST_TENSOR:
        yield f"{label} of shape {shape} is too large"
    have = buffers[tensor.Buffer()]
    if 0 < have < needed and tensor.Sparsity() is None:
        yield f"{label} of shape {shape} needs {math.ceil(needed)} bytes, but has {have}"
    yield from _quantization(tensor.Quantization(), shape, label, count)


def _quantization(q: Any, shape: list[int], label: str, count: int) -> Iterable[str]:
    if q is None:
        return
    scales, zero_points = q.ScaleLength(), q.ZeroPointLength()
    if zero_points not in {0, 1, scales}:
        yield f"{label} has {scales} scales, but {zero_points} zero points"
    if scales > 1 and not 0 <= q.QuantizedDimension() < len(shape):
        yield f"{label} is quantized along axis {q.QuantizedDimension()} of {len(shape)}"
    details = q.Details()
    if details is not None and q.DetailsType() == _blockwise():
        from ai_edge_litert import schema_py_generated as schema

        block = schema.BlockwiseQuantization()
        block.Init(details.Bytes, details.Pos)
        tensors = np.array([block.Scales(), block.ZeroPoints()])
        yield from _indices(f"the scales of {label}", tensors, count, optional=True)


@functools.cache
def _blockwise() -> int:
    from ai_edge_litert import schema_py_generated as schema

    return int(schema.QuantizationDetails.BlockwiseQuantization)


def _callees(operator: Any) -> list[int]:
    """Numbers of the subgraphs that a control-flow operator or composite runs."""
    found: list[int] = []
    for union in ("BuiltinOptions", "BuiltinOptions2"):
        known = _subgraph_fields(union).get(getattr(operator, f"{union}Type")())
        table = getattr(operator, union)() if known else None
        if known and table is not None:
            kind, fields = known
            options = kind()
            options.Init(table.Bytes, table.Pos)
            found += [getattr(options, field)() for field in fields]
    return found


@functools.cache
def _subgraph_fields(enumeration: str) -> dict[int, tuple[Any, tuple[str, ...]]]:
    """Options tables that hold subgraph numbers, by their number in a union."""
    from ai_edge_litert import schema_py_generated as schema

    found = {}
    for table, number in vars(getattr(schema, enumeration)).items():
        kind = getattr(schema, table, None)
        fields = tuple(f for f in dir(kind) if f.endswith("SubgraphIndex")) if kind else ()
        if fields:
            found[number] = (kind, fields)
    return found


def _call_cycles(calls: dict[int, set[int]]) -> Iterable[str]:
    """Subgraphs that run themselves, which would never end."""
    while calls:
        leaves = [i for i, callees in calls.items() if callees.isdisjoint(calls)]
        if not leaves:
            yield f"subgraph {min(calls)} runs itself"
            return
        for i in leaves:
            del calls[i]


def _signatures(model: Any) -> Iterable[str]:
    names = []
    for i in range(model.SignatureDefsLength()):
        record = model.SignatureDefs(i)
        names.append(record.SignatureKey())
        yield from _index(
            f"signature {i}", record.SubgraphIndex(), model.SubgraphsLength(), "subgraphs"
        )
        count = model.Subgraphs(record.SubgraphIndex()).TensorsLength()
        for side in ("Inputs", "Outputs"):
            maps = [getattr(record, side)(k) for k in range(getattr(record, f"{side}Length")())]
            if any(m.Name() is None for m in maps):
                yield f"signature {i} has an unnamed tensor"
            tensors = np.array([m.TensorIndex() for m in maps], np.int64)
            yield from _indices(f"{side.lower()} of signature {i}", tensors, count)
    if None in names or len(set(names)) != len(names):
        yield "its signatures have no names of their own"


def _numbers(table: Any, vector: str) -> Any:
    """A vector of integers; empty where absent."""
    found = getattr(table, f"{vector}AsNumpy")()
    return found if isinstance(found, np.ndarray) else _EMPTY


def _indices(label: str, found: Any, count: int, *, optional: bool = False) -> Iterable[str]:
    lowest = -1 if optional else 0
    wrong = [n for n in found.tolist() if not lowest <= n < count]
    if wrong:
        yield f"{label} refer to tensor {wrong[0]} of {count}"


def _index(label: str, found: int, count: int, what: str) -> Iterable[str]:
    if not 0 <= found < count:
        yield f"{label} refers to number {found} of {count} {what}"
