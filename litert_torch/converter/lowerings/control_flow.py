"""torch.cond, while_loop, scan and map.

A higher-order op gets its branches and bodies as `Body`, and constant operands as `Folded`: those
are built into the subgraphs that use them and are no operands there, so that ops of constants are
folded and weights stay constants to delegates.
"""

from collections.abc import Sequence
from typing import Any

import torch

from litert_torch.converter import folding
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim
from litert_torch.converter.dtypes import DType
from litert_torch.converter.folding import Folded
from litert_torch.converter.ir import Graph, TensorType, Value
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.registry import Body
from litert_torch.converter.torch_types import compute_dtype
from litert_torch.errors import UnsupportedCaseError

higher_order = torch.ops.higher_order

Operand = Value | Folded


@lowers(higher_order.cond)
def cond(
    g: Graph,
    predicate: Value | Folded | bool,
    true_body: Body,
    false_body: Body,
    operands: Sequence[Any] = (),
) -> list[Value]:
    """IF; a predicate known at conversion time leaves one branch and no IF."""
    if isinstance(predicate, Folded):
        predicate = bool(predicate.compute())
    if isinstance(predicate, bool):
        return (true_body if predicate else false_body).lower_into(g, operands)
    if not isinstance(predicate, Value):
        raise UnsupportedCaseError(
            f"torch.cond on the size expression {predicate}: compare tensors instead"
        )
    passed = [v for v in operands if isinstance(v, Value)]
    branches = []
    for name, body in (("then", true_body), ("else", false_body)):
        branch = _subgraph(g, name, passed)
        branch.outputs = _tensors(body.lower_into(branch, _filled(operands, branch.inputs)))
        branches.append(branch)
    then, otherwise = branches
    _require_equal_types(then, otherwise)
    return tfl.if_(g, tfl.cast(g, predicate, DType.BOOL), then, otherwise, passed)


@lowers(higher_order.while_loop)
def while_loop(
    g: Graph,
    condition: Body,
    body: Body,
    carried: Sequence[Any],
    additional: Sequence[Any] = (),
) -> list[Value]:
    """WHILE; values that only the body reads are carried unchanged."""
    state = _tensors(folding.as_values(list(carried), compute_dtype))
    fixed = [v for v in additional if isinstance(v, Value)]
    operands = [*state, *fixed]

    def subgraph(name: str, program: Body) -> Graph:
        graph = _subgraph(g, name, operands)
        rest = _filled(additional, graph.inputs[len(state) :])
        graph.outputs = _tensors(program.lower_into(graph, [*graph.inputs[: len(state)], *rest]))
        return graph

    test, step = subgraph("condition", condition), subgraph("body", body)
    _require_state(state, step.outputs)
    step.outputs += step.inputs[len(state) :]
    return tfl.while_(g, operands, test, step)[: len(state)]


@lowers(higher_order.scan)
def scan(
    g: Graph,
    body: Body,
    init: Sequence[Any],
    xs: Sequence[Any],
    additional: Sequence[Any] = (),
) -> list[Value]:
    """The last state, then each result stacked along axis 0."""
    return _scan(g, body, init, xs, additional)


@lowers(higher_order.map_impl)
def map_impl(
    g: Graph, body: Body, xs: Sequence[Any], additional: Sequence[Any] = ()
) -> list[Value]:
    """The results for each slice of xs along axis 0, stacked."""
    return _scan(g, body, [], xs, additional)


def _scan(
    g: Graph, body: Body, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any]
) -> list[Value]:
    state = _tensors(folding.as_values(list(init), compute_dtype))
    stacks = _tensors(folding.as_values(list(xs), compute_dtype))
    fixed = [v for v in additional if isinstance(v, Value)]

    def step(
        graph: Graph, slices: loops.Values, old: loops.Values, given: loops.Values
    ) -> tuple[loops.Values, loops.Values]:
        rest = _filled(additional, given)
        results = _tensors(body.lower_into(graph, [*old, *slices, *rest]))
        new = results[: len(old)]
        _require_state(old, new)
        return results[len(old) :], new

    operands = loops.Operands(stacks, state, fixed, _row_types(step, stacks, state, fixed))
    ys, last = loops.scan(g, step, operands)
    return [*last, *ys]


def _row_types(
    step: loops.Step, xs: Sequence[Value], state: Sequence[Value], fixed: Sequence[Value]
) -> tuple[TensorType, ...]:
    """What a step's results look like, from a trial on a graph that is thrown away."""
    rows = [TensorType(x.shape[1:], x.dtype) for x in xs]
    trial = Graph(inputs=[Value(t) for t in [*rows, *(v.type for v in [*state, *fixed])]])
    slices, rest = trial.inputs[: len(rows)], trial.inputs[len(rows) :]
    ys, _ = step(trial, slices, rest[: len(state)], rest[len(state) :])
    return tuple(y.type for y in ys)


def _subgraph(g: Graph, name: str, operands: Sequence[Value]) -> Graph:
    return Graph(name=name, inputs=[Value(v.type) for v in operands], source=g.source)


def _filled(operands: Sequence[Any], inputs: Sequence[Value]) -> list[Any]:
    """The operands with the tensors among them replaced by `inputs`, in order."""
    left = iter(inputs)
    return [next(left) if isinstance(v, Value) else v for v in operands]


def _tensors(values: Sequence[Any]) -> list[Value]:
    for v in values:
        if not isinstance(v, Value):
            kind = "a size" if isinstance(v, Dim) else f"a {type(v).__name__}"
            raise UnsupportedCaseError(
                f"{kind} goes through a loop or branch: make it a tensor, which LiteRT can carry"
            )
    return list(values)


def _require_equal_types(then: Graph, otherwise: Graph) -> None:
    a, b = [v.type for v in then.outputs], [v.type for v in otherwise.outputs]
    if a != b:
        raise UnsupportedCaseError(
            f"the branches of torch.cond give {_shown(a)} and {_shown(b)}: make them equal"
        )


def _require_state(old: Sequence[Value], new: Sequence[Value]) -> None:
    a, b = [v.type for v in old], [v.type for v in new]
    if a != b:
        raise UnsupportedCaseError(f"a loop changes {_shown(a)} to {_shown(b)}: keep the types")


def _shown(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"
