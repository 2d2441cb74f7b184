"""Parts of an exported program as modules of their own, with real inputs."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from litert_torch.converter.signature import Signature
from litert_torch.errors import InvalidInputError

Unit = tuple[torch.fx.Node, ...]
"""An op and the nodes that take its results apart; never split."""


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Some ops of a program.

    Attributes:
        graph_module: Takes `inputs`; weights of the program are its attributes.
        inputs: What those tensors were when the program ran on its sample inputs.
    """

    graph_module: torch.fx.GraphModule
    inputs: tuple[Any, ...]


class Program:
    """An exported program that was run once, so that each part of it can be run alone."""

    def __init__(self, program: ExportedProgram) -> None:
        if program.example_inputs is None:
            raise InvalidInputError("the exported program has no sample inputs to run it with")
        program = program.run_decompositions({})  # in-place ops would spoil recorded values
        args, kwargs = program.example_inputs
        self._module = program.graph_module
        self._state = _state(program)
        recorder = _Recorder(self._module)
        with torch.no_grad():
            recorder.run(*program._graph_module_flat_inputs(args, kwargs))
        self._values = recorder.values
        self.units = _units(self._module.graph)

    def subgraph(self, units: Iterable[Unit]) -> Subgraph:
        """`units` alone; what they read of others are inputs, what others read are outputs."""
        inside = [node for unit in units for node in unit]
        own = set(inside)
        graph = torch.fx.Graph()
        copies: dict[torch.fx.Node, Any] = {}
        attributes: dict[str, Any] = {}
        inputs: list[torch.Tensor] = []
        outer = dict.fromkeys(a for n in inside for a in n.all_input_nodes if a not in own)
        for node in outer:
            value = self._values[node]
            if not isinstance(value, torch.Tensor) or node in self._state:
                continue
            copies[node] = graph.placeholder(node.name)
            copies[node].meta["val"] = value
            inputs.append(value)
        for node in outer:
            if node not in copies:
                copies[node] = self._constant(node, graph, attributes)
        for node in inside:
            copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[n] for n in inside if self._is_output(n, own)))
        module = torch.fx.GraphModule(attributes, graph, "CulpritGraphModule")
        return Subgraph(module.eval(), tuple(inputs))

    def _constant(
        self, node: torch.fx.Node, graph: torch.fx.Graph, attributes: dict[str, Any]
    ) -> Any:
        """A weight or a submodule as an attribute; a number or list as itself."""
        value = self._values[node]
        if not isinstance(value, (torch.Tensor, torch.nn.Module)):
            return value
        attributes[node.name] = value
        return graph.create_node("get_attr", node.name, name=node.name)

    def _is_output(self, node: torch.fx.Node, own: set[torch.fx.Node]) -> bool:
        used_outside = not node.users or any(user not in own for user in node.users)
        return used_outside and isinstance(self._values[node], torch.Tensor)


class _Recorder(torch.fx.Interpreter):
    """Runs a graph and keeps the value of every node."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.values: dict[torch.fx.Node, Any] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        self.values[n] = super().run_node(n)
        return self.values[n]


def _state(program: ExportedProgram) -> set[torch.fx.Node]:
    """Placeholders that are weights, buffers or constants."""
    signature = program.graph_signature
    users = set(signature.user_inputs)
    return {n for n in program.graph.nodes if n.op == "placeholder" and n.name not in users}


def _units(graph: torch.fx.Graph) -> Sequence[Unit]:
    """Ops in execution order. Sizes and checks are none: they have the value they had."""
    found = []
    for node in graph.nodes:
        value = node.meta.get("val")
        is_op = node.op == "call_function" and node.target is not operator.getitem
        if is_op and any(isinstance(v, torch.Tensor) for v in pytree.tree_leaves(value)):
            found.append((node, *(u for u in node.users if u.target is operator.getitem)))
    return found


def program_of(
    model: torch.nn.Module | ExportedProgram, args: tuple[Any, ...] | None
) -> ExportedProgram:
    """`model` as an exported program.

    Raises:
        InvalidInputError: a module was given without inputs.
        ExportError: torch.export cannot trace the module.
    """
    from litert_torch.converter.frontends import module as frontend

    if isinstance(model, ExportedProgram):
        return model
    return frontend.export(Signature.checked("model", model, args, None))
