"""A function applied to the slices of tensors one after another: a WHILE, whatever their number.

What the loop costs at run time (measured in docs/recurrent.md) decides its form:

* LiteRT copies every tensor that an iteration changes, the whole stack of results included, so a
  long loop is two nested ones and an iteration copies the results of one chunk only;
* a tensor that the body returns as it got it, and that nobody reads afterwards, is not copied;
* a body whose tensors all have shapes known before it runs stays delegated to XNNPACK: slices are
  read by GATHER and written by DYNAMIC_UPDATE_SLICE, since SLICE from a run-time place is dynamic.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from litert_torch.converter import dims, dynamic_sizes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const

Values = list[Value]
Step = Callable[[Graph, Values, Values, Values], tuple[Values, Values]]
"""(graph, slices of xs, state, fixed) to (slices of the results, new state)."""

NESTED_ABOVE = 64  # steps; below, copying all results in each costs less than a second loop
CHUNKS = range(24, 41)  # steps of an inner loop; all of these are within 3% of the best

INT32 = DType.INT32


@dataclass(frozen=True)
class Operands:
    """What a loop works on.

    Attributes:
        xs: Read slice by slice along axis 0, all of the same length.
        state: Handed from step to step.
        fixed: Read whole by every step; constants need not be here, a step may just use them.
        results: The types of what a step computes beside the state.
    """

    xs: Values
    state: Values
    fixed: Values
    results: tuple[TensorType, ...]


def scan(g: Graph, step: Step, operands: Operands) -> tuple[Values, Values]:
    """Apply `step` to each slice of xs in turn: the stacked results and the last state."""
    length = operands.xs[0].shape[0]
    if isinstance(length, int) and length > NESTED_ABOVE:
        chunk = min(CHUNKS, key=lambda size: (-length % size, abs(size - 32)))
        if length % chunk == 0 or _can_be_padded(operands):
            return _nested(g, step, operands, length, chunk)
    return _loop(g, step, operands, _count(g, length))


def unrolled(g: Graph, step: Step, operands: Operands) -> tuple[Values, Values]:
    """What `scan` computes, with the steps one after another; for a length of at least one."""
    state = operands.state
    rows: list[Values] = []
    for i in range(int(operands.xs[0].shape[0])):
        ys, state = step(g, [_row(g, x, i) for x in operands.xs], state, operands.fixed)
        rows.append([tfl.expand_dims(g, y, 0) for y in ys])
    return [_concatenated(g, list(stack)) for stack in zip(*rows, strict=True)], state


def _concatenated(g: Graph, values: Values) -> Value:
    """By fives, which is as many as XNNPACK takes."""
    while len(values) > 1:
        parts = [values[i : i + 5] for i in range(0, len(values), 5)]
        values = [tfl.concatenation(g, part, axis=0) for part in parts]
    return values[0]


def _row(g: Graph, x: Value, i: int) -> Value:
    rest = x.shape[1:]
    begin = [i] + [0] * len(rest)
    return tfl.reshape(g, tfl.slice(g, x, begin, (1, *rest)), rest)


def _loop(g: Graph, step: Step, operands: Operands, count: Value) -> tuple[Values, Values]:
    """One WHILE of `count` (an int32 scalar) steps."""
    ranks = sorted({1 + len(t.shape) for t in operands.results})
    groups = [
        [const(0, INT32)],
        [const([0] * rank, INT32) for rank in ranks],  # where results go, as vectors
        [] if count.const is not None else [count],
        operands.xs,
        operands.state,
        operands.fixed,
        [_blank(g, operands, t) for t in operands.results],
    ]
    carried = [v for group in groups for v in group]
    condition, body = _subgraph("condition", carried), _subgraph("step", carried)

    (c_index,), _, c_count, *_ = _regrouped(groups, condition.inputs)
    condition.outputs = [tfl.less(condition, c_index, c_count[0] if c_count else count)]

    (index,), places, known, xs, state, fixed, stacks = _regrouped(groups, body.inputs)
    ys, new_state = step(body, [tfl.gather(body, x, index, axis=0) for x in xs], state, fixed)
    at = dict(zip(ranks, places, strict=True))
    written = [
        tfl.dynamic_update_slice(body, stack, tfl.expand_dims(body, y, 0), at[stack.rank])
        for stack, y in zip(stacks, ys, strict=True)
    ]
    next_index = tfl.add(body, index, const(1, INT32))
    next_places = [tfl.add(body, at[r], const([1] + [0] * (r - 1), INT32)) for r in ranks]
    body.outputs = [next_index, *next_places, *known, *xs, *new_state, *fixed, *written]

    done = _regrouped(groups, tfl.while_(g, carried, condition, body))
    return done[6], done[4]


def _nested(
    g: Graph, step: Step, operands: Operands, length: int, chunk: int
) -> tuple[Values, Values]:
    """A loop over chunks of slices, each step of which is a loop over the slices of its chunk."""
    count = -(-length // chunk)
    xs = [_chunked(g, x, count, chunk) for x in operands.xs]
    results = tuple(TensorType((chunk, *t.shape), t.dtype) for t in operands.results)
    full = length % chunk == 0
    if not full:
        xs.append(_lengths(length, count, chunk))

    def chunk_step(
        body: Graph, slices: Values, state: Values, fixed: Values
    ) -> tuple[Values, Values]:
        steps = const(chunk, INT32) if full else slices.pop()
        return _loop(body, step, Operands(slices, state, fixed, operands.results), steps)

    stacked, state = _loop(
        g,
        chunk_step,
        Operands(xs, operands.state, operands.fixed, results),
        const(count, INT32),
    )
    flat = [tfl.reshape(g, y, (count * chunk, *y.shape[2:])) for y in stacked]
    return [tfl.slice(g, y, [0] * y.rank, (length, *y.shape[1:])) for y in flat], state


def _can_be_padded(operands: Operands) -> bool:
    return all(x.dtype == DType.FLOAT32 for x in operands.xs)


def _chunked(g: Graph, x: Value, count: int, chunk: int) -> Value:
    """[length, ...] as [count, chunk, ...], with zeros behind the end."""
    rest = x.shape[1:]
    missing = count * chunk - int(x.shape[0])
    padded = tfl.pad(g, x, [(0, missing)] + [(0, 0)] * len(rest))
    return tfl.reshape(g, padded, (count, chunk, *rest))


def _lengths(length: int, count: int, chunk: int) -> Value:
    return const([min(chunk, length - i * chunk) for i in range(count)], INT32)


def _blank(g: Graph, operands: Operands, row: TensorType) -> Value:
    """A stack of rows to be overwritten, which takes no room in the file.

    Of dynamic size it is cut from an operand, since the shape of a FILL would only be known when
    it runs, and the loop could not be delegated.
    """
    shape = (operands.xs[0].shape[0], *row.shape)
    if not dims.is_static(shape):
        for x in operands.xs:
            if x.dtype == row.dtype and x.rank == len(shape) and _covers(x.shape, shape):
                return tfl.slice(g, x, [0] * x.rank, shape)
    return tfl.fill(g, shape, const(0, row.dtype))


def _covers(outer: dims.Shape, inner: dims.Shape) -> bool:
    return all(
        a == b or (isinstance(a, int) and isinstance(b, int) and a > b)
        for a, b in zip(outer, inner, strict=True)
    )


def _count(g: Graph, length: Size) -> Value:
    if isinstance(length, int):
        return const(length, INT32)
    return dynamic_sizes.scalar(g, length)


def _subgraph(name: str, carried: Sequence[Value]) -> Graph:
    """A graph of that name with an input like each carried value."""
    return Graph(name=name, inputs=[Value(v.type) for v in carried])


def _regrouped(groups: Sequence[Sequence[Value]], values: Sequence[Value]) -> list[Values]:
    """Values split as `groups` are."""
    left = iter(values)
    return [[next(left) for _ in group] for group in groups]
