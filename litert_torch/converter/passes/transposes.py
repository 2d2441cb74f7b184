"""Rewrites of TRANSPOSE and RESHAPE among themselves."""

from collections.abc import Sequence

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size, numel
from litert_torch.converter.ir import Op, Value
from litert_torch.converter.passes import Sweep


def permutation(op: Op | None) -> list[int] | None:
    """The permutation of a TRANSPOSE, else None."""
    if op is None or op.kind != "TRANSPOSE":
        return None
    perm = op.inputs[1]
    return [int(p) for p in perm.read()] if perm is not None and perm.const is not None else None


def operand(op: Op | None, kind: str, position: int = 0) -> Value | None:
    """An operand of `op` if it is of this kind."""
    return op.inputs[position] if op is not None and op.kind == kind else None


def merge_transposes(s: Sweep, op: Op) -> Value | None:
    """Two transposes become one, or none when the second undoes the first.

    before: transpose(transpose(x, p), q)
    after:  transpose(x, p[q]), or x when p[q] is the identity
    """
    q = permutation(op)
    middle = operand(op, "TRANSPOSE")
    p = permutation(middle.producer) if middle is not None else None
    x = operand(middle.producer, "TRANSPOSE") if middle is not None else None
    if p is None or q is None or x is None:
        return None
    return tfl.transpose(s.graph, x, [p[i] for i in q])


def merge_reshapes(s: Sweep, op: Op) -> Value | None:
    """The last of several reshapes alone decides; one that changes nothing goes.

    before: reshape(reshape(x, a), b)
    after:  reshape(x, b), or x when it has shape b
    """
    x = operand(op, "RESHAPE")
    if x is None:
        return None
    if x.shape == op.output.shape and (x.producer is not None or op.output not in s.outputs):
        return x if not (op.output in s.outputs and x in s.outputs) else None
    inner = operand(x.producer, "RESHAPE")
    return tfl.reshape(s.graph, inner, op.output.shape) if inner is not None else None


def transpose_as_reshape(s: Sweep, op: Op) -> Value | None:
    """A transpose that only moves axes of size 1 moves no element.

    before: transpose(x [N,1,1,C], [0,3,1,2])
    after:  reshape(x, [N,C,1,1])
    """
    perm, x = permutation(op), operand(op, "TRANSPOSE")
    if perm is None or x is None:
        return None
    long_axes = [p for p in perm if x.shape[p] != 1]
    if long_axes != sorted(long_axes):
        return None
    return tfl.reshape(s.graph, x, op.output.shape)


def lower_transpose_rank(s: Sweep, op: Op) -> Value | None:
    """Axes that stay neighbours are one axis: a transpose of rank > 4 mostly is one of rank <= 4.

    before: transpose(x [2,3,4,5,6], [0,2,1,3,4])
    after:  reshape(transpose(reshape(x, [2,3,4,30]), [0,2,1,3]), ...)
    """
    perm, x = permutation(op), operand(op, "TRANSPOSE")
    if perm is None or x is None or x.rank <= 4:
        return None
    groups = _neighbours([p for p in perm if x.shape[p] != 1])
    if len(groups) >= x.rank:
        return None
    source_order = sorted(groups)
    merged = tfl.reshape(s.graph, x, [_size(x, group) for group in source_order])
    moved = tfl.transpose(s.graph, merged, [source_order.index(group) for group in groups])
    return tfl.reshape(s.graph, moved, op.output.shape)


def _neighbours(perm: Sequence[int]) -> list[list[int]]:
    """Runs of axes that follow each other before and after the permutation."""
    groups: list[list[int]] = []
    for p in perm:
        if groups and p == groups[-1][-1] + 1:
            groups[-1].append(p)
        else:
            groups.append([p])
    return groups


def _size(x: Value, axes: Sequence[int]) -> Size:
    return numel([x.shape[a] for a in axes])
