"""Equal computations are done once."""

from collections.abc import Hashable

from litert_torch.converter.ir import Graph, Value

_DIFFERENT_EACH_TIME = frozenset(
    [
        "RANDOM_UNIFORM",
        "RANDOM_STANDARD_NORMAL",
        "MULTINOMIAL",
        "VAR_HANDLE",
        "READ_VARIABLE",
        "ASSIGN_VARIABLE",
        "CUSTOM",
        "WHILE",
        "IF",
        "CALL_ONCE",
        "STABLEHLO_COMPOSITE",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
    ]
)


def share_common_subexpressions(graph: Graph) -> None:
    """Replace an op that repeats an earlier one by the earlier one's results."""
    seen: dict[Hashable, list[Value]] = {}
    replaced: dict[Value, Value] = {}
    outputs = set(graph.outputs)
    for op in graph.ops:
        op.inputs = [None if v is None else replaced.get(v, v) for v in op.inputs]
        if op.kind in _DIFFERENT_EACH_TIME or not outputs.isdisjoint(op.outputs):
            continue
        attrs = tuple(sorted((k, str(v)) for k, v in op.attrs.items()))
        scales = tuple(v.quantization.key for v in op.outputs if v.quantization is not None)
        types = tuple(v.type for v in op.outputs)
        key = (op.kind, attrs, types, scales, *(_identity(v) for v in op.inputs))
        first = seen.setdefault(key, op.outputs)
        if first is not op.outputs:
            replaced.update(zip(op.outputs, first, strict=True))
    graph.remove_dead_ops()


def _identity(v: Value | None) -> Hashable:
    if v is None or v.const is None:
        return v
    return (v.const.key, v.shape, v.quantization.key if v.quantization is not None else None)
