"""Streaming writer: the metadata is packed once, then each weight goes to the file by itself.

A buffer's bytes lie behind the metadata, 64-byte aligned. Below 2 GB they are an ordinary
flatbuffer vector there, so that every reader of .tflite files finds them; above, the schema's
`offset` and `size` fields point at them. At most one tensor is in memory at a time.
"""

import os
import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from io import BytesIO
from typing import IO, Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from litert_torch.converter import dims
from litert_torch.converter.constants import Array, Constant, from_array
from litert_torch.converter.dtypes import DType
from litert_torch.converter.flatbuffer import options, versions
from litert_torch.converter.ir import Graph, Op, Quantization, Value, const
from litert_torch.errors import InvalidGraphError
from litert_torch.files import atomic_file

ALIGNMENT = 64
Metadata = Mapping[str, Array]

_CHUNK = 16 << 20  # bytes of a constant that are in memory at once, where it can be read in parts
_VECTOR_LIMIT = 2**31 - 2**20  # flatbuffers address 2 GiB; leave room for the metadata
_BUFFER_DATA, _BUFFER_OFFSET = 4, 6  # vtable slots of the Buffer table


def to_bytes(graphs: Sequence[Graph], metadata: Metadata | None = None) -> bytes:
    """The file with one signature a graph, in memory; `metadata` as `to_stream` takes it."""
    stream = BytesIO()
    to_stream(graphs, stream, metadata)
    return stream.getvalue()


def to_file(
    graphs: Sequence[Graph], path: str | os.PathLike[str], metadata: Metadata | None = None
) -> None:
    """Write the file at `path`, whole or not at all; `metadata` as `to_stream` takes it.

    Raises:
        OutputError: the path cannot be written or the disk is full.
    """
    with atomic_file(path) as stream:
        to_stream(graphs, stream, metadata)


def to_stream(graphs: Sequence[Graph], stream: IO[bytes], metadata: Metadata | None = None) -> None:
    """Write the file's bytes to a stream that stands at its begin: `tell()` is 0.

    Args:
        graphs: A signature each.
        stream: Where to.
        metadata: Bytes that the file keeps by name, for whoever knows them.
    """
    builder = _ModelBuilder(graphs, metadata or {})
    tables, places = builder.pack()
    stream.write(tables)
    for constant, place in zip(builder.constants, places, strict=True):
        gap = place - 4 - stream.tell()
        stream.write(b"\0" * gap)
        stream.write(struct.pack("<I", min(constant.nbytes, 2**32 - 1)))
        _stream(constant, stream)
    stream.write(b"\0" * (-stream.tell() % ALIGNMENT))


def _stream(constant: Constant, stream: IO[bytes]) -> None:
    written = 0
    for data in constant.chunks(_CHUNK):
        packed = pack_bits(data, constant.dtype.bits) if constant.dtype.bits < 8 else data
        stream.write(packed.reshape(-1).view(np.uint8).data)
        written += packed.nbytes
    if written != constant.nbytes:
        raise InvalidGraphError(f"a constant of {constant.nbytes} bytes read as {written}")


def unpack_bits(data: Array, bits: int, size: int, *, signed: bool) -> Array:
    """The inverse of `pack_bits`: `size` integers of 4 or 2 bits, as (u)int8."""
    lanes = np.arange(8 // bits, dtype=np.uint8) * bits
    flat = ((data.reshape(-1, 1) >> lanes) & ((1 << bits) - 1)).reshape(-1)[:size]
    if not signed:
        return flat
    top = np.int8(1 << (bits - 1))
    return (flat.astype(np.int8) ^ top) - top


def pack_bits(data: Array, bits: int) -> Array:
    """Integers of 4 or 2 bits packed into uint8, the first in the lowest bits."""
    per_byte = 8 // bits
    flat = data.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[: flat.size] = flat
    lanes = padded.reshape(-1, per_byte) << (np.arange(per_byte, dtype=np.uint8) * bits)
    return np.bitwise_or.reduce(lanes, axis=1).astype(np.uint8)


class _ModelBuilder:
    """The schema's object tree of some graphs, and the constants that it refers to."""

    def __init__(self, graphs: Sequence[Graph], metadata: Metadata) -> None:
        names = [g.name for g in graphs]
        if len(set(names)) != len(names):
            raise InvalidGraphError(f"two signatures have one name: {names}")
        self.constants: list[Constant] = []
        self._buffers: dict[Hashable, int] = {}
        self._codes: dict[tuple[str, str, int], int] = {}
        every = list(dict.fromkeys([*graphs, *(s for g in graphs for s in g.subgraphs())]))
        self._index: dict[Any, int] = {g: i for i, g in enumerate(every)}
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = "litert_torch"
        self.model.subgraphs = [self._subgraph(g) for g in every]
        self.model.signatureDefs = [self._signature(g, i) for i, g in enumerate(graphs)]
        self.model.metadata = [self._metadata(k, v) for k, v in metadata.items()] or None
        self.model.operatorCodes = [_operator_code(*code) for code in self._codes]
        self.model.buffers = [schema.BufferT() for _ in range(len(self.constants) + 1)]

    def pack(self) -> tuple[bytearray, list[int]]:
        """The metadata, and where in the file each constant's bytes go."""
        total = sum(c.nbytes + ALIGNMENT for c in self.constants)
        far = total > _VECTOR_LIMIT
        for buffer in self.model.buffers[1:]:
            if far:
                buffer.offset, buffer.size = 2, 2  # placeholders: fixed-size fields
            else:
                buffer.data = np.zeros(1, np.uint8)
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        metadata = bytearray(builder.Output())
        places, end = [], len(metadata)
        for constant in self.constants:
            start = -(-(end + 4) // ALIGNMENT) * ALIGNMENT
            places.append(start)
            end = start + constant.nbytes
        self._point_at(metadata, places, far)
        return metadata, places

    def _point_at(self, metadata: bytearray, places: list[int], far: bool) -> None:
        root = schema.Model.GetRootAs(metadata, 0)
        for i, (constant, place) in enumerate(zip(self.constants, places, strict=True)):
            table = root.Buffers(i + 1)._tab
            if far:
                at = table.Pos + table.Offset(_BUFFER_OFFSET)
                struct.pack_into("<Q", metadata, at, place)
                at = table.Pos + table.Offset(_BUFFER_OFFSET + 2)
                struct.pack_into("<Q", metadata, at, constant.nbytes)
            else:
                at = table.Pos + table.Offset(_BUFFER_DATA)
                struct.pack_into("<I", metadata, at, place - 4 - at)

    def _subgraph(self, graph: Graph) -> Any:
        record = schema.SubGraphT()
        record.name = graph.name
        record.tensors = []
        values: dict[Value, int] = {}

        def index(value: Value | None, name: str = "") -> int:
            if value is None:
                return -1
            if value not in values:
                values[value] = len(record.tensors)
                label = value.name or name
                tensor = self._tensor(value, label, graph.least_sizes)
                record.tensors.append(tensor)
                if value.quantization is not None and value.quantization.block_size is not None:
                    scales = index(_block_scales(value.quantization), f"{label}.scales")
                    tensor.quantization = _blocks(value.quantization, scales)
            return values[value]

        record.inputs = [index(v) for v in graph.inputs]
        record.operators = []
        for i, op in enumerate(graph.ops):
            record.operators.append(self._operator(op, index, i))
        record.outputs = [index(v, "constant") for v in graph.outputs]
        return record

    def _operator(self, op: Op, index: Callable[..., int], i: int) -> Any:
        record = options.operator(op, self._index)
        code = (op.kind, op.attrs.get("custom_code", ""), versions.lowest_version(op))
        record.opcodeIndex = self._codes.setdefault(code, len(self._codes))
        label = f"{op.source.module or 'model'}/{op.kind.lower()}_{i}"
        record.inputs = [index(v, f"{label}.operand{k}") for k, v in enumerate(op.inputs)]
        suffix = [""] if len(op.outputs) == 1 else [f".{k}" for k in range(len(op.outputs))]
        record.outputs = [index(v, label + s) for v, s in zip(op.outputs, suffix, strict=True)]
        record.intermediates = [index(v, f"{label}.intermediate") for v in op.intermediates] or None
        return record

    def _tensor(self, value: Value, name: str, least_sizes: Mapping[Any, int]) -> Any:
        tensor = schema.TensorT()
        tensor.name = name
        tensor.type = options.tensor_type(value.dtype)
        tensor.shape = [dims.smallest(s, least_sizes) for s in value.shape]
        if any(not isinstance(s, int) for s in value.shape):
            tensor.shapeSignature = [s if isinstance(s, int) else -1 for s in value.shape]
        tensor.hasRank = True
        tensor.isVariable = value.is_variable
        if value.const is not None:
            tensor.buffer = self._buffer(value.const)
        if value.quantization is not None and value.quantization.block_size is None:
            tensor.quantization = self._quantization(value.quantization)
        return tensor

    def _buffer(self, constant: Constant) -> int:
        if constant.nbytes == 0:
            return 0
        if constant.key not in self._buffers:
            self.constants.append(constant)
            self._buffers[constant.key] = len(self.constants)
        return self._buffers[constant.key]

    def _quantization(self, q: Quantization) -> Any:
        record = schema.QuantizationParametersT()
        record.scale = np.asarray(q.scales, np.float32).reshape(-1)
        record.zeroPoint = np.asarray(q.zero_points, np.int64).reshape(-1)
        record.quantizedDimension = q.axis
        return record

    def _signature(self, graph: Graph, i: int) -> Any:
        record = schema.SignatureDefT()
        record.signatureKey = graph.name
        record.subgraphIndex = i
        subgraph = self.model.subgraphs[i]
        record.inputs = _tensor_maps(graph.input_names, subgraph.inputs)
        record.outputs = _tensor_maps(graph.output_names, subgraph.outputs)
        if graph.listed is not None:
            for maps, order in zip((record.inputs, record.outputs), graph.listed, strict=True):
                maps.sort(key=lambda m, order=order: order.index(m.name))
        return record

    def _metadata(self, name: str, data: Array) -> Any:
        record = schema.MetadataT()
        record.name = name
        record.buffer = self._buffer(from_array(data, DType.UINT8))
        return record


def _block_scales(q: Quantization) -> Value:
    """The scales of blocks as a tensor: XNNPACK takes float16 only, [rows, blocks a row]."""
    return const(np.asarray(q.scales).astype(np.float16))


def _blocks(q: Quantization, scales: int) -> Any:
    """Parameters of a tensor with a scale a block, which are in the tensor numbered `scales`."""
    details = schema.BlockwiseQuantizationT()
    details.scales, details.zeroPoints, details.blockSize = scales, -1, q.block_size
    record = schema.QuantizationParametersT()
    record.detailsType = schema.QuantizationDetails.BlockwiseQuantization
    record.details, record.quantizedDimension = details, q.axis
    return record


def _tensor_maps(names: Sequence[str], tensors: Sequence[int]) -> list[Any]:
    maps = []
    for name, tensor in zip(names, tensors, strict=True):
        record = schema.TensorMapT()
        record.name, record.tensorIndex = name, tensor
        maps.append(record)
    return maps


def _operator_code(kind: str, custom_code: str, version: int) -> Any:
    record = schema.OperatorCodeT()
    record.builtinCode = options.builtin_code(kind)
    record.deprecatedBuiltinCode = min(record.builtinCode, 127)
    record.version = version
    record.customCode = custom_code or None
    return record


__all__ = ["ALIGNMENT", "atomic_file", "pack_bits", "to_bytes", "to_file"]
