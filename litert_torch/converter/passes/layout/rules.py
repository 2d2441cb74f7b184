"""How each op works on operands whose channels were moved last.

A value of rank >= 3 may be stored "last": its axis 1 moved to the end. `RULES` has the ops that
can run on such operands; each says how its axis attributes change. Anything else runs on tensors
as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from litert_torch.converter import dims
from litert_torch.converter.constants import Array
from litert_torch.converter.ir import Graph, Op, TensorType, Value, const


def last_perm(rank: int) -> list[int]:
    """The permutation that moves axis 1 last: NCHW to NHWC."""
    return [0, *range(2, rank), 1] if rank >= 3 else list(range(rank))


def first_perm(rank: int) -> list[int]:
    """The permutation that moves the last axis to 1: NHWC to NCHW."""
    return [0, rank - 1, *range(1, rank - 1)] if rank >= 3 else list(range(rank))


def last_axis(axis: int, rank: int) -> int:
    """Where axis `axis` is after last_perm."""
    return last_perm(rank).index(axis % rank)


def stored_type(v: Value) -> TensorType:
    """The type of `v` stored channels-last."""
    return replace(v.type, shape=tuple(v.shape[i] for i in last_perm(v.rank)))


Rewrite = Callable[[Graph, Op, list[Value | None]], list[Value]]


@dataclass(frozen=True)
class Rule:
    """An op that can run channels-last.

    Attributes:
        data: Positions of the operands that are stored channels-last; the rest stay as they are.
        rewrite: Emits the op on channels-last operands; results are channels-last too.
        frees_output: The result is the same tensor whatever the layout of the operand.
    """

    data: tuple[int, ...]
    rewrite: Rewrite
    frees_output: bool = False


RuleOf = Callable[[Op], Rule | None]
RULES: dict[str, RuleOf] = {}


def rule_of(op: Op) -> Rule | None:
    """How `op` runs channels-last, or None where it cannot."""
    find = RULES.get(op.kind)
    return find(op) if find is not None else None


def _rules(*kinds: str) -> Callable[[RuleOf], RuleOf]:
    def register(function: RuleOf) -> RuleOf:
        for kind in kinds:
            RULES[kind] = function
        return function

    return register


def _emit(g: Graph, op: Op, inputs: Sequence[Value | None], **attrs: Any) -> list[Value]:
    types = [stored_type(v) for v in op.outputs]
    results = g.emit_many(op.kind, inputs, types, **{**op.attrs, **attrs})
    for new, old in zip(results, op.outputs, strict=True):
        new.quantization = old.quantization
    return results


def relaid(v: Value, rank: int) -> Value:
    """A constant that broadcasts against rank-`rank` tensors, for channels-last ones."""
    assert v.const is not None
    if v.const.size == 1:
        return v
    padded = v.const.reshape((1,) * (rank - v.rank) + v.const.shape)
    return const(padded.transpose(last_perm(rank)))


@_rules(
    *[
        "ABS",
        "CEIL",
        "COS",
        "ELU",
        "EXP",
        "FLOOR",
        "GELU",
        "HARD_SWISH",
        "LEAKY_RELU",
        "LOG",
        "LOGISTIC",
        "NEG",
        "RELU",
        "RELU6",
    ],
    *[
        "RELU_0_TO_1",
        "RELU_N1_TO_1",
        "ROUND",
        "RSQRT",
        "SIGN",
        "SIN",
        "SQRT",
        "SQUARE",
        "TANH",
        "CAST",
        "LOGICAL_NOT",
    ],
    *[
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MAXIMUM",
        "MINIMUM",
        "SQUARED_DIFFERENCE",
        "POW",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "ATAN2",
    ],
    *[
        "EQUAL",
        "NOT_EQUAL",
        "LESS",
        "LESS_EQUAL",
        "GREATER",
        "GREATER_EQUAL",
        "LOGICAL_AND",
        "LOGICAL_OR",
    ],
    *["SELECT_V2", "PRELU", "QUANTIZE", "DEQUANTIZE", "BITWISE_XOR", "RIGHT_SHIFT"],
)
def _elementwise(op: Op) -> Rule | None:
    rank = op.output.rank
    data = []
    for i, v in enumerate(op.inputs):
        if v is None or v.const is not None:
            continue
        if v.rank == rank:
            data.append(i)
        elif v.rank != 0:
            return None

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        laid = [relaid(v, rank) if v is not None and v.const is not None else v for v in inputs]
        return _emit(g, op, laid)

    return Rule(tuple(data), rewrite) if data else None


@_rules("CONCATENATION")
def _concatenation(op: Op) -> Rule | None:
    rank = op.output.rank

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        laid = [relaid(v, rank) if v is not None and v.const is not None else v for v in inputs]
        return _emit(g, op, laid, axis=last_axis(op.attrs["axis"], rank))

    return Rule(tuple(i for i, v in enumerate(op.inputs) if v and v.const is None), rewrite)


@_rules("SPLIT")
def _split(op: Op) -> Rule | None:
    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        axis = int(_read(inputs[0]).reshape(-1)[0])
        return _emit(g, op, [const(last_axis(axis, op.output.rank), "int32"), inputs[1]])

    return Rule((1,), rewrite) if _is_const(op, 0) else None


@_rules("PAD", "PADV2", "MIRROR_PAD", "SLICE", "STRIDED_SLICE", "TILE")
def _per_axis(op: Op) -> Rule | None:
    """Ops with one row of a constant vector or matrix for each axis."""
    if not all(_is_const(op, i) for i in range(1, len(op.inputs))):
        return None
    if any(op.attrs.get(m) for m in ("ellipsisMask", "newAxisMask", "shrinkAxisMask")):
        return None
    if op.attrs.get("beginMask") or op.attrs.get("endMask"):
        return None

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        perm = last_perm(op.output.rank)
        rows = [
            const(_read(v)[perm], v.dtype) if v is not None and _rows(v) == len(perm) else v
            for v in inputs[1:]
        ]
        return _emit(g, op, [inputs[0], *rows])

    return Rule((0,), rewrite)


@_rules("BROADCAST_TO")
def _broadcast_to(op: Op) -> Rule | None:
    same_rank = op.inputs[0] is not None and op.inputs[0].rank == op.output.rank
    return _per_axis(op) if same_rank else None


@_rules("REVERSE_V2", "CUMSUM")
def _axes_operand(op: Op) -> Rule | None:
    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        return _emit(g, op, [inputs[0], _moved_axes(inputs[1], op.output.rank)])

    return Rule((0,), rewrite) if _is_const(op, 1) else None


@_rules("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ALL", "REDUCE_ANY")
def _reduction(op: Op) -> Rule | None:
    x = op.inputs[0]
    if x is None or not _is_const(op, 1):
        return None
    axes = [int(a) % x.rank for a in _read(op.inputs[1]).reshape(-1)]

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        operands = [inputs[0], _moved_axes(inputs[1], x.rank)]
        types = [v.type if frees else stored_type(v) for v in op.outputs]
        return g.emit_many(op.kind, operands, types, **op.attrs)

    kept = bool(op.attrs.get("keepDims"))
    frees = not kept and (1 in axes or x.rank - len(axes) <= 2)
    if not kept and 0 in axes and 1 not in axes and x.rank - len(axes) > 1:
        return None  # what was axis 1 becomes the leading axis
    return Rule((0,), rewrite, frees_output=frees)


@_rules("ARG_MAX", "ARG_MIN")
def _arg_reduction(op: Op) -> Rule | None:
    x = op.inputs[0]
    if x is None or not _is_const(op, 1):
        return None
    axis = int(_read(op.inputs[1]).reshape(-1)[0]) % x.rank
    frees = axis == 1 or x.rank == 3
    if axis == 0:
        return None

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        operands = [inputs[0], const(last_axis(axis, x.rank), "int32")]
        types = [v.type if frees else stored_type(v) for v in op.outputs]
        return g.emit_many(op.kind, operands, types, **op.attrs)

    return Rule((0,), rewrite, frees_output=frees)


@_rules("GATHER")
def _gather(op: Op) -> Rule | None:
    x, indices = op.inputs
    if x is None or indices is None or indices.rank != 1 or op.attrs.get("batchDims"):
        return None
    if x.const is not None:
        return None

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        return _emit(g, op, inputs, axis=last_axis(op.attrs["axis"], op.output.rank))

    return Rule((0,), rewrite)


@_rules("RESHAPE")
def _reshape(op: Op) -> Rule | None:
    """A reshape that keeps the first two axes only merges or splits what is between them."""
    x, y = op.inputs[0], op.output
    if x is None or x.rank < 3 or y.rank < 2 or x.shape[:2] != y.shape[:2]:
        return None
    if y.rank == 2 and not all(s == 1 for s in x.shape[2:]):
        return None

    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        from litert_torch.converter import litert_ops as tfl

        assert inputs[0] is not None
        return [tfl.reshape(g, inputs[0], stored_type(op.output).shape)]

    return Rule((0,), rewrite, frees_output=y.rank == 2)


CHANNEL_SHUFFLE = "litert_torch.channel_shuffle"


@_rules(CHANNEL_SHUFFLE)
def _channel_shuffle(op: Op) -> Rule | None:
    def rewrite(g: Graph, op: Op, inputs: list[Value | None]) -> list[Value]:
        return _emit(g, op, inputs, axis=last_axis(op.attrs["axis"], op.output.rank))

    return Rule((0,), rewrite)


def _is_const(op: Op, i: int) -> bool:
    v = op.inputs[i]
    return v is not None and v.const is not None


def _read(v: Value | None) -> Array:
    assert v is not None
    return v.read()


def _rows(v: Value) -> int:
    return dims.static(v.shape)[0] if v.rank else 0


def _moved_axes(v: Value | None, rank: int) -> Value:
    axes = _read(v)
    moved = sorted(last_axis(int(a), rank) for a in axes.reshape(-1))
    return const(moved if axes.ndim else moved[0], "int32")
