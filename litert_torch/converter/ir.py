"""The graph that lowerings build, passes rewrite and the flatbuffer writer saves.

A `Value` is a tensor: a graph input, a constant, or a result of one `Op`.
An `Op` is one LiteRT operator, named as in the LiteRT schema ("SOFTMAX").
A `Graph` is a list of ops in execution order: one signature, or the body of a control-flow op.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.converter import constants
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dims import Shape
from litert_torch.converter.dtypes import DType
from litert_torch.errors import InvalidGraphError


@dataclass(frozen=True)
class Source:
    """Where in the user's model an op came from.

    Attributes:
        trace: Python stack trace text of the call, innermost frame last.
        module: Path of the module that made the call, as "layers.3.attn".
        aten: The ATen op that was lowered.
    """

    trace: str = ""
    module: str = ""
    aten: str = ""

    @property
    def line(self) -> str:
        """The innermost frame outside torch, as 'file:line'; empty when unknown."""
        frames = re.findall(r'File "([^"<]+)", line (\d+)', self.trace)  # "<..." is generated code
        own = [f for f in frames if "/torch/" not in f[0].replace("\\", "/")] or frames
        return ":".join(own[-1]) if own else ""

    def __str__(self) -> str:
        where = self.line or self.aten or "the model"
        return f"{where} in {self.module}" if self.module else where


@dataclass(frozen=True)
class TensorType:
    """Shape and element type of a tensor."""

    shape: Shape
    dtype: DType

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Quantization:
    """Affine quantization: real = scale * (integer - zero_point).

    Attributes:
        scales: float32, one per slice along `axis`, or one in all; for blocks, see `block_size`.
        zero_points: int64, as many as scales.
        axis: The quantized dimension of a per-channel tensor.
        block_size: Elements of the last axis that share a scale; None when not blockwise.
    """

    scales: Array
    zero_points: Array
    axis: int = 0
    block_size: int | None = None

    @property
    def key(self) -> Hashable:
        """Equal for equal parameters."""
        scales = np.asarray(self.scales, np.float32).tobytes()
        zero_points = np.asarray(self.zero_points, np.int64).tobytes()
        return scales, zero_points, self.axis, self.block_size

    @property
    def is_per_tensor(self) -> bool:
        """One scale for all elements."""
        return bool(np.size(self.scales) == 1) and self.block_size is None


@dataclass(eq=False)
class Value:
    """A tensor in the graph; `producer` is None for inputs and constants."""

    type: TensorType
    producer: "Op | None" = None
    const: Constant | None = None
    name: str = ""
    quantization: Quantization | None = None
    is_variable: bool = False  # keeps what ops write into it from call to call, as an LSTM's state

    @property
    def shape(self) -> Shape:
        """The shape; dynamic sizes are `Dim`s."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.type.shape)

    def read(self) -> Array:
        """The contents of a constant."""
        if self.const is None:
            raise InvalidGraphError("only a constant can be read at conversion time")
        return self.const.read()


@dataclass(eq=False)
class Op:
    """One LiteRT operator.

    Attributes:
        kind: Name in the schema's BuiltinOperator, or "CUSTOM" with attrs["custom_code"].
        inputs: Operands; None where an optional one is absent.
        outputs: Results.
        attrs: Fields of the builtin options table, in the schema's Python spelling; a `Graph` is a
            subgraph.
        source: Where it came from.
        intermediates: Tensors whose types a kernel wants to know, as an integer LSTM's.
    """

    kind: str
    inputs: list[Value | None]
    outputs: list[Value]
    attrs: dict[str, Any]
    source: Source = Source()
    intermediates: list[Value] = field(default_factory=list)

    @property
    def output(self) -> Value:
        """The first result."""
        return self.outputs[0]


@dataclass(eq=False)
class Graph:
    """One signature of a model, or a subgraph of a control-flow op or composite."""

    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    name: str = ""
    input_names: list[str] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)
    source: Source = Source()
    least_sizes: dict[Any, int] = field(default_factory=dict)  # of the symbols in dynamic sizes
    listed: tuple[list[str], list[str]] | None = None  # the names in another order, for callers

    def emit_many(
        self, kind: str, inputs: Sequence[Value | None], types: Sequence[TensorType], **attrs: Any
    ) -> list[Value]:
        """Append an op with any number of results."""
        op = Op(kind, list(inputs), [Value(t) for t in types], attrs, self.source)
        moved = op.inputs[0].quantization if kind in _MOVERS and op.inputs[0] else None
        for v in op.outputs:
            v.producer = op
            v.quantization = moved if moved is not None and moved.is_per_tensor else None
        self.ops.append(op)
        return op.outputs

    def emit(
        self,
        kind: str,
        inputs: Sequence[Value | None],
        type: TensorType,  # noqa: A002
        **attrs: Any,
    ) -> Value:
        """Append an op with one result."""
        return self.emit_many(kind, inputs, [type], **attrs)[0]

    def users(self) -> dict[Value, list[Op]]:
        """Which ops read each value, as of now."""
        found: dict[Value, list[Op]] = defaultdict(list)
        for op in self.ops:
            for v in dict.fromkeys(op.inputs):
                if v is not None:
                    found[v].append(op)
        return found

    def replace_values(self, new: dict[Value, Value]) -> None:
        """Make every reader of a key read its value instead."""
        if not new:
            return

        def final(v: Value) -> Value:
            while v in new:
                v = new[v]
            return v

        for op in self.ops:
            op.inputs = [None if v is None else final(v) for v in op.inputs]
        self.outputs = [final(v) for v in self.outputs]

    def remove_dead_ops(self) -> None:
        """Drop ops whose results nobody reads; ops that write state stay."""
        live = set(self.outputs)
        kept = []
        for op in reversed(self.ops):
            if op.kind in _EFFECTS or not live.isdisjoint(op.outputs):
                live.update(v for v in op.inputs if v is not None)
                kept.append(op)
        self.ops = kept[::-1]

    def subgraphs(self) -> Iterator["Graph"]:
        """Graphs that ops of this one hold as attributes, once each, before their own subgraphs."""
        seen: set[Graph] = set()
        pending = [self]
        while pending:
            held = [v for op in pending.pop().ops for v in op.attrs.values()]
            for value in held:
                if isinstance(value, Graph) and value not in seen:
                    seen.add(value)
                    pending.append(value)
                    yield value

    def verify(self) -> None:
        """Raise InvalidGraphError unless every value is defined before it is read."""
        known = set(self.inputs)
        for op in self.ops:
            for v in op.inputs:
                if v is not None and v not in known and v.const is None and not v.is_variable:
                    raise InvalidGraphError(f"{op.kind} ({op.source}) reads a value nobody made")
            if any(v.producer is not op for v in op.outputs):
                raise InvalidGraphError(f"{op.kind} ({op.source}) does not own its results")
            known.update(op.outputs)
        if not all(v in known or v.const is not None for v in self.outputs):
            raise InvalidGraphError(f"an output of graph '{self.name}' is never produced")

    def __str__(self) -> str:
        results = [v for op in self.ops for v in op.outputs]
        names = {v: f"%{i}" for i, v in enumerate([*self.inputs, *results])}

        def show(v: Value | None) -> str:
            if v is None:
                return "none"
            if v in names:
                return names[v]
            return _show_constant(v)

        rows = [f"inputs {', '.join(f'{names[v]}:{v.type}' for v in self.inputs)}"]
        for op in self.ops:
            attrs = "".join(f" {k}={v}" for k, v in op.attrs.items() if not isinstance(v, Graph))
            left = ", ".join(f"{names[v]}:{v.type}" for v in op.outputs)
            rows.append(f"{left} = {op.kind}({', '.join(map(show, op.inputs))}){attrs}")
        return "\n".join([*rows, f"return {', '.join(map(show, self.outputs))}"])


_EFFECTS = frozenset({"ASSIGN_VARIABLE", "CALL_ONCE"})
_MOVERS = frozenset({"RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "GATHER", "TILE"})
"""Ops whose result holds elements of their first operand, quantized as they were."""


def _show_constant(v: Value) -> str:
    if v.const is None:
        return "<undefined>"
    if v.const.size <= 8:
        return str(v.const.read().tolist()).replace(" ", "")
    return f"const:{v.type}"


def const(array: npt.ArrayLike | Constant, dtype: DType | str | None = None) -> Value:
    """A constant tensor."""
    data = array if isinstance(array, Constant) else constants.from_array(array, dtype)
    return Value(TensorType(data.shape, data.dtype), const=data)


def retyped(v: Value, **changes: Any) -> TensorType:
    """The type of `v` with other `shape` or `dtype`."""
    return replace(v.type, **changes)
