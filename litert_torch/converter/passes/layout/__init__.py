"""NCHW to NHWC over the whole graph.

LiteRT's image ops want channels last, PyTorch's first, so lowerings emit each of them between
two TRANSPOSEs. Most other ops do not care. Where the channels of each tensor are kept is
therefore one question about the whole graph: choose, for every op that can run either way, the
side that makes the fewest elements be transposed. That is a minimum cut: ops are nodes, a tensor
read on the other side than it is made costs its size, once, however many ops read it there.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import is_static, static
from litert_torch.converter.ir import Graph, Op, Value, const
from litert_torch.converter.passes.layout.channel_shuffle import find_shuffles
from litert_torch.converter.passes.layout.mincut import INFINITY, FlowNetwork
from litert_torch.converter.passes.layout.roles import TO_FIRST, TO_LAST, transpose_roles
from litert_torch.converter.passes.layout.rules import Rule, first_perm, last_perm, rule_of

FIRST, LAST = "first", "last"  # source and sink of the cut: the two places for channels
_DYNAMIC_SIZE = 64  # stands in for a dynamic dimension when costs are compared


def channels_last(graph: Graph) -> None:
    """Rewrite `graph` so that the fewest elements are transposed."""
    find_shuffles(graph)
    roles = transpose_roles(graph)
    if not roles:
        return
    plan = _Plan(graph, roles)
    side = plan.cheapest()
    _apply(graph, plan, side)
    graph.remove_dead_ops()


@dataclass(eq=False)
class _Plan:
    """What is known before the cut: each op's rule and each TRANSPOSE's role."""

    graph: Graph
    roles: dict[Op, str]
    rules: dict[Op, Rule] = field(default_factory=dict)
    flattens: set[Op] = field(default_factory=set)

    def __post_init__(self) -> None:
        users = self.graph.users()
        outputs = set(self.graph.outputs)
        for op in self.graph.ops:
            rule = rule_of(op)
            if (
                rule is None
                and outputs.isdisjoint(op.outputs)
                and _flattens_into_weights(op, users)
            ):
                self.flattens.add(op)
                rule = Rule((0,), _rewrite_flatten, frees_output=True)
            if rule is not None and any(v is not None and v.rank >= 3 for v in op.inputs):
                self.rules[op] = rule

    def producer_side(self, op: Op) -> Hashable:
        """Where the results of `op` have their channels: a side, or the op's own choice."""
        if self.roles.get(op) == TO_FIRST:
            return LAST
        rule = self.rules.get(op)
        return FIRST if rule is None or rule.frees_output else op

    def reader_side(self, op: Op, position: int) -> Hashable:
        """Where `op` wants the channels of an operand."""
        if self.roles.get(op) == TO_LAST:
            return LAST
        rule = self.rules.get(op)
        return op if rule is not None and position in rule.data else FIRST

    def cheapest(self) -> set[Op]:
        """The ops that should run channels-last."""
        network = FlowNetwork()
        readers: dict[Value, set[Hashable]] = {}
        for op in self.graph.ops:
            for i, v in enumerate(op.inputs):
                if v is not None and v.const is None:
                    readers.setdefault(v, set()).add(self.reader_side(op, i))
        for v in self.graph.outputs:
            readers.setdefault(v, set()).add(FIRST)
        for v, sides in readers.items():
            maker = self.producer_side(v.producer) if v.producer is not None else FIRST
            if v.rank >= 3:
                _charge(network, v, maker, sides - {maker})
        first = network.source_side(FIRST, LAST)
        return {op for op in self.rules if op not in first}


def _charge(network: FlowNetwork, v: Value, maker: Hashable, readers: set[Hashable]) -> None:
    """Cost of transposing `v` once if any reader is on the other side than its maker."""
    cost = _cost(v)
    if maker != LAST:
        network.add_edge(maker, ("to last", v), cost)
        for reader in readers - {FIRST}:
            network.add_edge(("to last", v), reader, INFINITY)
    if maker != FIRST:
        network.add_edge(("to first", v), maker, cost)
        for reader in readers - {LAST}:
            network.add_edge(reader, ("to first", v), INFINITY)


def _cost(v: Value) -> float:
    sizes = [s if isinstance(s, int) else _DYNAMIC_SIZE for s in v.shape]
    channels, spatial = sizes[1], 1
    for s in sizes[2:]:
        spatial *= s
    if channels == 1 or spatial == 1:
        return 1.0  # the same bytes either way: a RESHAPE
    return float(sizes[0] * channels * spatial)


def _apply(graph: Graph, plan: _Plan, last: set[Op]) -> None:
    old_ops, graph.ops = graph.ops, []
    stored: dict[tuple[Value, str], Value] = {}

    def get(v: Value | None, side: str) -> Value | None:
        """`v` with its channels on `side`, transposed if it is not there yet."""
        if v is None or v.const is not None or v.rank < 3:
            return v if v is None else stored.get((v, FIRST), v)
        if (v, side) not in stored:
            other = FIRST if side == LAST else LAST
            perm = last_perm(v.rank) if side == LAST else first_perm(v.rank)
            source = stored.get((v, other), v)
            stored[v, side] = tfl.transpose(graph, source, perm)
        return stored[v, side]

    for v in graph.inputs:
        stored[v, FIRST] = v
    for op in old_ops:
        graph.source = op.source
        role, rule = plan.roles.get(op), plan.rules.get(op)
        if role == TO_FIRST:
            stored[op.output, LAST] = _some(get(op.inputs[0], FIRST))
        elif role == TO_LAST:
            stored[op.output, FIRST] = _some(get(op.inputs[0], LAST))
        elif rule is not None and op in last:
            data = set(rule.data)
            inputs = [get(v, LAST if i in data else FIRST) for i, v in enumerate(op.inputs)]
            for old, new in zip(op.outputs, rule.rewrite(graph, op, inputs), strict=True):
                stored[old, FIRST if rule.frees_output or old.rank < 3 else LAST] = new
        else:
            _relay_weights(op, plan, last)
            op.inputs = [get(v, FIRST) for v in op.inputs]
            graph.ops.append(op)
            stored.update({(v, FIRST): v for v in op.outputs})
    graph.outputs = [_some(get(v, FIRST)) for v in graph.outputs]


def _some(v: Value | None) -> Value:
    assert v is not None
    return v


def _flattens_into_weights(op: Op, users: dict[Value, list[Op]]) -> bool:
    """A RESHAPE to [N, C*H*W] that only FULLY_CONNECTED ops with constant weights read."""
    x = op.inputs[0] if op.kind == "RESHAPE" else None
    if x is None or x.rank < 3 or op.output.rank != 2 or not is_static(x.shape[1:]):
        return False
    if x.shape[0] != op.output.shape[0]:
        return False
    readers = users.get(op.output, [])
    return bool(readers) and all(
        r.kind == "FULLY_CONNECTED"
        and r.inputs[0] is op.output
        and r.inputs[1] is not None
        and r.inputs[1].const is not None
        for r in readers
    )


def _rewrite_flatten(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
    return [tfl.reshape(g, _some(inputs[0]), op.output.shape)]


def _relay_weights(op: Op, plan: _Plan, last: set[Op]) -> None:
    """Reorder the columns of weights whose operand was flattened channels-last."""
    flatten = op.inputs[0].producer if op.inputs and op.inputs[0] is not None else None
    if flatten not in plan.flattens or flatten not in last:
        return
    shape = static(_some(flatten.inputs[0]).shape[1:])
    weights = _some(op.inputs[1])
    assert weights.const is not None
    rows = weights.const.shape[0]
    moved = weights.const.reshape((rows, *shape)).transpose(last_perm(len(shape) + 1))
    op.inputs[1] = const(moved.reshape(weights.const.shape))
