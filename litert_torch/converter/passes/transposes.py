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
    if perm is None or x is None or not moves_nothing(x.shape, perm):
        return None
    return tfl.reshape(s.graph, x, op.output.shape)


def moves_nothing(shape: Sequence[Size], perm: Sequence[int]) -> bool:
    """Whether a transpose of `shape` leaves the elements in their order."""
    long_axes = [p for p in perm if shape[p] != 1]
    return long_axes == sorted(long_axes)


def unit_axes_before_transpose(s: Sweep, op: Op) -> Value | None:
    """Unit axes come and go before a transpose that follows another reshape.

    before: reshape(transpose(reshape(x, [5,2,3]), [1,0,2]), [1,2,5,3])
    after:  transpose(reshape(reshape(x, [5,2,3]), [1,5,2,3]), [0,2,1,3])
    """
    moved = operand(op, "RESHAPE")
    perm = permutation(moved.producer) if moved is not None else None
    y = operand(moved.producer, "TRANSPOSE") if moved is not None else None
    if moved is None or perm is None or y is None or not s.only_user(moved):
        return None
    if y.producer is None or y.producer.kind != "RESHAPE":
        return None
    long_axes = [p for p in perm if y.shape[p] != 1]
    if [y.shape[p] for p in long_axes] != [n for n in op.output.shape if n != 1]:
        return None
    if op.output.rank > 4 or moves_nothing(y.shape, perm):
        return None
    order, shape = _spread(long_axes, y.shape, op.output.shape)
    return tfl.transpose(s.graph, tfl.reshape(s.graph, y, shape), order)


def _spread(
    long_axes: Sequence[int], old: Sequence[Size], target: Sequence[Size]
) -> tuple[list[int], list[Size]]:
    """The permutation and operand shape that give `target`; unit axes stay in their places."""
    order, shape = list(range(len(target))), list(target)
    places = [i for i, n in enumerate(target) if n != 1]
    for axis, place in zip(sorted(long_axes), places, strict=True):
        shape[place] = old[axis]
        order[places[list(long_axes).index(axis)]] = place
    return order, shape


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
