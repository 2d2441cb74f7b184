"""Buffers that a module writes: LiteRT variables, which keep their values from call to call.

Every signature that touches such a buffer first runs CALL_ONCE on a graph that assigns its initial
value: the runtime runs that graph once in the life of an interpreter, whichever signature comes
first, since the signatures of a file share it.
"""

from collections.abc import Hashable

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import from_tensor
from litert_torch.converter.dtypes import DType
from litert_torch.converter.folding import Folded
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.torch_types import compute_dtype
from litert_torch.errors import UnsupportedCaseError

_STORED = 1 << 12  # bytes; a larger initial value of zeros is made by a FILL


class Variables:
    """The buffers written by any of the programs that become one file."""

    def __init__(self) -> None:
        self._written: set[Hashable] = set()
        self._names: dict[Hashable, str] = {}
        self._initializers: dict[str, Graph] = {}

    def declare(self, program: ExportedProgram) -> None:
        """Keep the buffers that a functional `program` writes as variables in every program."""
        for target in written_buffers(program):
            self._written.add(_key(program.state_dict.get(target, program.constants.get(target))))

    def holds(self, buffer: torch.Tensor) -> bool:
        """Whether some program writes `buffer`."""
        return bool(self._written) and _key(buffer) in self._written

    def read(self, g: Graph, target: str, buffer: torch.Tensor) -> tuple[Value, Value]:
        """The variable's handle, and what it holds when the signature starts.

        Args:
            g: A signature's graph.
            target: The buffer's path in the module.
            buffer: Its initial value.
        """
        if buffer.dtype.is_complex:
            raise UnsupportedCaseError(
                f"the module writes its complex buffer '{target}': keep the parts in two buffers"
            )
        name = self._name(target, buffer)
        dtype = compute_dtype(buffer.dtype)
        tfl.call_once(g, self._initializer(name, buffer, dtype))
        handle = tfl.var_handle(g, name)
        return handle, tfl.read_variable(g, handle, TensorType(tuple(buffer.shape), dtype))

    def _name(self, target: str, buffer: torch.Tensor) -> str:
        """The path, with a number where another module's buffer has the same."""
        key = _key(buffer)
        if key not in self._names:
            taken = sum(n.split("#")[0] == target for n in self._names.values())
            self._names[key] = f"{target}#{taken}" if taken else target
        return self._names[key]

    def _initializer(self, name: str, buffer: torch.Tensor, dtype: DType) -> Graph:
        if name not in self._initializers:
            graph = Graph(name=f"initialize {name}")
            handle = tfl.var_handle(graph, name)
            tfl.assign_variable(graph, handle, _initial_value(graph, buffer, dtype))
            self._initializers[name] = graph
        return self._initializers[name]


def _initial_value(g: Graph, buffer: torch.Tensor, dtype: DType) -> Value:
    if buffer.nbytes > _STORED and buffer.device.type != "meta" and not buffer.any():
        return tfl.fill(g, tuple(buffer.shape), const(0, dtype))
    return const(Folded.of_tensor(buffer.detach().clone()).constant(dtype))


def written_buffers(program: ExportedProgram) -> list[str]:
    """Paths of the buffers that a functional program writes, in the order of its outputs."""
    specs = program.graph_signature.output_specs
    return [str(s.target) for s in specs if s.kind == OutputKind.BUFFER_MUTATION]


def used_placeholders(program: ExportedProgram) -> set[str]:
    """Names of the buffer placeholders that a program reads or writes."""
    written = set(written_buffers(program))
    used = {n.name for n in program.graph.nodes if n.op == "placeholder" and n.users}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.BUFFER and spec.target in written:
            used.add(spec.arg.name)
    return used


def _key(buffer: torch.Tensor) -> Hashable:
    return from_tensor(buffer).key
