"""Channel shuffle as one op while the layout is chosen, and as LiteRT ops after it."""

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import numel
from litert_torch.converter.ir import Op, Value
from litert_torch.converter.passes import Sweep, sweeping
from litert_torch.converter.passes.layout.rules import CHANNEL_SHUFFLE
from litert_torch.converter.passes.transposes import permutation


def _shuffle(s: Sweep, op: Op) -> Value | None:
    """A shuffle of groups of channels, which is one permutation of axis 1.

    before: reshape(transpose(reshape(x, [N, G, C/G, ...]), [0, 2, 1, ...]), [N, C, ...])
    after:  channel_shuffle(x, groups=G, axis=1)
    """
    middle = _producer(op, "RESHAPE")
    split = _producer(middle, "TRANSPOSE")
    x = split.inputs[0] if split is not None and split.kind == "RESHAPE" else None
    perm = permutation(middle)
    if x is None or split is None or perm is None or x.rank < 3:
        return None
    inner = split.output.shape
    if perm != [0, 2, 1, *range(3, x.rank + 1)] or op.output.shape != x.shape:
        return None
    groups = inner[1]
    if inner[0] != x.shape[0] or inner[3:] != x.shape[2:] or not isinstance(groups, int):
        return None
    return s.graph.emit(CHANNEL_SHUFFLE, [x], x.type, groups=groups, axis=1)


def _producer(op: Op | None, kind: str) -> Op | None:
    """The op that made the first operand of `op`, if `op` is of this kind."""
    if op is None or op.kind != kind or op.inputs[0] is None:
        return None
    return op.inputs[0].producer


find_shuffles = sweeping(_shuffle)


_MOST_DELEGATED = 4  # XNNPACK takes SPLIT into at most 4 and CONCATENATION of at most 5


def _expand(s: Sweep, op: Op) -> Value | None:
    """The shuffle as LiteRT ops of rank at most 4.

    With channels last, few groups are interleaved by a concatenation along a new last axis:
    before: channel_shuffle(concat(a, b))
    after:  reshape(concat(reshape(a, [..., C/2, 1]), reshape(b, [..., C/2, 1])), [..., C])
    Otherwise by a transpose:
    before: channel_shuffle(x [outer, G*K, inner])
    after:  reshape(transpose(reshape(x, [outer, G, K, inner]), [0, 2, 1, 3]), x.shape)
    """
    if op.kind != CHANNEL_SHUFFLE or op.inputs[0] is None:
        return None
    x, axis, groups = op.inputs[0], op.attrs["axis"], op.attrs["groups"]
    if axis == x.rank - 1 and groups <= _MOST_DELEGATED:
        return _interleave(s, x, groups)
    outer, inner = numel(x.shape[:axis]), numel(x.shape[axis + 1 :])
    tail = [] if inner == 1 else [inner]
    split = tfl.reshape(s.graph, x, [outer, groups, x.shape[axis] // groups, *tail])
    swapped = tfl.transpose(s.graph, split, [0, 2, 1, *range(3, split.rank)])
    return tfl.reshape(s.graph, swapped, x.shape)


def _interleave(s: Sweep, x: Value, groups: int) -> Value:
    """Channels of equal parts of the last axis in turn."""
    columns = []
    for part in _parts(s, x, groups):
        outer = (part.shape[0], numel(part.shape[1:-1]))
        columns.append(tfl.reshape(s.graph, part, (*outer, part.shape[-1], 1)))
    return tfl.reshape(s.graph, tfl.concatenation(s.graph, columns, axis=-1), x.shape)


def _parts(s: Sweep, x: Value, groups: int) -> list[Value]:
    """Equal parts of the last axis: what `x` was concatenated from, or a SPLIT of it."""
    maker = x.producer
    if maker is not None and maker.kind == "CONCATENATION" and len(maker.inputs) == groups:
        parts = [v for v in maker.inputs if v is not None]
        same_axis = maker.attrs["axis"] % x.rank == x.rank - 1
        if same_axis and all(v.shape == parts[0].shape for v in parts):
            return parts
    return tfl.split(s.graph, x, groups, axis=-1)


expand_shuffles = sweeping(_expand)
