"""Operators that run other graphs or keep state, and custom operators."""

from collections.abc import Sequence
from typing import Any

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value


def while_(g: Graph, carried: Sequence[Value], cond: Graph, body: Graph) -> list[Value]:
    """Run `body` on the carried values for as long as `cond` of them holds."""
    types = [v.type for v in carried]
    return g.emit_many("WHILE", carried, types, condSubgraphIndex=cond, bodySubgraphIndex=body)


def if_(
    g: Graph, condition: Value, then: Graph, otherwise: Graph, operands: Sequence[Value]
) -> list[Value]:
    """Run one of two graphs, which take the same operands and give results of the same types."""
    types = [v.type for v in then.outputs]
    return g.emit_many(
        "IF",
        [condition, *operands],
        types,
        thenSubgraphIndex=then,
        elseSubgraphIndex=otherwise,
    )


def custom(
    g: Graph, code: str, inputs: Sequence[Value], types: Sequence[TensorType], options: bytes = b""
) -> list[Value]:
    """A custom operator that the application registers under `code`."""
    return g.emit_many("CUSTOM", inputs, types, custom_code=code, custom_options=options)


def stablehlo_composite(
    g: Graph,
    name: str,
    inputs: Sequence[Value],
    body: Graph,
    attributes: bytes,
    version: int = 1,
) -> list[Value]:
    """A named group of ops that an accelerator may run as one; `body` is its meaning."""
    types = [v.type for v in body.outputs]
    fields: dict[str, Any] = {
        "name": name,
        "decompositionSubgraphIndex": body,
        "compositeAttributes": attributes,
        "version": version,
    }
    return g.emit_many("STABLEHLO_COMPOSITE", inputs, types, **fields)


def call_once(g: Graph, init: Graph) -> None:
    """Run `init`, which takes and gives nothing, unless the interpreter has done so before."""
    g.emit_many("CALL_ONCE", [], [], initSubgraphIndex=init)


def var_handle(g: Graph, name: str) -> Value:
    """A reference to the variable of that name."""
    resource = TensorType((), DType.RESOURCE)
    return g.emit("VAR_HANDLE", [], resource, container="", sharedName=name)


def read_variable(g: Graph, handle: Value, type: TensorType) -> Value:
    """What the variable holds, of `type`."""
    return g.emit("READ_VARIABLE", [handle], type)


def assign_variable(g: Graph, handle: Value, value: Value) -> None:
    """Keep `value` in the variable, for later ops and later calls."""
    g.emit_many("ASSIGN_VARIABLE", [handle, value], [])
