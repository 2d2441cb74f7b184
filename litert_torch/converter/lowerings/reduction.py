"""Sums, products, extremes and truth over axes."""

from collections.abc import Callable, Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Shape
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.litert_ops import reduced_shape
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.kernel_dtypes import (
    accumulated,
    is_nonzero,
    widened,
)
from litert_torch.converter.torch_types import compute_dtype
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

Reducer = Callable[[Graph, Value, Sequence[int], bool], Value]


def axes_of(x: Value, dim: int | Sequence[int] | None) -> list[int]:
    """The axes meant by PyTorch's `dim`, where None and [] are all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.rank))
    return [d % max(x.rank, 1) for d in ([dim] if isinstance(dim, int) else dim)]


def reduced(
    g: Graph, op: Reducer, x: Value, dim: int | Sequence[int] | None, keepdim: bool = False
) -> Value:
    """`op` over `dim`; a number is reduced as a vector of one element."""
    if x.rank == 0:
        return op(g, tfl.reshape(g, x, (1,)), [0], False)
    return op(g, x, axes_of(x, dim), keepdim)


def is_empty(x: Value) -> bool:
    """Whether some size of x is known to be 0."""
    return 0 in x.shape


def dtype_given(dtype: torch.dtype | None) -> DType | None:
    """The DType of an optional dtype argument."""
    return None if dtype is None else compute_dtype(dtype)


@lowers(aten.sum.default)
def sum_all(g: Graph, x: Value, *, dtype: torch.dtype | None = None) -> Value:
    """Sum of all elements; of integers, in int64."""
    return sum_dim(g, x, None, dtype=dtype)


@lowers(aten.sum.dim_IntList)
def sum_dim(
    g: Graph,
    x: Value,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Value:
    """Sum over axes; of integers, in int64."""
    return reduced(g, tfl.sum, accumulated(g, x, dtype_given(dtype)), dim, keepdim)


@lowers(aten.mean.default)
def mean(g: Graph, x: Value, *, dtype: torch.dtype | None = None) -> Value:
    """Mean of all elements."""
    return mean_dim(g, x, None, dtype=dtype)


@lowers(aten.mean.dim)
def mean_dim(
    g: Graph,
    x: Value,
    dim: Sequence[int] | None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Value:
    """Mean over axes."""
    return reduced(g, tfl.mean, tfl.cast(g, x, DType.FLOAT32), dim, keepdim)


def extreme(
    g: Graph, x: Value, dim: int | Sequence[int] | None, keepdim: bool, *, largest: bool
) -> Value:
    """Maximum or minimum over axes; of bools, any or all."""
    if is_empty(x):
        raise UnsupportedCaseError("the maximum or minimum of no elements")
    if x.dtype == DType.BOOL:
        return reduced(g, tfl.reduce_any if largest else tfl.reduce_all, x, dim, keepdim)
    y = reduced(g, tfl.reduce_max if largest else tfl.reduce_min, x, dim, keepdim)
    return tfl.add(g, y, nan_or_zero(g, x, dim, keepdim)) if x.dtype.is_float else y


def nan_or_zero(g: Graph, x: Value, dim: int | Sequence[int] | None, keepdim: bool) -> Value:
    """NaN where there is one over axes, else 0: LiteRT's extremes drop it, PyTorch's promise it.

    A mean of squares, one pass in XNNPACK, has it, and is infinite at most where x is.
    """
    squares = reduced(g, tfl.mean, tfl.square(g, x), dim, keepdim)
    inverse = tfl.div(g, const(1.0, x.dtype), tfl.add(g, squares, const(1.0, x.dtype)))
    return tfl.mul(g, inverse, const(0.0, x.dtype))


@lowers(aten.amax.default)
def amax(g: Graph, x: Value, dim: Sequence[int] = [], keepdim: bool = False) -> Value:
    """Maximum over axes."""
    return extreme(g, x, dim, keepdim, largest=True)


@lowers(aten.amin.default)
def amin(g: Graph, x: Value, dim: Sequence[int] = [], keepdim: bool = False) -> Value:
    """Minimum over axes."""
    return extreme(g, x, dim, keepdim, largest=False)


@lowers(aten.max.default)
def max_all(g: Graph, x: Value) -> Value:
    """Maximum of all elements."""
    return extreme(g, x, None, False, largest=True)


@lowers(aten.min.default)
def min_all(g: Graph, x: Value) -> Value:
    """Minimum of all elements."""
    return extreme(g, x, None, False, largest=False)


@lowers(aten.max.dim)
def max_dim(g: Graph, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """Maxima along an axis and the first places where they are."""
    return [amax(g, x, [dim], keepdim), argmax(g, x, dim, keepdim)]


@lowers(aten.min.dim)
def min_dim(g: Graph, x: Value, dim: int, keepdim: bool = False) -> list[Value]:
    """Minima along an axis and the first places where they are."""
    return [amin(g, x, [dim], keepdim), argmin(g, x, dim, keepdim)]


@lowers(aten.aminmax.default)
def aminmax(g: Graph, x: Value, *, dim: int | None = None, keepdim: bool = False) -> list[Value]:
    """Minimum and maximum, over one axis or all."""
    return [extreme(g, x, dim, keepdim, largest=largest) for largest in (False, True)]


@lowers(aten.argmax.default)
def argmax(g: Graph, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Int64 index of the first maximum along `dim`, or of x flattened."""
    return _place(g, x, dim, keepdim, largest=True)


@lowers(aten.argmin.default)
def argmin(g: Graph, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Int64 index of the first minimum along `dim`, or of x flattened."""
    return _place(g, x, dim, keepdim, largest=False)


def _place(g: Graph, x: Value, dim: int | None, keepdim: bool, *, largest: bool) -> Value:
    if x.rank == 0 or dim is None:
        line, axis = tfl.reshape(g, x, (dims.numel(x.shape),)), 0
        shape: Shape = (1,) * x.rank if keepdim else ()
    else:
        line, axis = x, dim % x.rank
        shape = reduced_shape(x, [axis], keepdim)
    if line.dtype == DType.INT64:
        found = _place_of_int64(g, line, axis, largest=largest)
    else:
        found = (tfl.arg_max if largest else tfl.arg_min)(g, widened(g, line), axis)
    return tfl.cast(g, tfl.reshape(g, found, shape), DType.INT64)


def _place_of_int64(g: Graph, x: Value, axis: int, *, largest: bool) -> Value:
    """By TOPK_V2, since ARG_MAX takes no int64; -1 - x has the reverse order without overflow."""
    if not largest:
        x = tfl.sub(g, const(-1, DType.INT64), x)
    last = tfl.transpose(g, x, [*(a for a in range(x.rank) if a != axis), axis])
    return tfl.topk_v2(g, last, 1)[1]


@lowers(aten.prod.default)
def prod(g: Graph, x: Value, *, dtype: torch.dtype | None = None) -> Value:
    """Product of all elements; of integers, in int64."""
    return _product(g, x, None, False, dtype)


@lowers(aten.prod.dim_int)
def prod_dim(
    g: Graph, x: Value, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Value:
    """Product along an axis; of integers, in int64."""
    return _product(g, x, dim, keepdim, dtype)


def _product(
    g: Graph, x: Value, dim: int | None, keepdim: bool, dtype: torch.dtype | None
) -> Value:
    if dtype == torch.bool:
        return reduced(g, tfl.reduce_all, is_nonzero(g, x), dim, keepdim)
    return reduced(g, tfl.reduce_prod, accumulated(g, x, dtype_given(dtype)), dim, keepdim)


def _truth(
    g: Graph, op: Reducer, x: Value, dim: int | Sequence[int] | None, keepdim: bool
) -> Value:
    """REDUCE_ALL or REDUCE_ANY of what is not zero; uint8 in, uint8 out, else bool."""
    result = reduced(g, op, is_nonzero(g, x), dim, keepdim)
    return tfl.cast(g, result, DType.UINT8) if x.dtype == DType.UINT8 else result


@lowers(aten.all.default)
def all_true(g: Graph, x: Value) -> Value:
    """Whether all elements are not zero."""
    return _truth(g, tfl.reduce_all, x, None, False)


@lowers(aten.all.dim)
def all_dim(g: Graph, x: Value, dim: int, keepdim: bool = False) -> Value:
    """Whether all elements along an axis are not zero."""
    return _truth(g, tfl.reduce_all, x, dim, keepdim)


@lowers(aten.all.dims)
def all_dims(g: Graph, x: Value, dim: Sequence[int] | None = None, keepdim: bool = False) -> Value:
    """Whether all elements over axes are not zero."""
    return _truth(g, tfl.reduce_all, x, dim, keepdim)


@lowers(aten.any.default)
def any_true(g: Graph, x: Value) -> Value:
    """Whether some element is not zero."""
    return _truth(g, tfl.reduce_any, x, None, False)


@lowers(aten.any.dim)
def any_dim(g: Graph, x: Value, dim: int, keepdim: bool = False) -> Value:
    """Whether some element along an axis is not zero."""
    return _truth(g, tfl.reduce_any, x, dim, keepdim)


@lowers(aten.any.dims)
def any_dims(g: Graph, x: Value, dim: Sequence[int] | None = None, keepdim: bool = False) -> Value:
    """Whether some element over axes is not zero."""
    return _truth(g, tfl.reduce_any, x, dim, keepdim)


@lowers(aten.count_nonzero.default)
def count_nonzero(g: Graph, x: Value, dim: int | None = None) -> Value:
    """Int64 number of elements that are not zero."""
    return reduced(g, tfl.sum, tfl.cast(g, is_nonzero(g, x), DType.INT64), dim)


@lowers(aten.count_nonzero.dim_IntList)
def count_nonzero_dims(g: Graph, x: Value, dim: Sequence[int]) -> Value:
    """Int64 number of elements over axes that are not zero."""
    return reduced(g, tfl.sum, tfl.cast(g, is_nonzero(g, x), DType.INT64), dim)
