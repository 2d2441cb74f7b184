"""Operands that an op can take as they were before some other op."""

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import broadcast
from litert_torch.converter.ir import Op, Value
from litert_torch.converter.passes import Sweep
from litert_torch.converter.passes.transposes import operand, permutation
from litert_torch.errors import UnsupportedCaseError

_BROADCASTING = frozenset(
    [
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MAXIMUM",
        "MINIMUM",
        "SQUARED_DIFFERENCE",
        "POW",
        "EQUAL",
        "NOT_EQUAL",
        "LESS",
        "LESS_EQUAL",
        "GREATER",
        "GREATER_EQUAL",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "SELECT_V2",
        "FLOOR_DIV",
        "FLOOR_MOD",
    ]
)


def drop_broadcast(s: Sweep, op: Op) -> Value | None:
    """Ops that broadcast need no copies.

    before: add(x, broadcast_to(y, shape))
    after:  add(x, y), where the result has the same shape
    """
    if op.kind not in _BROADCASTING:
        return None
    inputs = [operand(v.producer, "BROADCAST_TO") or v for v in op.inputs if v is not None]
    if len(inputs) != len(op.inputs) or inputs == op.inputs:
        return None
    try:
        kept = broadcast(*(v.shape for v in inputs)) == op.output.shape
    except UnsupportedCaseError:
        return None
    return s.graph.emit(op.kind, inputs, op.output.type, **op.attrs) if kept else None


def transpose_into_matmul(s: Sweep, op: Op) -> Value | None:
    """BATCH_MATMUL reads either operand transposed.

    before: batch_matmul(x, transpose(y, [0, 2, 1]))
    after:  batch_matmul(x, y, adj_y=True)
    """
    if op.kind != "BATCH_MATMUL":
        return None
    sides, changed = [], False
    for v, flag in zip(op.inputs, (op.attrs["adjX"], op.attrs["adjY"]), strict=True):
        assert v is not None
        perm = permutation(v.producer)
        swap = [*range(v.rank - 2), v.rank - 1, v.rank - 2]
        source = operand(v.producer, "TRANSPOSE") if perm == swap else None
        sides.append((source, not flag) if source is not None else (v, flag))
        changed = changed or source is not None
    if not changed:
        return None
    (x, adj_x), (y, adj_y) = sides
    return tfl.batch_matmul(s.graph, x, y, adj_x=adj_x, adj_y=adj_y)


def reuse_concatenation(s: Sweep, op: Op) -> Value | None:
    """A concatenation that another one begins (dense blocks) starts from that one's result.

    before: a = concat(x, y); b = concat(x, y, z)
    after:  a = concat(x, y); b = concat(a, z)
    """
    if op.kind != "CONCATENATION" or len(op.inputs) < 3 or op.inputs[0] is None:
        return None
    best: Op | None = None
    for other in s.users.get(op.inputs[0], []):
        if other is op or other.kind != op.kind or other.attrs != op.attrs:
            continue
        n = len(other.inputs)
        begins = 2 <= n < len(op.inputs) and other.inputs == op.inputs[:n]
        if begins and other in s.done and (best is None or n > len(best.inputs)):
            best = other
    if best is None:
        return None
    rest = op.inputs[len(best.inputs) :]
    return s.graph.emit(op.kind, [best.output, *rest], op.output.type, **op.attrs)


_MOST_CONCATENATED = 5  # operands of a CONCATENATION that XNNPACK takes


def flatten_concatenation(s: Sweep, op: Op) -> Value | None:
    """Concatenations of concatenations are one, up to as many operands as delegates take.

    before: concat(x, concat(y, z))
    after:  concat(x, y, z)
    """
    if op.kind != "CONCATENATION" or op.attrs["fusedActivationFunction"]:
        return None
    inputs = list(op.inputs)
    for v in op.inputs:
        maker = v.producer if v is not None else None
        if v is None or maker is None or maker.kind != op.kind or not s.only_user(v):
            continue
        if maker.attrs == op.attrs and len(inputs) + len(maker.inputs) - 1 <= _MOST_CONCATENATED:
            at = inputs.index(v)
            inputs[at : at + 1] = maker.inputs
    return (
        s.graph.emit(op.kind, inputs, op.output.type, **op.attrs) if inputs != op.inputs else None
    )


_REDUCTIONS = frozenset(
    ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL"]
)


def drop_reduced_axes(s: Sweep, op: Op) -> Value | None:
    """A reduction drops its axes itself.

    before: reshape(mean(x [2,7,7,5], [1,2], keep_dims=True), [2,5])
    after:  mean(x, [1,2], keep_dims=False)
    """
    y = operand(op, "RESHAPE")
    maker = y.producer if y is not None else None
    if y is None or maker is None or maker.kind not in _REDUCTIONS or not s.only_user(y):
        return None
    axes = maker.inputs[1]
    if not maker.attrs["keepDims"] or axes is None or axes.const is None:
        return None
    reduced = {int(a) % y.rank for a in axes.read().reshape(-1)}
    if op.output.shape != tuple(n for i, n in enumerate(y.shape) if i not in reduced):
        return None
    attrs = {**maker.attrs, "keepDims": False}
    return s.graph.emit(maker.kind, maker.inputs, op.output.type, **attrs)
