"""A .tflite file as the schema's tables, checked before anyone reads it. Never imports torch."""

from __future__ import annotations

import functools
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidModelFileError
from litert_torch.runtime_bindings import consistency, structure

UNNAMED_SIGNATURE = "serving_default"  # what a file without signatures is called by


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a file.

    Attributes:
        name: In a signature, the name there; else the tensor's own.
        index: Its number in the subgraph.
        shape: Sizes; -1 where it may differ from call to call.
        dtype: Element type as "float32".
        buffer: Number of the buffer that holds its value; 0 where it is no constant.
        stored_shape: Sizes that it has until it is resized.
    """

    name: str
    index: int
    shape: tuple[int, ...]
    dtype: str
    buffer: int
    stored_shape: tuple[int, ...]

    def __str__(self) -> str:
        sizes = ",".join("?" if s < 0 else str(s) for s in self.shape)
        return f"{self.name} {self.dtype}[{sizes}]"


@dataclass(frozen=True)
class SignatureSpec:
    """An entry point of a file, its inputs and outputs in the file's order."""

    name: str
    subgraph: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


class ModelFile:
    """A whole, well-formed .tflite file; weights are read from it only when asked for.

    Attributes:
        name: What to call it in messages.
        data: The bytes, mapped or in memory.
        model: `schema_py_generated.Model` over them.
    """

    def __init__(self, data: Any, name: str = "the model") -> None:
        from ai_edge_litert import schema_py_generated as schema

        structure.check(data, name)
        self.name = name
        self.data = data
        self.model = schema.Model.GetRootAs(data, 0)
        consistency.check(self.model, len(data), name)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ModelFile:
        """Map and check the file at `path`.

        Raises:
            InvalidModelFileError: there is no such file, or it is empty, foreign, truncated or
                damaged.
        """
        try:
            with open(path, "rb") as stream:
                if os.fstat(stream.fileno()).st_size == 0:
                    raise InvalidModelFileError(f"{path} is empty")
                data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            if isinstance(error, InvalidModelFileError):
                raise
            reason = getattr(error, "strerror", None) or error
            raise InvalidModelFileError(f"cannot read {path}: {reason}") from error
        return cls(data, str(path))

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return len(self.data)

    @property
    def description(self) -> str:
        """Who wrote the file."""
        return text(self.model.Description())

    @functools.cached_property
    def signatures(self) -> dict[str, SignatureSpec]:
        """Entry points by name; a file without any has its first subgraph as UNNAMED_SIGNATURE."""
        found = [self._signature(self.model.SignatureDefs(i)) for i in self._range("SignatureDefs")]
        return {s.name: s for s in found or [self._main_subgraph()]}

    @property
    def has_signatures(self) -> bool:
        """Whether the file names its entry points."""
        return int(self.model.SignatureDefsLength()) > 0

    def tensors(self, subgraph: int) -> list[TensorSpec]:
        """All tensors of a subgraph, in the file's order."""
        graph = self.model.Subgraphs(subgraph)
        return [_tensor(graph, i, None) for i in range(graph.TensorsLength())]

    def operators(self, subgraph: int) -> Iterator[tuple[str, Any]]:
        """Name and record of each operator of a subgraph, in execution order."""
        names = [operator_name(self.model.OperatorCodes(i)) for i in self._range("OperatorCodes")]
        graph = self.model.Subgraphs(subgraph)
        for i in range(graph.OperatorsLength()):
            operator = graph.Operators(i)
            yield names[operator.OpcodeIndex()], operator

    def buffer_nbytes(self, index: int) -> int:
        """Size of a buffer, wherever in the file it lies."""
        buffer = self.model.Buffers(index)
        return int(buffer.Size() if buffer.Offset() > 1 else buffer.DataLength())

    def buffer(self, index: int) -> npt.NDArray[np.uint8]:
        """The bytes of a buffer, as a view of the file."""
        buffer = self.model.Buffers(index)
        if buffer.Offset() > 1:
            return np.frombuffer(self.data, np.uint8, buffer.Size(), buffer.Offset())
        return buffer.DataAsNumpy() if buffer.DataLength() else np.empty(0, np.uint8)

    def external_buffer(self, number: int) -> npt.NDArray[np.uint8]:
        """The bytes of a buffer that lies in another file, in the folder of this one.

        Raises:
            InvalidModelFileError: that file is not there, or is shorter than it should be.
        """
        model = self.model
        found = [model.ExternalBuffers(i) for i in range(model.ExternalBuffersLength())]
        record = next((b for b in found if b.Id() == number), None)
        if record is None or record.Group() >= model.ExternalBufferGroupsLength():
            raise InvalidModelFileError(f"{self.name} has no external buffer {number}")
        folder = os.path.dirname(os.path.realpath(self.name))
        name = text(model.ExternalBufferGroups(record.Group()).Name())
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.commonpath([folder, path]) != folder:
            raise InvalidModelFileError(f"{self.name} refers to {name}, outside its folder")
        try:
            data = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise InvalidModelFileError(
                f"{self.name} has weights in {name}, which cannot be read: {error}"
            ) from error
        end = record.Offset() + record.Length()
        if end > data.size:
            raise InvalidModelFileError(f"{name} has {data.size} bytes; {self.name} needs {end}")
        return np.asarray(data[record.Offset() : end])

    def _range(self, vector: str) -> range:
        return range(getattr(self.model, f"{vector}Length")())

    def _signature(self, record: Any) -> SignatureSpec:
        graph = self.model.Subgraphs(record.SubgraphIndex())
        inputs = [record.Inputs(i) for i in range(record.InputsLength())]
        outputs = [record.Outputs(i) for i in range(record.OutputsLength())]
        return SignatureSpec(
            text(record.SignatureKey()),
            record.SubgraphIndex(),
            tuple(_tensor(graph, m.TensorIndex(), text(m.Name())) for m in inputs),
            tuple(_tensor(graph, m.TensorIndex(), text(m.Name())) for m in outputs),
        )

    def _main_subgraph(self) -> SignatureSpec:
        graph = self.model.Subgraphs(0)
        inputs = [_tensor(graph, graph.Inputs(i), None) for i in range(graph.InputsLength())]
        outputs = [_tensor(graph, graph.Outputs(i), None) for i in range(graph.OutputsLength())]
        return SignatureSpec(UNNAMED_SIGNATURE, 0, tuple(inputs), tuple(outputs))


def text(raw: bytes | None) -> str:
    """A string of the file; damaged bytes are shown as U+FFFD."""
    return (raw or b"").decode("utf-8", "replace")


def operator_name(code: Any) -> str:
    """The schema's name of an operator code; for a custom one, the custom name."""
    number = consistency.builtin_code(code)
    name = consistency.builtin_operators()[number]
    return f"CUSTOM {text(code.CustomCode())}" if name == "CUSTOM" else name


def _tensor(graph: Any, index: int, name: str | None) -> TensorSpec:
    tensor = graph.Tensors(index)
    stored = tuple(tensor.Shape(i) for i in range(tensor.ShapeLength()))
    varying = tuple(tensor.ShapeSignature(i) for i in range(tensor.ShapeSignatureLength()))
    return TensorSpec(
        text(tensor.Name()) if name is None else name,
        index,
        varying or stored,
        consistency.tensor_types()[tensor.Type()].lower(),
        tensor.Buffer(),
        stored,
    )
