"""SLICE and SPLIT moved towards the weights, where they cost nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Constant
from litert_torch.converter.dims import Shape, Size, is_static, numel
from litert_torch.converter.ir import Graph, Op, Value, const
from litert_torch.converter.passes import Sweep
from litert_torch.converter.passes.transposes import moves_nothing, operand, permutation


@dataclass(frozen=True)
class _Range:
    """What a SLICE takes of each axis."""

    begin: tuple[int, ...]
    size: Shape


def _range_of(op: Op) -> _Range | None:
    """The range of a SLICE with constant begin."""
    if op.kind != "SLICE" or op.inputs[1] is None or op.inputs[1].const is None:
        return None
    return _Range(tuple(int(b) for b in op.inputs[1].read()), op.output.shape)


def slice_before_transpose(s: Sweep, op: Op) -> Value | None:
    """Where only slices of a transposed tensor are read, slice first.

    before: slice(transpose(x, p), ...)
    after:  transpose(slice(x, ...), p), or a reshape where that moves nothing
    """
    taken, moved = _range_of(op), operand(op, "SLICE")
    perm = permutation(moved.producer) if moved is not None else None
    x = operand(moved.producer, "TRANSPOSE") if moved is not None else None
    if taken is None or moved is None or perm is None or x is None or not _only_sliced(s, moved):
        return None
    back = [perm.index(axis) for axis in range(len(perm))]
    part = tfl.slice(s.graph, x, [taken.begin[i] for i in back], [taken.size[i] for i in back])
    if moves_nothing(part.shape, perm):
        return tfl.reshape(s.graph, part, op.output.shape)
    return tfl.transpose(s.graph, part, perm)


def _only_sliced(s: Sweep, v: Value) -> bool:
    readers = s.users.get(v, [])
    return v not in s.outputs and all(r.kind == "SLICE" for r in readers)


def slice_before_reshape(s: Sweep, op: Op) -> Value | None:
    """A slice of an axis that a reshape split off is a slice of the whole axis.

    before: slice(reshape(x [2,5,12], [2,5,3,4]), [0,0,1,0], [2,5,1,4])
    after:  reshape(slice(x, [0,0,4], [2,5,4]), [2,5,1,4])
    """
    taken, split = _range_of(op), operand(op, "SLICE")
    x = operand(split.producer, "RESHAPE") if split is not None else None
    if taken is None or split is None or x is None or not _only_sliced(s, split):
        return None
    groups = _groups(x.shape, split.shape)
    if groups is None:
        return None
    begin, size = [0] * x.rank, list(x.shape)
    for axis, parts in groups:
        merged = _merged(split.shape, taken, parts)
        if merged is None or (axis is None and merged != (0, 1)):
            return None
        if axis is not None:
            begin[axis], size[axis] = merged
    return tfl.reshape(s.graph, tfl.slice(s.graph, x, begin, size), op.output.shape)


def _groups(old: Shape, new: Shape) -> list[tuple[int | None, list[int]]] | None:
    """For each old axis, the new axes that it was split into; None where axes were merged."""
    if not (is_static(old[1:]) and is_static(new[1:])):
        return None
    groups: list[tuple[int | None, list[int]]] = []
    j = 0
    for i, total in enumerate(old):
        parts: list[int] = []
        while j < len(new) and numel([new[p] for p in parts]) != total:
            parts.append(j)
            j += 1
        if numel([new[p] for p in parts]) != total:
            return None
        groups.append((i, parts))
    rest = list(range(j, len(new)))
    return [*groups, (None, rest)] if rest else groups


def _merged(shape: Shape, taken: _Range, parts: Sequence[int]) -> tuple[int, Size] | None:
    """(begin, size) in the unsplit axis, if what is taken of its parts is one run of it."""
    cut = [p for p in parts if taken.size[p] != shape[p]]
    if not cut:
        return 0, numel([shape[p] for p in parts])
    if len(cut) > 1 or any(shape[p] != 1 for p in parts[: parts.index(cut[0])]):
        return None
    inner = numel([shape[p] for p in parts[parts.index(cut[0]) + 1 :]])
    if not isinstance(inner, int):
        return None
    return taken.begin[cut[0]] * inner, taken.size[cut[0]] * inner


def slice_weights(s: Sweep, op: Op) -> Value | list[Value] | None:
    """Parts of a product's columns are products with parts of the weights.

    before: split(fully_connected(x, w, b), 3, axis=-1)
    after:  fully_connected(x, w[:n], b[:n]), fully_connected(x, w[n:2n], b[n:2n]), ...
    """
    whole = operand(op, "SLICE") or operand(op, "SPLIT", 1)
    maker = whole.producer if whole is not None else None
    if whole is None or maker is None or maker.kind != "FULLY_CONNECTED":
        return None
    ranges = _column_ranges(op, whole)
    if ranges is None or not _parts_are_disjoint(s, whole):
        return None
    weights, bias = maker.inputs[1], maker.inputs[2]
    if weights is None or weights.const is None or (bias is not None and bias.const is None):
        return None
    results = [
        _part_of_product(s.graph, maker, v, begin)
        for v, (begin, _) in zip(op.outputs, ranges, strict=True)
    ]
    return results if op.kind == "SPLIT" else results[0]


def _column_ranges(op: Op, whole: Value) -> list[tuple[int, int]] | None:
    """(begin, size) along the last axis of each result; None where another axis is cut."""
    if op.kind == "SPLIT":
        axis = op.inputs[0]
        if axis is None or int(axis.read().reshape(-1)[0]) % whole.rank != whole.rank - 1:
            return None
        size = int(op.output.shape[-1])
        return [(i * size, size) for i in range(len(op.outputs))]
    taken = _range_of(op)
    if taken is None or taken.size[:-1] != whole.shape[:-1] or not is_static(taken.size[-1:]):
        return None
    return [(taken.begin[-1], int(taken.size[-1]))]


def _parts_are_disjoint(s: Sweep, whole: Value) -> bool:
    """Whether every reader takes columns that no other takes, so that nothing is done twice."""
    if whole in s.outputs:
        return False
    columns: list[int] = []
    for reader in s.users.get(whole, []):
        ranges = _column_ranges(reader, whole) if reader.kind in {"SLICE", "SPLIT"} else None
        if ranges is None:
            return False
        columns += [c for begin, size in ranges for c in range(begin, begin + size)]
    return len(columns) == len(set(columns))


def _part_of_product(g: Graph, maker: Op, result: Value, begin: int) -> Value:
    size = int(result.shape[-1])
    inputs = [
        v if v is None or i == 0 or v.const is None else const(_rows(v.const, begin, size))
        for i, v in enumerate(maker.inputs)
    ]
    return g.emit(maker.kind, inputs, result.type, **maker.attrs)


def _rows(constant: Constant, begin: int, size: int) -> Constant:
    return constant.derive(
        ("rows", begin, size),
        lambda a: a[begin : begin + size],
        shape=(size, *constant.shape[1:]),
    )
