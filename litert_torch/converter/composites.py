"""Composites: parts of a model that are one op for a delegate that knows its name.

before: ... mark(x, is_input) ... ops ... mark(y, not is_input) ...
after:  y = STABLEHLO_COMPOSITE(x), whose decomposition is a subgraph of the ops
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from flatbuffers import flexbuffers

from litert_torch.converter.ir import Graph, Op, Value
from litert_torch.errors import UnsupportedCaseError

MARK = "litert_torch.mark"
"""Kind of the ops that stand at the border of a composite until `form` runs."""

_library: Any = torch.library.Library("litert_torch", "DEF")  # type: ignore[no-untyped-call]
_library.define(
    "mark_tensor(Tensor x, str name, int position, str id, bool is_input, str attributes) "
    "-> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),  # neither folded nor shared: marks must stay
)


def _same(
    x: torch.Tensor,
    name: str,
    position: int,
    id: str,  # noqa: A002
    is_input: bool,
    attributes: str,
) -> torch.Tensor:
    return x.clone()


_library.impl("mark_tensor", _same, "CompositeExplicitAutograd")
_library.impl("mark_tensor", _same, "Meta")

mark_tensor = torch.ops.litert_torch.mark_tensor.default


@dataclass(eq=False)
class _Composite:
    """The marks that share an id."""

    inputs: list[Op] = field(default_factory=list)
    outputs: list[Op] = field(default_factory=list)


def form(graph: Graph) -> None:
    """Make composites of what is marked in `graph`; drop the marks."""
    while True:
        found: dict[str, _Composite] = defaultdict(_Composite)
        for op in graph.ops:
            if op.kind == MARK:
                composite = found[op.attrs["id"]]
                (composite.inputs if op.attrs["is_input"] else composite.outputs).append(op)
        if not found:
            return
        _form_one(graph, _first_to_end(graph, list(found.values())))
        graph.remove_dead_ops()


def _first_to_end(graph: Graph, composites: list[_Composite]) -> _Composite:
    """The composite whose last mark comes first: none of the others lies inside it."""
    order = {op: i for i, op in enumerate(graph.ops)}
    ends = [max(order[op] for op in c.outputs or c.inputs) for c in composites]
    return composites[ends.index(min(ends))]


def _form_one(graph: Graph, composite: _Composite) -> None:
    inputs = sorted(composite.inputs, key=_position)
    outputs = sorted(composite.outputs, key=_position)
    replaced = {op.output: _operand(op) for op in inputs}
    if outputs and inputs:
        made = _composite_op(graph, inputs, outputs)
        replaced.update(zip((op.output for op in outputs), made.outputs, strict=True))
        last = max(graph.ops.index(op) for op in inputs)
        graph.ops.insert(last + 1, made)
    else:  # one side is never used, or was not marked
        replaced.update({op.output: _operand(op) for op in outputs})
    marks = {*inputs, *outputs}
    graph.ops = [op for op in graph.ops if op not in marks]
    graph.replace_values(replaced)


def _position(mark: Op) -> int:
    return int(mark.attrs["position"])


def _composite_op(graph: Graph, inputs: Sequence[Op], outputs: Sequence[Op]) -> Op:
    name = outputs[0].attrs["name"]
    op = Op(
        "STABLEHLO_COMPOSITE",
        [_operand(mark) for mark in inputs],
        [Value(mark.output.type) for mark in outputs],
        {
            "name": name,
            "decompositionSubgraphIndex": _decomposition(graph, name, inputs, outputs),
            "compositeAttributes": encoded(json.loads(outputs[0].attrs["attributes"])),
            "compositeAttributesFormat": 0,
            "version": 1,
        },
        outputs[0].source,
    )
    for v in op.outputs:
        v.producer = op
    return op


def _decomposition(graph: Graph, name: str, inputs: Sequence[Op], outputs: Sequence[Op]) -> Graph:
    body = Graph(name=name)
    copies: dict[Value, Value] = {}
    for mark in inputs:
        copies[mark.output] = Value(mark.output.type)
        body.inputs.append(copies[mark.output])
    inside = _between(name, {op.output for op in inputs}, [_operand(op) for op in outputs])
    for op in graph.ops:
        if op in inside:
            body.source = op.source
            operands = [None if v is None else copies.get(v, v) for v in op.inputs]
            results = body.emit_many(op.kind, operands, [v.type for v in op.outputs], **op.attrs)
            for old, new in zip(op.outputs, results, strict=True):
                new.quantization = old.quantization
                copies[old] = new
    body.outputs = [copies.get(_operand(op), _operand(op)) for op in outputs]
    return body


def _between(name: str, starts: set[Value], ends: Sequence[Value]) -> set[Op]:
    """The ops that compute `ends` from `starts`."""
    found: set[Op] = set()
    left = [v for v in ends if v not in starts]
    while left:
        v = left.pop()
        if v.const is not None:
            continue
        if v.producer is None:
            raise UnsupportedCaseError(
                f"composite {name} reads a tensor that was not given to mark_inputs"
            )
        if v.producer not in found:
            found.add(v.producer)
            left += [i for i in v.producer.inputs if i is not None and i not in starts]
    return found


def _operand(mark: Op) -> Value:
    x = mark.inputs[0]
    assert x is not None
    return x


def encoded(attributes: dict[str, Any]) -> bytes:
    """The attributes as a flexbuffer map. Floats take 4 bytes: delegates read no others."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in attributes.items():
            builder.Key(key)
            if isinstance(value, list):
                with builder.Vector():
                    for item in value:
                        _add(builder, item)
            else:
                _add(builder, value)
    return bytes(builder.Finish())


def _add(builder: Any, value: bool | int | float | str) -> None:
    if isinstance(value, bool):
        builder.Bool(value)
    elif isinstance(value, int):
        builder.Int(value)
    elif isinstance(value, float):
        builder.Float(float(np.float32(value)))
    else:
        builder.String(value)
