"""Graph rewrites, in the order they run; each line says why it stands there.

A rewrite looks at one op and returns what replaces it (one value for each result), or None.
A sweep hands it every op in order and builds the op list anew.
"""

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Op, Value

Users = dict[Value, list[Op]]
_LOOKUPS = frozenset({"EMBEDDING_LOOKUP", "GATHER"})


@dataclass(eq=False)
class Sweep:
    """What a rewrite may look at and write to.

    Attributes:
        graph: Where replacements are emitted.
        users: Which ops read each value, as of the start of the sweep.
        outputs: The graph's outputs.
        done: Ops that the sweep has passed and kept.
    """

    graph: Graph
    users: Users = field(default_factory=dict)
    outputs: frozenset[Value] = frozenset()
    done: set[Op] = field(default_factory=set)

    def only_user(self, v: Value) -> Op | None:
        """The op that alone reads `v`, which is no output of the graph."""
        users = self.users.get(v, [])
        return users[0] if len(users) == 1 and v not in self.outputs else None

    @functools.cached_property
    def tables(self) -> frozenset[Hashable]:
        """Keys of the constants that some op takes rows of by index, such as embeddings."""
        return frozenset(
            v.const.key
            for v, readers in self.users.items()
            if v.const is not None and any(op.kind in _LOOKUPS for op in readers)
        )


Rewrite = Callable[[Sweep, Op], Value | list[Value] | None]
Pass = Callable[[Graph], None]


def sweeping(*rewrites: Rewrite, name: str = "") -> Pass:
    """A pass that applies the rewrites, first that fits first, until none finds anything more."""

    def first_that_fits(sweep: Sweep, op: Op) -> Value | list[Value] | None:
        for rewrite in rewrites:
            new = rewrite(sweep, op)
            if new is not None:
                return new
        return None

    def run_pass(graph: Graph) -> None:
        while _sweep(graph, first_that_fits):
            graph.remove_dead_ops()

    run_pass.__name__ = name or rewrites[0].__name__
    return run_pass


def _sweep(graph: Graph, rewrite: Rewrite) -> bool:
    """Build the op list anew: each op, or what `rewrite` emits in its place."""
    sweep = Sweep(graph, graph.users(), frozenset(graph.outputs))
    old_ops, graph.ops = graph.ops, []
    replaced: dict[Value, Value] = {}
    for op in old_ops:
        op.inputs = [None if v is None else replaced.get(v, v) for v in op.inputs]
        graph.source = op.source
        new = rewrite(sweep, op)
        if new is None:
            graph.ops.append(op)
            sweep.done.add(op)
        else:
            results = new if isinstance(new, list) else [new]
            replaced.update(zip(op.outputs, results, strict=True))
    graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    return bool(replaced)


def run(graph: Graph, *, skip: frozenset[str] = frozenset()) -> None:
    """Run the pipeline on `graph` and on the graphs inside it; check the graph after each pass.

    `skip` names passes to leave out; the result computes the same.
    """
    from litert_torch.converter.passes.pipeline import PIPELINE

    for g in [*graph.subgraphs(), graph]:
        for run_pass in PIPELINE:
            if run_pass.__name__ not in skip:
                run_pass(g)
                g.verify()
        _separate_outputs(g, pass_through=g is not graph)


def _separate_outputs(graph: Graph, *, pass_through: bool) -> None:
    """Make each output an op's result and no other output: LiteRT gives each a buffer.

    A loop's body may pass an input through in its place, and then nothing is copied. Elsewhere
    it may not: results are written over operands one by one, before the next is read.
    """
    outputs: list[Value] = []
    for i, v in enumerate(graph.outputs):
        in_place = pass_through and i < len(graph.inputs) and graph.inputs[i] is v
        owned = v.producer is not None and v not in outputs
        outputs.append(v if in_place or owned else tfl.copy(graph, v))
    graph.outputs = outputs
