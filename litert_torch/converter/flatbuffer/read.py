"""Reader: the graphs of a .tflite file from any producer, as lowerings would have built them.

Operators, their options, names, types and quantization are taken over as they are; weights stay in
the file until somebody reads them. What the graph has no place for is refused by name.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dims import Dim, Shape
from litert_torch.converter.flatbuffer import options
from litert_torch.converter.flatbuffer.write import unpack_bits
from litert_torch.converter.ir import Graph, Op, Quantization, Source, TensorType, Value
from litert_torch.errors import InvalidGraphError, InvalidModelFileError, UnsupportedCaseError

UNNAMED_SIGNATURE = "serving_default"
"""What the main graph of a file without signatures is called."""

_FILES = itertools.count()


class File(Protocol):
    """A whole and consistent file, as `runtime_bindings.model_file.ModelFile` checks it."""

    name: str
    model: Any

    def buffer(self, index: int) -> Array:
        """The bytes of a buffer."""

    def external_buffer(self, number: int) -> Array:
        """The bytes of a buffer that lies in a file beside this one."""


def graphs_of(file: File) -> list[Graph]:
    """A graph for each signature of `file`, in its order.

    Raises:
        InvalidModelFileError: an operator reads what is not computed before it.
        UnsupportedCaseError: the file has a tensor of a kind that graphs do not hold.
    """
    try:
        return _Reader(file).signatures()
    except RecursionError:
        raise InvalidModelFileError(f"{file.name} has subgraphs in subgraphs without end") from None


def metadata_of(file: File) -> dict[str, Array]:
    """The file's metadata by name, as bytes."""
    records = [file.model.Metadata(i) for i in range(file.model.MetadataLength())]
    return {_text(r.Name()): np.array(file.buffer(r.Buffer())) for r in records}


class _Reader:
    """The subgraphs of a file, each read once."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.number = next(_FILES)
        self._bodies: dict[int, Graph] = {}
        model = file.model
        self.codes = [_code(model.OperatorCodes(i)) for i in range(model.OperatorCodesLength())]

    def signatures(self) -> list[Graph]:
        model = self.file.model
        records = [model.SignatureDefs(i) for i in range(model.SignatureDefsLength())]
        if not records:
            graph = self.body(0)
            graph.name = UNNAMED_SIGNATURE
            graph.input_names = _distinct(graph.inputs, "args_")
            graph.output_names = _distinct(graph.outputs, "output_")
            return [graph]
        taken: set[int] = set()
        found = []
        for record in records:
            i = record.SubgraphIndex()
            graph = self.subgraph(i) if i in taken else self.body(i)
            taken.add(i)
            _name(graph, schema.SignatureDefT.InitFromObj(record), model.Subgraphs(i))
            found.append(graph)
        return found

    def body(self, i: int) -> Graph:
        """The subgraph with number `i`; the same object whoever asks."""
        if i not in self._bodies:
            self._bodies[i] = self.subgraph(i)
        return self._bodies[i]

    def subgraph(self, i: int) -> Graph:
        """The subgraph with number `i`, read anew."""
        record = schema.SubGraphT.InitFromObj(self.file.model.Subgraphs(i))
        graph = Graph(name=_text(record.name))
        tensors = _Tensors(self.file, self.number, record.tensors or (), graph.least_sizes)
        values = tensors.values
        graph.inputs = [values[k] for k in _numbers(record.inputs)]
        graph.outputs = [values[k] for k in _numbers(record.outputs)]
        computed = set(graph.inputs)
        for n, operator in enumerate(record.operators or ()):
            op = self._op(operator, values)
            if not computed.isdisjoint(op.outputs) or any(v.const for v in op.outputs):
                raise self._damage(i, f"operator {n} ({op.kind}) writes what is there already")
            computed.update(op.outputs)
            graph.ops.append(op)
        try:
            graph.verify()
        except InvalidGraphError as error:
            raise self._damage(i, str(error)) from error
        return graph

    def _damage(self, i: int, why: str) -> InvalidModelFileError:
        return InvalidModelFileError(f"{self.file.name} is damaged: in subgraph {i}, {why}")

    def _op(self, record: Any, values: Sequence[Value]) -> Op:
        kind, custom_code, version = self.codes[record.opcodeIndex]
        inputs = [None if k < 0 else values[k] for k in _numbers(record.inputs)]
        outputs = [values[k] for k in _numbers(record.outputs) if k >= 0]
        attrs = self._attributes(kind, record)
        if kind == "CUSTOM":
            attrs = {"custom_code": custom_code, "custom_options": self._custom_options(record)}
            attrs |= {"version": version} if version != 1 else {}
        op = Op(kind, inputs, outputs, attrs, Source(module=_module(outputs)))
        op.intermediates = [values[k] for k in _numbers(record.intermediates) if k >= 0]
        for v in outputs:
            v.producer = op
        return op

    def _attributes(self, kind: str, record: Any) -> dict[str, Any]:
        """The options that the kernel would read; the runtime ignores those of another op."""
        second = record.builtinOptions2
        given = second if second is not None else record.builtinOptions
        if given is None or type(given).__name__ != f"{options.table_name(kind)}T":
            return {}
        return {key: self._attribute(kind, key, value) for key, value in vars(given).items()}

    def _attribute(self, kind: str, key: str, value: Any) -> Any:
        if key in _CALLED and value is not None and len(value):
            raise UnsupportedCaseError(f"{self.file.name} has {kind} with {key}")
        if key.endswith("SubgraphIndex"):
            return self.body(value)
        if isinstance(value, bytes):
            return _text(value)
        if isinstance(value, np.ndarray) and value.dtype == np.uint8:
            return value.tobytes()
        return value

    def _custom_options(self, record: Any) -> bytes:
        start, size = record.largeCustomOptionsOffset, record.largeCustomOptionsSize
        if start > 1:
            return bytes(self.file.model._tab.Bytes[start : start + size])
        return b"" if record.customOptions is None else np.asarray(record.customOptions).tobytes()


_CALLED = frozenset({"branchSubgraphIndices", "calledComputations"})
"""Lists of subgraphs, in operators of StableHLO that LiteRT does not run."""


class _Tensors:
    """The tensors of one subgraph as values."""

    def __init__(
        self, file: File, number: int, records: Sequence[Any], least_sizes: dict[Any, int]
    ) -> None:
        self.file = file
        self.number = number
        self.least_sizes = least_sizes
        self.values = [self._value(record, i) for i, record in enumerate(records)]
        for record, value in zip(records, self.values, strict=True):
            value.quantization = self._quantization(record.quantization, value)

    def _value(self, record: Any, i: int) -> Value:
        name = _text(record.name)
        dtype = options.dtype_of(record.type)
        if dtype is None:
            kind = _tensor_type_names().get(record.type, record.type)
            raise UnsupportedCaseError(
                f"{self.file.name}: tensor {name!r} is of type {kind}, which is not supported"
            )
        if record.sparsity is not None:
            raise UnsupportedCaseError(f"{self.file.name}: tensor {name!r} is stored sparsely")
        kind = TensorType(self._shape(record, i), dtype)
        value = Value(kind, name=name, is_variable=bool(record.isVariable))
        value.const = self._constant(record, kind)
        return value

    def _shape(self, record: Any, i: int) -> Shape:
        stored, declared = _numbers(record.shape), _numbers(record.shapeSignature)
        sizes: list[int | Dim] = []
        for axis, size in enumerate(stored):
            if declared and declared[axis] < 0:
                import sympy

                symbol = sympy.Symbol(f"t{i}_{axis}", integer=True, positive=True)
                self.least_sizes[symbol] = size
                sizes.append(Dim(symbol))
            else:
                sizes.append(size)
        return tuple(sizes)

    def _constant(self, record: Any, kind: TensorType) -> Constant | None:
        shape = tuple(_numbers(record.shape))
        is_outside = bool(record.externalBuffer)
        number = int(record.externalBuffer if is_outside else record.buffer)

        def read() -> Array:
            file = self.file
            return file.external_buffer(number) if is_outside else file.buffer(number)

        if read().size == 0:
            return None
        dtype, size = kind.dtype, int(np.prod(shape, dtype=np.int64))
        key = ("file", self.number, is_outside, number, dtype, shape)
        if dtype.bits < 8:
            signed = not dtype.value.startswith("u")

            def unpacked() -> Array:
                bits = read()[: dtype.bytes_of(size)]
                return unpack_bits(bits, dtype.bits, size, signed=signed)

            return Constant(shape, dtype, key, unpacked)

        def whole() -> Array:
            found: Array = read()[: dtype.bytes_of(size)].view(dtype.numpy)
            return found.reshape(shape)

        return Constant(shape, dtype, key, whole, (lambda a, b: whole()[a:b]) if shape else None)

    def _quantization(self, q: Any, value: Value) -> Quantization | None:
        if q is None:
            return None
        if q.details is not None:
            return self._blocks(q, value)
        if q.scale is None or len(q.scale) == 0:
            return None
        scales = np.array(q.scale, np.float32)
        zero_points = np.zeros(scales.size, np.int64)
        if q.zeroPoint is not None and len(q.zeroPoint):
            zero_points[:] = q.zeroPoint
        return Quantization(scales, zero_points, q.quantizedDimension)

    def _blocks(self, q: Any, value: Value) -> Quantization:
        if q.detailsType != schema.QuantizationDetails.BlockwiseQuantization:
            raise UnsupportedCaseError(
                f"{self.file.name}: tensor {value.name!r} is quantized in a way of its own"
            )
        scales = self.values[q.details.scales]
        zeros = self.values[q.details.zeroPoints] if q.details.zeroPoints >= 0 else None
        if scales.const is None or (zeros is not None and (not zeros.const or zeros.read().any())):
            raise UnsupportedCaseError(
                f"{self.file.name}: tensor {value.name!r} has blocks without scales, or with zeros"
            )
        found = scales.read().astype(np.float32)
        zero_points = np.zeros(found.size, np.int64)
        return Quantization(found, zero_points, q.quantizedDimension, q.details.blockSize)


def _name(graph: Graph, record: Any, subgraph: Any) -> None:
    """Give the signature's names to the inputs and outputs of `graph`."""
    graph.name = _text(record.signatureKey)
    inputs = {m.tensorIndex: _text(m.name) for m in record.inputs or ()}
    numbers = [subgraph.Inputs(i) for i in range(subgraph.InputsLength())]
    own = _distinct(graph.inputs, "args_")
    graph.input_names = [inputs.get(n, name) for n, name in zip(numbers, own, strict=True)]
    given = [(m.tensorIndex, _text(m.name)) for m in record.outputs or ()]
    numbers = [subgraph.Outputs(i) for i in range(subgraph.OutputsLength())]
    left = list(given)
    names = []
    for n, name in zip(numbers, _distinct(graph.outputs, "output_"), strict=True):
        match = next((pair for pair in left if pair[0] == n), None)
        if match is not None:
            left.remove(match)
        names.append(match[1] if match is not None else name)
    if left:
        raise UnsupportedCaseError(
            f"signature {graph.name!r} gives {left[0][1]!r}, which its subgraph does not give"
        )
    graph.output_names = names
    listed = ([_text(m.name) for m in record.inputs or ()], [name for _, name in given])
    whole = (_with_rest(listed[0], graph.input_names), _with_rest(listed[1], names))
    graph.listed = whole if whole != (graph.input_names, names) else None


def _with_rest(first: list[str], names: list[str]) -> list[str]:
    return [*first, *(n for n in names if n not in first)]


def _distinct(values: Sequence[Value], prefix: str) -> list[str]:
    """The values' names; numbered ones where they have none, or two have one."""
    counts = Counter(v.name for v in values)
    return [
        v.name if v.name and counts[v.name] == 1 else f"{prefix}{i}" for i, v in enumerate(values)
    ]


def _code(record: Any) -> tuple[str, str, int]:
    number = max(int(record.BuiltinCode()), int(record.DeprecatedBuiltinCode()))
    return _operator_names()[number], _text(record.CustomCode()), int(record.Version())


def _operator_names() -> Mapping[int, str]:
    return {n: key for key, n in vars(schema.BuiltinOperator).items() if isinstance(n, int)}


def _tensor_type_names() -> Mapping[int, str]:
    return {n: key for key, n in vars(schema.TensorType).items() if isinstance(n, int)}


def _numbers(vector: Any) -> list[int]:
    return [] if vector is None or isinstance(vector, int) else [int(n) for n in vector]


def _text(raw: bytes | str | None) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw or ""


_TORCH_PART = re.compile(r"(?:\w+\.)+[A-Za-z0-9]+_(\w+)")


def _module(results: Sequence[Value]) -> str:
    """The user's module, as producers write it into the names of results.

    "layers.0/fully_connected_7" is our own form; "pkg.Net/pkg.Linear_fc;" upstream's, with a class
    and a name a level; "model/conv/Relu" TensorFlow's.
    """
    parts = results[0].name.split(";")[0].split("/") if results else []
    levels = [_TORCH_PART.fullmatch(part) for part in parts[1:]]
    if levels and all(levels):
        return ".".join(m[1] for m in levels if m)
    whole = ".".join(parts[:-1])
    return "" if whole == "model" else whole
