"""Index tensors as GATHER and SCATTER_ND take them: int32, not negative, one for merged axes."""

from collections.abc import Sequence

import numpy as np

from litert_torch.converter import dims, dynamic_sizes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const

_KEEP_SIGN = frozenset(
    {"RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "CAST", "BROADCAST_TO", "TILE", "GATHER"}
)
_NEVER_NEGATIVE = frozenset({"ARG_MAX", "ARG_MIN", "SHAPE", "ABS", "SQUARE", "RELU", "ONE_HOT"})
_OF_BOTH = frozenset({"ADD", "MUL", "FLOOR_DIV", "MINIMUM", "FLOOR_MOD", "CONCATENATION"})
_MAX_DEPTH = 12


def as_index(g: Graph, index: Value) -> Value:
    """The index as int32, of any shape; its elements must not be negative."""
    return tfl.cast(g, index, DType.INT32)


def wrapped(g: Graph, index: Value, size: Size) -> Value:
    """The index as int32 with negative elements counted from the end of an axis of `size`."""
    if index.const is not None and isinstance(size, int):
        values = index.read().astype(np.int64)
        return const(np.where(values < 0, values + size, values), DType.INT32)
    index = as_index(g, index)
    if is_non_negative(index):
        return index
    return tfl.floor_mod(g, index, dynamic_sizes.scalar(g, size))


def is_non_negative(v: Value, depth: int = 0) -> bool:
    """Whether the ops that made an integer `v` cannot yield a negative number."""
    if v.const is not None:
        return bool((v.read() >= 0).all())
    if v.dtype in (DType.BOOL, DType.UINT8):
        return True
    op = v.producer
    if op is None or depth > _MAX_DEPTH:
        return False
    if op.kind in _NEVER_NEGATIVE or (op.kind == "TOPK_V2" and v is op.outputs[1]):
        return True
    if op.kind == "RANGE":
        return all(i is not None and is_non_negative(i, depth + 1) for i in op.inputs[::2])
    if op.kind in _KEEP_SIGN:
        source = op.inputs[0]
        return (
            source is not None
            and source.dtype != DType.FLOAT32
            and is_non_negative(source, depth + 1)
        )
    if op.kind in _OF_BOTH:
        return all(i is not None and is_non_negative(i, depth + 1) for i in op.inputs)
    return False


def merged(g: Graph, indices: Sequence[Value], sizes: Sequence[Size]) -> Value:
    """One row-major int32 index into axes of `sizes` merged, from one each; shapes broadcast."""
    total = wrapped(g, indices[0], sizes[0])
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        scaled = multiplied(g, total, size)
        total = added(g, scaled, wrapped(g, index, size))
    return total


def multiplied(g: Graph, index: Value, size: Size) -> Value:
    """Index times a size; computed now where both are known."""
    if index.const is not None and isinstance(size, int):
        return const(index.read() * size, DType.INT32)
    return tfl.mul(g, index, dynamic_sizes.scalar(g, size))


def added(g: Graph, a: Value, b: Value) -> Value:
    """The sum of two int32 indices; computed now where both are known."""
    if a.const is not None and b.const is not None:
        return const(a.read() + b.read(), DType.INT32)
    return tfl.add(g, a, b)


def with_batch(g: Graph, index: Value, batches: int, size: int) -> Value:
    """[B, N] indices into [B, size] as indices into the B*size elements in a row."""
    starts = const(np.arange(batches)[:, None] * size, DType.INT32)
    return added(g, index, starts)


def transposed_to_last(rank: int, axis: int) -> list[int]:
    """The permutation that moves `axis` to the end."""
    return [a for a in range(rank) if a != axis] + [axis]


def transposed_from_last(rank: int, axis: int) -> list[int]:
    """The permutation that undoes `transposed_to_last`."""
    return [*range(axis), rank - 1, *range(axis, rank - 1)]


def flattened(g: Graph, x: Value) -> Value:
    """x as a vector."""
    return tfl.reshape(g, x, (dims.numel(x.shape),))
