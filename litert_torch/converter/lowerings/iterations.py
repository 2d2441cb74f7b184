"""WHILE loops that end by a condition, of a size that does not depend on how often they run."""

from collections.abc import Callable, Sequence

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const

Values = list[Value]
Step = Callable[[Graph, Values], Values]
INT32 = DType.INT32


def iterated(
    g: Graph,
    state: Sequence[Value],
    goes_on: Callable[[Graph, Values], Value],
    step: Step,
) -> Values:
    """The state after `step` as long as `goes_on`, a bool scalar, holds of it.

    Both see the state only: what else they need must be constant or part of the state.
    """
    condition, body = (
        Graph(name=name, inputs=[Value(v.type) for v in state], source=g.source)
        for name in ("condition", "step")
    )
    condition.outputs = [goes_on(condition, list(condition.inputs))]
    body.outputs = step(body, list(body.inputs))
    return tfl.while_(g, state, condition, body)


def repeated(
    g: Graph,
    state: Sequence[Value],
    times: int,
    step: Step,
    goes_on: Callable[[Graph, Values], Value] | None = None,
) -> Values:
    """The state after `step`, `times` times, or until `goes_on` does not hold of it."""

    def counted(g: Graph, values: Values) -> Value:
        early = tfl.less(g, values[0], const(times, INT32))
        return tfl.logical_and(g, early, goes_on(g, values[1:])) if goes_on else early

    def counting(g: Graph, values: Values) -> Values:
        return [tfl.add(g, values[0], const(1, INT32)), *step(g, values[1:])]

    return iterated(g, [const(0, INT32), *state], counted, counting)[1:]
