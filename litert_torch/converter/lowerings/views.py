"""Views: the same elements under another shape, or in another order of axes."""

from collections.abc import Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim, Shape, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.torch_types import compute_dtype, dtype_of
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_MAX_TRANSPOSE_RANK = 6


def resolved(size: Sequence[Size], total: Size) -> Shape:
    """`size` with its -1, if any, replaced by what makes `total` elements."""
    size = tuple(size)
    if -1 not in size:
        return size
    at = size.index(-1)
    known = dims.numel(size[:at] + size[at + 1 :])
    return (*size[:at], quotient(total, known), *size[at + 1 :])


def quotient(total: Size, known: Size) -> Size:
    """`total` divided by `known`, which goes into it without remainder."""
    if not isinstance(known, Dim) and not isinstance(total, Dim):
        return total // known if known else 0
    total = total if isinstance(total, Dim) else dims.Dim(_integer(total))
    return total // known


def _integer(number: int) -> object:
    import sympy

    return sympy.Integer(number)


@lowers(aten.view.default, aten._unsafe_view.default)
def view(g: Graph, x: Value, size: Sequence[Size]) -> Value:
    """RESHAPE; one size may be -1."""
    return tfl.reshape(g, x, resolved(size, dims.numel(x.shape)))


@lowers(aten.reshape.default)
def reshape(g: Graph, x: Value, shape: Sequence[Size]) -> Value:
    """RESHAPE; one size may be -1."""
    return tfl.reshape(g, x, resolved(shape, dims.numel(x.shape)))


@lowers(aten.view_as.default, aten.reshape_as.default)
def view_as(g: Graph, x: Value, other: Value) -> Value:
    """RESHAPE to the shape of `other`."""
    return tfl.reshape(g, x, other.shape)


@lowers(aten.view.dtype)
def view_dtype(g: Graph, x: Value, dtype: torch.dtype) -> Value:
    """BITCAST to a dtype of the same width; others, and those that are computed in another, not."""
    kept = compute_dtype(dtype) == dtype_of(dtype) and DType.BOOL not in (x.dtype, dtype_of(dtype))
    if kept and dtype_of(dtype).bits == x.dtype.bits:
        return x if dtype_of(dtype) == x.dtype else tfl.bitcast(g, x, dtype_of(dtype))
    raise UnsupportedCaseError(
        f"reads the bytes of a {x.dtype} tensor as {dtype}: convert values with .to() instead"
    )


@lowers(aten.flatten.using_ints)
def flatten(g: Graph, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Axes start_dim to end_dim, inclusive, as one."""
    if x.rank == 0:
        return tfl.reshape(g, x, (1,))
    start, end = start_dim % x.rank, end_dim % x.rank
    merged = dims.numel(x.shape[start : end + 1])
    return tfl.reshape(g, x, (*x.shape[:start], merged, *x.shape[end + 1 :]))


@lowers(aten.ravel.default)
def ravel(g: Graph, x: Value) -> Value:
    """All axes as one."""
    return flatten(g, x)


@lowers(aten.unflatten.int)
def unflatten(g: Graph, x: Value, dim: int, sizes: Sequence[Size]) -> Value:
    """Axis `dim` as several."""
    dim %= x.rank
    return tfl.reshape(g, x, (*x.shape[:dim], *resolved(sizes, x.shape[dim]), *x.shape[dim + 1 :]))


@lowers(aten.squeeze.default)
def squeeze(g: Graph, x: Value) -> Value:
    """Without the axes of size 1."""
    return tfl.reshape(g, x, [s for s in x.shape if s != 1])


@lowers(aten.squeeze.dim)
def squeeze_dim(g: Graph, x: Value, dim: int) -> Value:
    """Without axis `dim`, if its size is 1."""
    return squeeze_dims(g, x, [dim])


@lowers(aten.squeeze.dims)
def squeeze_dims(g: Graph, x: Value, dim: Sequence[int]) -> Value:
    """Without those of the axes `dim` that have size 1."""
    gone = {d % max(x.rank, 1) for d in dim}
    return tfl.reshape(g, x, [s for i, s in enumerate(x.shape) if s != 1 or i not in gone])


@lowers(aten.unsqueeze.default)
def unsqueeze(g: Graph, x: Value, dim: int) -> Value:
    """An axis of size 1 inserted before axis `dim`."""
    return tfl.expand_dims(g, x, dim)


@lowers(aten.expand.default)
def expand(g: Graph, x: Value, size: Sequence[Size], *, implicit: bool = False) -> Value:
    """BROADCAST_TO, or RESHAPE where only axes of size 1 are new; -1 keeps a size."""
    own = (1,) * (len(size) - x.rank) + x.shape
    target = [mine if s == -1 else s for s, mine in zip(size, own, strict=True)]
    return broadcast(g, x, target)


@lowers(aten.expand_as.default)
def expand_as(g: Graph, x: Value, other: Value) -> Value:
    """x broadcast to the shape of `other`."""
    return broadcast(g, x, other.shape)


@lowers(aten.broadcast_to.default)
def broadcast_to(g: Graph, x: Value, size: Sequence[Size]) -> Value:
    """x broadcast to `size`."""
    return expand(g, x, size)


def broadcast(g: Graph, x: Value, shape: Sequence[Size]) -> Value:
    """x broadcast to `shape`."""
    own = (1,) * (len(shape) - x.rank) + x.shape
    if tuple(shape) == own:
        return tfl.reshape(g, x, own)
    return tfl.broadcast_to(g, x, shape)


def transposed(g: Graph, x: Value, perm: Sequence[int]) -> Value:
    """x with result axis i taken from axis perm[i]; axes that stay together count as one."""
    runs = sum(a + 1 != b for a, b in zip([-2, *perm], perm, strict=False))
    if runs > _MAX_TRANSPOSE_RANK:
        raise UnsupportedCaseError(
            f"reorders {runs} axes; LiteRT takes {_MAX_TRANSPOSE_RANK}: permute in two steps"
        )
    if x.rank <= _MAX_TRANSPOSE_RANK:
        return tfl.transpose(g, x, perm)
    return _transposed_by_runs(g, x, perm)


def _transposed_by_runs(g: Graph, x: Value, perm: Sequence[int]) -> Value:
    """As `transposed`, with each run of axes that stay together merged into one."""
    runs: list[list[int]] = []
    for axis in perm:
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    in_order = sorted(runs)
    merged = tfl.reshape(g, x, [dims.numel([x.shape[a] for a in run]) for run in in_order])
    moved = tfl.transpose(g, merged, [in_order.index(run) for run in runs])
    return tfl.reshape(g, moved, [x.shape[a] for a in perm])


@lowers(aten.permute.default)
def permute(g: Graph, x: Value, dims: Sequence[int]) -> Value:
    """TRANSPOSE."""
    return transposed(g, x, [d % x.rank for d in dims])


@lowers(aten.transpose.int, aten.swapdims.default)
def transpose(g: Graph, x: Value, dim0: int, dim1: int) -> Value:
    """Two axes exchanged."""
    if x.rank == 0:
        return x
    perm = list(range(x.rank))
    perm[dim0], perm[dim1] = perm[dim1], perm[dim0]
    return transposed(g, x, perm)


@lowers(aten.swapaxes.default)
def swapaxes(g: Graph, x: Value, axis0: int, axis1: int) -> Value:
    """Two axes exchanged."""
    return transpose(g, x, axis0, axis1)


@lowers(aten.t.default)
def t(g: Graph, x: Value) -> Value:
    """A matrix transposed; a vector or a number as it is."""
    return transpose(g, x, 0, 1) if x.rank == 2 else x


@lowers(aten.numpy_T.default)
def numpy_t(g: Graph, x: Value) -> Value:
    """All axes in reverse order."""
    return transposed(g, x, range(x.rank)[::-1])


@lowers(aten.mT.default)
def m_t(g: Graph, x: Value) -> Value:
    """The last two axes exchanged."""
    return transpose(g, x, -2, -1)


def moved(g: Graph, x: Value, source: Sequence[int], destination: Sequence[int]) -> Value:
    """Axes source[i] at destination[i], the others in order in the places left."""
    came = dict(zip([d % x.rank for d in destination], [s % x.rank for s in source], strict=True))
    rest = iter([a for a in range(x.rank) if a not in came.values()])
    return transposed(g, x, [came[a] if a in came else next(rest) for a in range(x.rank)])


@lowers(aten.movedim.intlist, aten.moveaxis.intlist)
def movedim(g: Graph, x: Value, source: Sequence[int], destination: Sequence[int]) -> Value:
    """Axes source[i] at destination[i], the others in order in the places left."""
    return moved(g, x, source, destination)


@lowers(aten.movedim.int, aten.moveaxis.int)
def movedim_int(g: Graph, x: Value, source: int, destination: int) -> Value:
    """One axis at another place."""
    return moved(g, x, [source], [destination])
