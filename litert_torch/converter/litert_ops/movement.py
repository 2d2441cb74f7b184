"""Operators that move elements without changing them."""

from collections.abc import Sequence

from litert_torch.converter import dims
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const, retyped

INT32 = DType.INT32


def broadcast_to(g: Graph, x: Value, shape: Sequence[Size]) -> Value:
    """x repeated along axes of size 1 to `shape`."""
    if tuple(shape) == x.shape:
        return x
    return g.emit("BROADCAST_TO", [x, shape_value(g, shape)], retyped(x, shape=tuple(shape)))


def concatenation(g: Graph, values: Sequence[Value], *, axis: int) -> Value:
    """The values one after another along `axis`."""
    if len(values) == 1:
        return values[0]
    first = values[0]
    axis %= first.rank
    shape = list(first.shape)
    shape[axis] = sum((v.shape[axis] for v in values[1:]), first.shape[axis])
    return g.emit(
        "CONCATENATION",
        values,
        retyped(first, shape=tuple(shape)),
        axis=axis,
        fusedActivationFunction=0,
    )


def copy(g: Graph, x: Value) -> Value:
    """The same tensor in a buffer of its own."""
    return g.emit("RESHAPE", [x, shape_value(g, x.shape, infer=True)], x.type)


def depth_to_space(g: Graph, x: Value, *, block_size: int) -> Value:
    """[N, H, W, b*b*C] to [N, H*b, W*b, C]; the block's row is the slowest channel index."""
    n, h, w, c = x.shape
    shape = (n, h * block_size, w * block_size, c // block_size**2)
    return g.emit("DEPTH_TO_SPACE", [x], retyped(x, shape=shape), blockSize=block_size)


def expand_dims(g: Graph, x: Value, axis: int) -> Value:
    """x with an axis of size 1 inserted at `axis`: a RESHAPE, which delegates take."""
    axis %= x.rank + 1
    return reshape(g, x, (*x.shape[:axis], 1, *x.shape[axis:]))


def fill(g: Graph, shape: Sequence[Size], value: Value) -> Value:
    """A tensor of `shape` with the scalar `value` everywhere."""
    return g.emit("FILL", [shape_value(g, shape), value], TensorType(tuple(shape), value.dtype))


def mirror_pad(g: Graph, x: Value, pads: Sequence[tuple[int, int]], *, symmetric: bool) -> Value:
    """x with reflected borders; `symmetric` repeats the edge element."""
    shape = tuple(s + a + b for s, (a, b) in zip(x.shape, pads, strict=True))
    paddings = const([list(p) for p in pads], INT32)
    return g.emit("MIRROR_PAD", [x, paddings], retyped(x, shape=shape), mode=int(symmetric))


def pack(g: Graph, values: Sequence[Value], *, axis: int) -> Value:
    """The values stacked along a new `axis`."""
    first = values[0]
    axis %= first.rank + 1
    shape = (*first.shape[:axis], len(values), *first.shape[axis:])
    return g.emit("PACK", values, retyped(first, shape=shape), axis=axis, valuesCount=len(values))


def pad(
    g: Graph, x: Value, pads: Sequence[tuple[Size, Size]], value: float | int | bool = 0
) -> Value:
    """x with (before, after) elements of `value` added on each axis."""
    if all(p == (0, 0) for p in pads):
        return x
    shape = tuple(s + a + b for s, (a, b) in zip(x.shape, pads, strict=True))
    amounts = shape_value(g, [amount for pair in pads for amount in pair])
    paddings = reshape(g, amounts, (len(pads), 2))
    if value == 0:
        return g.emit("PAD", [x, paddings], retyped(x, shape=shape))
    filler = const([value], x.dtype)
    return g.emit("PADV2", [x, paddings, filler], retyped(x, shape=shape))


def range(g: Graph, start: Value, limit: Value, delta: Value, size: Size) -> Value:
    """start, start + delta, ... below limit, `size` of them; operands are scalars."""
    return g.emit("RANGE", [start, limit, delta], TensorType((size,), start.dtype))


def reshape(g: Graph, x: Value, shape: Sequence[Size]) -> Value:
    """The same elements in row-major order under another shape."""
    shape = tuple(shape)
    if shape == x.shape:
        return x
    if x.const is not None and dims.is_static(shape):
        return const(x.const.reshape(dims.static(shape)))
    return g.emit(
        "RESHAPE",
        [x, shape_value(g, shape, infer=True)],
        retyped(x, shape=shape),
        **({"newShape": list(shape)} if dims.is_static(shape) else {}),
    )


def reverse_v2(g: Graph, x: Value, axes: Sequence[int]) -> Value:
    """x back to front along `axes`."""
    return g.emit("REVERSE_V2", [x, const(list(axes), INT32)], x.type)


def shape(g: Graph, x: Value) -> Value:
    """The run-time shape as an int32 vector."""
    return g.emit("SHAPE", [x], TensorType((x.rank,), INT32), outType=INT32)


def slice(g: Graph, x: Value, begin: Sequence[int], size: Sequence[Size]) -> Value:
    """size[i] elements from begin[i] on each axis; a dynamic rest of an axis is written as -1."""
    if tuple(size) == x.shape:
        return x
    rest = zip(begin, size, x.shape, strict=True)
    sizes = [-1 if not isinstance(s, int) and b + s == whole else s for b, s, whole in rest]
    operands = [x, const(list(begin), INT32), shape_value(g, sizes)]
    return g.emit("SLICE", operands, retyped(x, shape=tuple(size)))


def slice_at(g: Graph, x: Value, begin: Value, size: Sequence[Size]) -> Value:
    """As `slice`, from a run-time int32 vector `begin`."""
    return g.emit("SLICE", [x, begin, shape_value(g, size)], retyped(x, shape=tuple(size)))


def space_to_depth(g: Graph, x: Value, *, block_size: int) -> Value:
    """[N, H*b, W*b, C] to [N, H, W, b*b*C]; the inverse of depth_to_space."""
    n, h, w, c = x.shape
    shape = (n, h // block_size, w // block_size, c * block_size**2)
    return g.emit("SPACE_TO_DEPTH", [x], retyped(x, shape=shape), blockSize=block_size)


def split(g: Graph, x: Value, count: int, *, axis: int) -> list[Value]:
    """`count` equal parts along `axis`."""
    axis %= x.rank
    part = (*x.shape[:axis], x.shape[axis] // count, *x.shape[axis + 1 :])
    operands = [const(axis, INT32), x]
    return g.emit_many("SPLIT", operands, [retyped(x, shape=part)] * count, numSplits=count)


def strided_slice(
    g: Graph,
    x: Value,
    begin: Sequence[Size],
    end: Sequence[Size],
    strides: Sequence[int],
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    shape: Sequence[Size] | None = None,
) -> Value:
    """Every strides[i]-th element of begin[i] <= index < end[i].

    A mask's bit i opens that end of axis i. Without `shape`, all indices must be non-negative.
    """
    spans = zip(begin, end, strides, strict=True)
    if shape is None:
        shape = tuple(-(-(e - b) // s) for b, e, s in spans)
    operands = [x, shape_value(g, begin), shape_value(g, end), const(list(strides), INT32)]
    return g.emit(
        "STRIDED_SLICE",
        operands,
        retyped(x, shape=tuple(shape)),
        beginMask=begin_mask,
        endMask=end_mask,
        ellipsisMask=0,
        newAxisMask=0,
        shrinkAxisMask=0,
    )


def tile(g: Graph, x: Value, multiples: Sequence[Size]) -> Value:
    """x repeated multiples[i] times along axis i."""
    shape = tuple(s * m for s, m in zip(x.shape, multiples, strict=True))
    return g.emit("TILE", [x, shape_value(g, multiples)], retyped(x, shape=shape))


def transpose(g: Graph, x: Value, perm: Sequence[int]) -> Value:
    """Axes reordered: result axis i is axis perm[i] of x."""
    perm = [p % x.rank for p in perm]
    if perm == sorted(perm):
        return x
    if x.const is not None:
        return const(x.const.transpose(perm))
    shape = tuple(x.shape[axis] for axis in perm)
    return g.emit("TRANSPOSE", [x, const(perm, INT32)], retyped(x, shape=shape))


def unpack(g: Graph, x: Value, *, axis: int) -> list[Value]:
    """The slices along `axis`, without it."""
    axis %= x.rank
    count = int(x.shape[axis])
    part = retyped(x, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
    return g.emit_many("UNPACK", [x], [part] * count, axis=axis, num=count)


def shape_value(g: Graph, shape: Sequence[Size], *, infer: bool = False) -> Value:
    """`shape` as an int32 vector: a constant where it is static, else computed at run time.

    With `infer`, one dynamic size is written as -1, which RESHAPE works out by itself.
    """
    if dims.is_static(shape):
        return const(list(dims.static(shape)), INT32)
    dynamic = [s for s in shape if not isinstance(s, int)]
    if infer and len(dynamic) == 1:
        return const([s if isinstance(s, int) else -1 for s in shape], INT32)
    from litert_torch.converter import dynamic_sizes

    return dynamic_sizes.vector(g, shape)
