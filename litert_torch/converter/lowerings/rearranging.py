"""The same elements elsewhere: shuffled between channels and pixels, rolled, flipped, diagonal."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Constant
from litert_torch.converter.dims import Dim, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.channel_last import to_channel_first, to_channel_last
from litert_torch.converter.lowerings.dynamic_positions import positions
from litert_torch.converter.lowerings.slicing import elements_at, sliced
from litert_torch.converter.lowerings.views import moved, transpose, transposed
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_BLOCK_DTYPES = frozenset({DType.FLOAT32, DType.INT32, DType.INT64, DType.INT8, DType.UINT8})


def _as_batch(g: Graph, x: Value) -> Value:
    """[*, C, H, W] as [N, C, H, W]."""
    return tfl.reshape(g, x, (dims.numel(x.shape[:-3]), *x.shape[-3:]))


@lowers(aten.pixel_shuffle.default)
def pixel_shuffle(g: Graph, x: Value, upscale_factor: int) -> Value:
    """[*, C*r*r, H, W] to [*, C, H*r, W*r] by DEPTH_TO_SPACE.

    PyTorch's channel index is (c, row, column), DEPTH_TO_SPACE's (row, column, c).
    """
    r, (c, h, w) = upscale_factor, x.shape[-3:]
    channels = int(c) // r**2
    shape = (*x.shape[:-3], channels, h * r, w * r)
    batch = _as_batch(g, x)
    if x.dtype not in _BLOCK_DTYPES:
        blocks = tfl.reshape(g, batch, (batch.shape[0], channels, r, r, h, w))
        return tfl.reshape(g, transposed(g, blocks, (0, 1, 4, 2, 5, 3)), shape)
    image = _with_channels(g, to_channel_last(g, batch), (channels, r * r))
    image = tfl.depth_to_space(g, image, block_size=r)
    return tfl.reshape(g, to_channel_first(g, image), shape)


@lowers(aten.pixel_unshuffle.default)
def pixel_unshuffle(g: Graph, x: Value, downscale_factor: int) -> Value:
    """[*, C, H*r, W*r] to [*, C*r*r, H, W] by SPACE_TO_DEPTH; the inverse of pixel_shuffle."""
    r, (c, h, w) = downscale_factor, x.shape[-3:]
    channels = int(c)
    shape = (*x.shape[:-3], channels * r * r, h // r, w // r)
    batch = _as_batch(g, x)
    if x.dtype not in _BLOCK_DTYPES:
        blocks = tfl.reshape(g, batch, (batch.shape[0], channels, h // r, r, w // r, r))
        return tfl.reshape(g, transposed(g, blocks, (0, 1, 3, 5, 2, 4)), shape)
    image = tfl.space_to_depth(g, to_channel_last(g, batch), block_size=r)
    image = _swapped_channels(g, image, (r * r, channels))
    return tfl.reshape(g, to_channel_first(g, image), shape)


@lowers(aten.channel_shuffle.default, aten.native_channel_shuffle.default)
def channel_shuffle(g: Graph, x: Value, groups: int) -> Value:
    """[N, groups*C, ...]: channel (group, c) goes to (c, group)."""
    channels = int(x.shape[1]) // int(groups)
    image = _swapped_channels(g, to_channel_last(g, x), (int(groups), channels))
    return to_channel_first(g, image)


def _swapped_channels(g: Graph, image: Value, factors: tuple[int, int]) -> Value:
    """[..., a*b] with channel (a, b) moved to (b, a)."""
    if 1 in factors:
        return image
    pixels = dims.numel(image.shape[:-1])
    split = tfl.reshape(g, image, (pixels, *factors))
    return tfl.reshape(g, tfl.transpose(g, split, (0, 2, 1)), image.shape)


def _with_channels(g: Graph, image: Value, factors: tuple[int, int]) -> Value:
    """As `_swapped_channels`, at no cost where `image` is a convolution with constant weights.

    Then the filters are reordered instead; nothing reads the first convolution's result any more
    unless the model does.
    """
    op = _before_transposes(image).producer
    if op is None or op.kind != "CONV_2D" or 1 in factors:
        return _swapped_channels(g, image, factors)
    x, weights, bias = op.inputs
    if x is None or weights is None or bias is None or not (weights.const and bias.const):
        return _swapped_channels(g, image, factors)
    if weights.shape[3] != x.shape[3]:  # in groups, where the order of filters is not free
        return _swapped_channels(g, image, factors)
    order = np.arange(int(image.shape[-1])).reshape(factors).T.reshape(-1)
    operands = [x, _reordered(weights.const, order), _reordered(bias.const, order)]
    return g.emit("CONV_2D", operands, image.type, **op.attrs)


def _before_transposes(image: Value) -> Value:
    """What `image` was before two transposes that undo each other."""
    outer = image.producer
    inner = outer.inputs[0].producer if outer and outer.inputs[0] else None
    if outer is None or inner is None or {outer.kind, inner.kind} != {"TRANSPOSE"}:
        return image
    q, p = (op.inputs[1].read().tolist() for op in (outer, inner) if op.inputs[1])
    source = inner.inputs[0]
    return source if source and [p[i] for i in q] == list(range(image.rank)) else image


def _reordered(constant: Constant, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Value:
    """The constant with rows taken in `order`."""
    return const(constant.derive(("rows", tuple(order.tolist())), lambda data: data[order]))


@lowers(aten.roll.default)
def roll(g: Graph, x: Value, shifts: Sequence[int], dims: Sequence[int] = []) -> Value:
    """Each axis cut in two, and the parts exchanged; x flattened where no axis is named."""
    if not dims:
        flat = tfl.reshape(g, x, (_numel(x),))
        return tfl.reshape(g, _rolled(g, flat, shifts[0], 0), x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(g, x, shift, dim % x.rank)
    return x


def _numel(x: Value) -> Size:
    return dims.numel(x.shape)


def _rolled(g: Graph, x: Value, shift: int, axis: int) -> Value:
    size = x.shape[axis]
    if isinstance(size, int):
        shift = int(shift) % size if size else 0
    if shift == 0:
        return x
    halves = [sliced(g, x, axis, -shift, None), sliced(g, x, axis, 0, -shift)]
    return tfl.concatenation(g, halves, axis=axis)


@lowers(aten.flip.default)
def flip(g: Graph, x: Value, dims: Sequence[int]) -> Value:
    """REVERSE_V2 of each run of neighbouring axes: its kernel takes no others."""
    runs: list[list[int]] = []
    for axis in sorted(d % max(x.rank, 1) for d in dims):
        if x.rank == 0 or x.shape[axis] == 1:
            continue
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    for run in runs:
        x = tfl.reverse_v2(g, x, run)
    return x


@lowers(aten.fliplr.default)
def fliplr(g: Graph, x: Value) -> Value:
    """The second axis back to front."""
    return flip(g, x, [1])


@lowers(aten.flipud.default)
def flipud(g: Graph, x: Value) -> Value:
    """The first axis back to front."""
    return flip(g, x, [0])


@lowers(aten.rot90.default)
def rot90(g: Graph, x: Value, k: int = 1, dims: Sequence[int] = [0, 1]) -> Value:
    """A quarter turn from the first of two axes towards the second, `k` times."""
    first, second = (d % x.rank for d in dims)
    turns = k % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(g, x, [first, second])
    turned = flip(g, x, [second if turns == 1 else first])
    return transpose(g, turned, first, second)


@lowers(aten.diagonal.default)
def diagonal(g: Graph, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Elements (i, i + offset) of two axes, as a new last axis: a strided slice of both in one."""
    matrix = moved(g, x, [dim1, dim2], [-2, -1])
    rows, columns = dims.static(matrix.shape[-2:])
    flat = tfl.reshape(g, matrix, (*matrix.shape[:-2], rows * columns))
    return elements_at(g, flat, flat.rank - 1, diagonal_indices(rows, columns, offset))


def diagonal_indices(rows: int, columns: int, offset: int) -> list[int]:
    """Where the elements of a diagonal lie in the row-major matrix."""
    return [r * columns + r + offset for r in range(rows) if 0 <= r + offset < columns]


@lowers(aten.diag_embed.default)
def diag_embed(g: Graph, x: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """The last axis on a diagonal of two new ones, zeros elsewhere, by padding alone.

    Row r of [n, 1] padded to [n, m + 1] begins one element later in each row of [m, m].
    """
    n = int(x.shape[-1])
    m = n + abs(offset)
    lead = x.shape[:-1]
    none = [(0, 0)] * len(lead)
    column = tfl.reshape(g, x, (*lead, n, 1))
    spread = tfl.reshape(g, tfl.pad(g, column, [*none, (0, 0), (0, m)]), (*lead, n * (m + 1)))
    length = n * (m + 1) - m
    spread = sliced(g, spread, len(lead), 0, length)
    front = max(-offset, 0) * m + max(offset, 0)
    flat = tfl.pad(g, spread, [*none, (front, m * m - length - front)])
    matrix = tfl.reshape(g, flat, (*lead, m, m))
    rank = len(lead) + 2
    first, second = dim1 % rank, dim2 % rank
    return moved(g, matrix, [-2, -1], [first, second])


@lowers(aten.diag.default)
def diag(g: Graph, x: Value, diagonal: int = 0) -> Value:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector."""
    return diag_embed(g, x, diagonal) if x.rank == 1 else _diagonal(g, x, diagonal)


_diagonal = diagonal


@lowers(aten.tril.default)
def tril(g: Graph, x: Value, diagonal: Size = 0) -> Value:
    """Elements (i, j) with j <= i + diagonal, zeros elsewhere."""
    return _triangle(g, x, diagonal, lower=True)


@lowers(aten.triu.default)
def triu(g: Graph, x: Value, diagonal: Size = 0) -> Value:
    """Elements (i, j) with j >= i + diagonal, zeros elsewhere."""
    return _triangle(g, x, diagonal, lower=False)


def _triangle(g: Graph, x: Value, diagonal: Size, *, lower: bool) -> Value:
    """SELECT_V2, not a product with a mask: the rest may hold infinities."""
    if isinstance(diagonal, Dim):
        raise UnsupportedCaseError(f"the diagonal is dynamic ({diagonal}); pass a number")
    mask = _triangle_mask(g, x.shape[-2], x.shape[-1], diagonal, lower=lower)
    if x.dtype == DType.BOOL:
        return tfl.logical_and(g, x, mask)
    return tfl.select_v2(g, mask, x, const(0, x.dtype))


def _triangle_mask(g: Graph, rows: Size, columns: Size, diagonal: int, *, lower: bool) -> Value:
    """Bool [rows, columns]; computed when the model runs where a size is dynamic."""
    if isinstance(rows, int) and isinstance(columns, int):
        inside = np.tri(rows, columns, diagonal if lower else diagonal - 1, dtype=bool)
        return const(inside if lower else ~inside)
    i = tfl.reshape(g, positions(g, rows), (rows, 1))
    i = tfl.add(g, i, const(diagonal, DType.INT32))
    j = tfl.reshape(g, positions(g, columns), (1, columns))
    return tfl.greater_equal(g, i, j) if lower else tfl.less_equal(g, i, j)
