"""Writing whole rows at index tensors: index_put, index_copy, index_add, index_fill."""

from collections.abc import Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Shape
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.indexing import MASK_DTYPES, resolved_index
from litert_torch.converter.lowerings.indices import flattened, wrapped
from litert_torch.converter.lowerings.kernel_dtypes import widened
from litert_torch.converter.lowerings.promotion import as_value
from litert_torch.converter.lowerings.scatter import Lines
from litert_torch.converter.lowerings.views import broadcast, transposed
from litert_torch.converter.lowerings.writing import Rows, next_under_mask, rows_replaced
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    g: Graph,
    x: Value,
    indices: Sequence[Value | None],
    values: Value,
    accumulate: bool = False,
) -> Value:
    """x[indices] = values, or += with `accumulate`; negative indices count from the end."""
    values = tfl.cast(g, values, x.dtype)
    masks = [a for a, i in enumerate(indices) if _is_run_time_mask(i)]
    if masks:
        return _put_under_mask(g, x, indices, masks[0], values, accumulate)
    if all(i is None for i in indices):
        return _put_everywhere(g, x, values, accumulate)
    single = [i for i in indices if i is not None]
    if len(single) == 1 and not accumulate and single[0].rank == 1 and single[0].const is None:
        axis = [i is not None for i in indices].index(True)
        shape = (*x.shape[:axis], single[0].shape[0], *x.shape[axis + 1 :])
        return rows_replaced(g, x, axis, Rows(single[0], True), broadcast(g, values, shape))
    return _put_at(g, x, indices, values, accumulate)


def _put_at(
    g: Graph, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool
) -> Value:
    """Any index tensors, as one index into their axes merged."""
    at = resolved_index(g, x, indices)
    count = dims.numel(at.index.shape)
    merged = tfl.reshape(g, at.x, (*at.lead, dims.numel(at.sizes), *at.rest))
    values = tfl.reshape(g, broadcast(g, values, at.result_shape), (*at.lead, count, *at.rest))
    index = flattened(g, at.index)
    if accumulate:
        result = _rows_added(g, merged, at.axis, index, values)
    else:
        result = rows_replaced(g, merged, at.axis, Rows(index, False), values)
    result = tfl.reshape(g, result, at.x.shape)
    if at.perm is None:
        return result
    return transposed(g, result, [at.perm.index(a) for a in range(x.rank)])


def _rows_added(g: Graph, x: Value, axis: int, index: Value, values: Value) -> Value:
    """x with rows of `values` added to its rows along `axis` at int32 `index` [N]."""
    return Lines.of_rows(g, x, axis, index, values).summed(g, include_self=True)


def _put_everywhere(g: Graph, x: Value, values: Value, accumulate: bool) -> Value:
    spread = broadcast(g, values, x.shape)
    if not accumulate:
        return spread
    total = tfl.add(g, widened(g, x), widened(g, spread))
    return tfl.cast(g, total, x.dtype)


def _is_run_time_mask(index: Value | None) -> bool:
    return index is not None and index.dtype in MASK_DTYPES and index.const is None


def _put_under_mask(
    g: Graph,
    x: Value,
    indices: Sequence[Value | None],
    axis: int,
    values: Value,
    accumulate: bool,
) -> Value:
    """A select; positions where the mask holds are counted only if values differ among them."""
    mask = indices[axis]
    if mask is None or sum(i is not None for i in indices) > 1:
        raise UnsupportedCaseError("mixes a run-time mask with other indices: use torch.where")
    mask = tfl.cast(g, mask, DType.BOOL)
    rest = x.rank - axis - mask.rank
    if values.rank > rest and values.shape[-rest - 1] != 1:
        if axis:
            raise UnsupportedCaseError("different values under a mask that is not leading")
        rows = next_under_mask(g, flattened(g, mask), values)
        spread = tfl.reshape(g, rows, (*mask.shape, *x.shape[mask.rank :]))
    else:
        spread = tfl.reshape(g, values, _around_mask(values.shape, rest, mask.rank))
    column = tfl.reshape(g, mask, (*mask.shape, *(1,) * rest))
    if accumulate:
        wide = widened(g, x)
        zero = const(0, wide.dtype)
        added = tfl.select_v2(g, column, widened(g, spread), zero)
        return tfl.cast(g, tfl.add(g, wide, added), x.dtype)
    return tfl.select_v2(g, column, spread, x)


def _around_mask(shape: Shape, rest: int, mask_rank: int) -> Shape:
    """A shape [*lead, 1, *rest] with as many ones as the mask has axes."""
    if len(shape) <= rest:
        return shape
    split = len(shape) - rest - 1
    return (*shape[:split], *(1,) * mask_rank, *shape[split + 1 :])


@lowers(aten.index_copy.default)
def index_copy(g: Graph, x: Value, dim: int, index: Value, source: Value) -> Value:
    """x with rows along `dim` replaced; a run of positions is a DYNAMIC_UPDATE_SLICE."""
    shape = x.shape
    x, source = _at_least_vector(g, x), _at_least_vector(g, source)
    y = rows_replaced(g, x, dim % x.rank, Rows(flattened(g, index), False), source)
    return tfl.reshape(g, y, shape)


@lowers(aten.index_add.default)
def index_add(
    g: Graph, x: Value, dim: int, index: Value, source: Value, *, alpha: float = 1
) -> Value:
    """x with alpha times the rows of `source` added to its rows along `dim`."""
    shape = x.shape
    x, source = _at_least_vector(g, x), _at_least_vector(g, source)
    if alpha != 1:
        wide = widened(g, source)
        source = tfl.cast(g, tfl.mul(g, wide, const(alpha, wide.dtype)), x.dtype)
    return tfl.reshape(g, _rows_added(g, x, dim % x.rank, flattened(g, index), source), shape)


@lowers(aten.index_reduce.default)
def index_reduce(
    g: Graph,
    x: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    """x with the rows along `dim` combined with those of `source`."""
    shape = x.shape
    x, source = _at_least_vector(g, x), _at_least_vector(g, source)
    lines = Lines.of_rows(g, x, dim % x.rank, flattened(g, index), source)
    return tfl.reshape(g, lines.reduced(g, reduce, include_self=include_self), shape)


def _at_least_vector(g: Graph, x: Value) -> Value:
    return tfl.reshape(g, x, (1,)) if x.rank == 0 else x


@lowers(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(g: Graph, x: Value, dim: int, index: Value, value: Value | float) -> Value:
    """x with one number in its rows along `dim`; negative indices count from the end."""
    if x.rank == 0:
        return as_value(g, value, x.dtype)
    dim %= x.rank
    size = int(x.shape[dim])
    at = wrapped(g, flattened(g, index), size)
    named = tfl.one_hot(g, at, size, dtype=DType.BOOL)
    column = tfl.reshape(
        g, tfl.reduce_any(g, named, [0], False), (size, *(1,) * (x.rank - dim - 1))
    )
    return tfl.select_v2(g, column, as_value(g, value, x.dtype), x)


@lowers(aten.put.default)
def put(g: Graph, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """Elements of x flattened replaced, or added to; negative indices count from the end."""
    flat = index_put(g, flattened(g, x), [flattened(g, index)], flattened(g, source), accumulate)
    return tfl.reshape(g, flat, x.shape)
