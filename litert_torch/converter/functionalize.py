"""In-place ops as functional ones, without retracing the program where that is safe.

`relu_(x)` is `relu(x)` with the name x bound to the result, as long as no other tensor that is
read later shares x's storage. Where one does (a view that is written, a buffer that is updated),
PyTorch's own functionalization runs: right always, but a retrace of every node.
"""

import functools
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

_MAY_RETURN_INPUT = frozenset(
    {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::type_as"}
)


class Identity:
    """Which node now holds the value of each tensor that in-place ops wrote."""

    def __init__(self) -> None:
        self._holder: dict[torch.fx.Node, torch.fx.Node] = {}

    def of(self, node: torch.fx.Node) -> torch.fx.Node:
        """The node whose value is that of `node` now."""
        while node in self._holder:
            node = self._holder[node]
        return node

    def assign(self, written: torch.fx.Node, target: Any) -> None:
        """`target` and every name of it are now what `written` computed."""
        self._holder[self.of(target)] = written


@functools.cache
def functional_form(op: Any) -> OpOverload[Any, Any] | None:
    """The op without the trailing underscore, for an op that writes its first argument only."""
    if not isinstance(op, OpOverload) or not op._schema.is_mutable:
        return None
    written = [i for i, a in enumerate(op._schema.arguments) if a.is_write]
    packet, overload = op._schema.name.split("::")[1], op._overloadname
    if written != [0] or not packet.endswith("_"):
        return None
    namespace = getattr(torch.ops, op.namespace)
    name = {"copy_": "copy", "zero_": "zero", "fill_": "fill"}.get(packet, packet[:-1])
    found = getattr(getattr(namespace, name, None), overload, None)
    return found if isinstance(found, OpOverload) else None


def functional(program: ExportedProgram) -> ExportedProgram:
    """`program` if `lower` may treat its in-place ops by name alone, else functionalized."""
    nodes = list(program.graph.nodes)
    if not any(_writes(n) for n in nodes) or _is_simple(program, nodes):
        return program
    return program.run_decompositions({})


def _writes(node: torch.fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def _is_simple(program: ExportedProgram, nodes: list[torch.fx.Node]) -> bool:
    storage, tensor = _classes(nodes)
    order = {n: i for i, n in enumerate(nodes)}
    members: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for n in nodes:
        members.setdefault(storage[n], []).append(n)
    kept = {
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind != InputKind.USER_INPUT
    }
    for node in filter(_writes, nodes):
        target = node.args[0] if node.args else None
        if not isinstance(target, torch.fx.Node) or functional_form(node.target) is None:
            return False
        for other in members[storage[target]]:
            if other.op == "placeholder" and other.name in kept:
                return False
            read_later = any(order[u] > order[node] for u in other.users)
            if tensor[other] is not tensor[target] and read_later:
                return False
    return True


def _classes(
    nodes: list[torch.fx.Node],
) -> tuple[dict[torch.fx.Node, torch.fx.Node], dict[torch.fx.Node, torch.fx.Node]]:
    """For each node, a representative of those that share its storage, and of those that are it."""
    storage: dict[torch.fx.Node, torch.fx.Node] = {}
    tensor: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in nodes:
        base = _aliased(node)
        storage[node] = storage[base] if base is not None else node
        same = base is not None and _writes(node)
        tensor[node] = tensor[base] if same and base is not None else node
    return storage, tensor


def _aliased(node: torch.fx.Node) -> torch.fx.Node | None:
    """The operand whose storage the result may share."""
    if node.op != "call_function" or not node.args:
        return None
    first = node.args[0]
    if not isinstance(node.target, OpOverload):
        return first if isinstance(first, torch.fx.Node) else None  # getitem, cond, ...
    schema = node.target._schema
    if schema.name in _MAY_RETURN_INPUT:
        return first if isinstance(first, torch.fx.Node) else None
    shared = [r.alias_info for r in schema.returns if r.alias_info is not None]
    if not shared:
        return None
    for argument, value in zip(schema.arguments, node.args, strict=False):
        if argument.alias_info is not None and isinstance(value, torch.fx.Node):
            return value
    return None
