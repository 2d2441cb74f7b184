"""Sums, products, extremes and truth over axes."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    INT64,
    Array,
    DType,
    Operand,
    as_dtype,
    as_float,
    is_complex,
    is_integral,
    to_numpy,
    wide,
)

aten = torch.ops.aten

Dims = Sequence[int] | int | None


def axes_of(dim: Dims, rank: int) -> tuple[int, ...]:
    """Axes from the front; none or an empty list are all of them."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(rank))
    named = [dim] if isinstance(dim, int) else dim
    return tuple(d % rank for d in named) if rank else ()


def count_of(x: Array, axes: Sequence[int]) -> Any:
    """The number of elements along axes: an int, or a symbolic dimension."""
    count: Any = 1
    for axis in axes:
        count = count * x.shape[axis]
    return count


def summed(x: Array, dim: Dims, keepdim: bool, dtype: torch.dtype | None) -> Array:
    """The sum in `dtype`; by default int64 of integers, else x's own."""
    want = _accumulated(x, dtype)
    total = jnp.sum(wide(as_dtype(x, want)), axes_of(dim, x.ndim), keepdims=keepdim)
    return as_dtype(total, want)


def _accumulated(x: Array, dtype: torch.dtype | None) -> DType:
    if dtype is not None:
        return to_numpy(dtype)
    return INT64 if is_integral(x) else x.dtype


@lowers(aten.sum.default)
def sum_all(x: Array, *, dtype: torch.dtype | None = None) -> Array:
    """The sum of all elements."""
    return summed(x, None, False, dtype)


@lowers(aten.sum.dim_IntList)
def sum_dims(x: Array, dim: Dims, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The sum along axes."""
    return summed(x, dim, keepdim, dtype)


@lowers(aten.nansum.default)
def nansum(x: Array, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The sum along axes, NaN taken as 0."""
    return summed(jnp.where(x != x, 0, x).astype(x.dtype), dim, keepdim, dtype)


def averaged(x: Array, dim: Dims, keepdim: bool, dtype: torch.dtype | None) -> Array:
    """The mean in `dtype`, by default x's own."""
    want = x.dtype if dtype is None else to_numpy(dtype)
    axes = axes_of(dim, x.ndim)
    total = jnp.sum(wide(as_dtype(x, want)), axes, keepdims=keepdim)
    return as_dtype(total / as_dtype(count_of(x, axes), total.dtype), want)


@lowers(aten.mean.default)
def mean_all(x: Array, *, dtype: torch.dtype | None = None) -> Array:
    """The mean of all elements."""
    return averaged(x, None, False, dtype)


@lowers(aten.mean.dim)
def mean_dims(x: Array, dim: Dims, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The mean along axes."""
    return averaged(x, dim, keepdim, dtype)


@lowers(aten.prod.default)
def prod_all(x: Array, *, dtype: torch.dtype | None = None) -> Array:
    """The product of all elements."""
    return jnp.prod(as_dtype(x, _accumulated(x, dtype)))


@lowers(aten.prod.dim_int)
def prod_dim(x: Array, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """The product along an axis."""
    want = _accumulated(x, dtype)
    return jnp.prod(as_dtype(x, want), axes_of(dim, x.ndim), keepdims=keepdim)


@lowers(aten.amax.default)
def amax(x: Array, dim: Dims = [], keepdim: bool = False) -> Array:
    """The maximum along axes; NaN if there is one."""
    return jnp.max(x, axes_of(dim, x.ndim), keepdims=keepdim)


@lowers(aten.amin.default)
def amin(x: Array, dim: Dims = [], keepdim: bool = False) -> Array:
    """The minimum along axes; NaN if there is one."""
    return jnp.min(x, axes_of(dim, x.ndim), keepdims=keepdim)


@lowers(aten.max.default)
def max_all(x: Array) -> Array:
    """The maximum of all elements."""
    return jnp.max(x)


@lowers(aten.min.default)
def min_all(x: Array) -> Array:
    """The minimum of all elements."""
    return jnp.min(x)


@lowers(aten.aminmax.default)
def aminmax(x: Array, *, dim: int | None = None, keepdim: bool = False) -> tuple[Array, Array]:
    """(minimum, maximum) along an axis or of all."""
    axes = axes_of(dim, x.ndim)
    return jnp.min(x, axes, keepdims=keepdim), jnp.max(x, axes, keepdims=keepdim)


def place_of(x: Array, dim: int | None, keepdim: bool, find: Callable[..., Array]) -> Array:
    """The int64 index of an extreme along an axis, or in the flattened x."""
    if not x.ndim:
        return jnp.zeros((), INT64)
    if dim is None:
        place = find(x.reshape(-1), axis=0, index_dtype=jnp.int32).astype(INT64)
        return place.reshape((1,) * x.ndim) if keepdim else place
    axis = dim % x.ndim
    place = find(x, axis=axis, index_dtype=jnp.int32).astype(INT64)
    return jnp.expand_dims(place, axis) if keepdim else place


@lowers(aten.argmax.default)
def argmax(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Where the maximum is: the first of equal ones; the first NaN if there is one."""
    return place_of(x, dim, keepdim, lax.argmax)


@lowers(aten.argmin.default)
def argmin(x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Where the minimum is: the first of equal ones; the first NaN if there is one."""
    return place_of(x, dim, keepdim, lax.argmin)


@lowers(aten.max.dim)
def max_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """(maximum, its index) along an axis."""
    return amax(x, dim, keepdim), place_of(x, dim, keepdim, lax.argmax)


@lowers(aten.min.dim)
def min_dim(x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """(minimum, its index) along an axis."""
    return amin(x, dim, keepdim), place_of(x, dim, keepdim, lax.argmin)


def _truth(x: Array, result: Array) -> Array:
    """As PyTorch returns it: uint8 of uint8, else bool."""
    return result.astype(x.dtype) if x.dtype == jnp.uint8 else result


@lowers(aten.any.default)
def any_all(x: Array) -> Array:
    """Whether an element is not 0."""
    return _truth(x, jnp.any(x != 0))


@lowers(aten.any.dim)
def any_dim(x: Array, dim: int, keepdim: bool = False) -> Array:
    """Whether an element along the axis is not 0."""
    return _truth(x, jnp.any(x != 0, axes_of(dim, x.ndim), keepdims=keepdim))


@lowers(aten.any.dims)
def any_dims(x: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether an element along the axes is not 0; an empty list is none of them."""
    return _truth(x, jnp.any(x != 0, _listed(dim, x.ndim), keepdims=keepdim))


@lowers(aten.all.dim)
def all_dim(x: Array, dim: int, keepdim: bool = False) -> Array:
    """Whether no element along the axis is 0."""
    return _truth(x, jnp.all(x != 0, axes_of(dim, x.ndim), keepdims=keepdim))


@lowers(aten.all.dims)
def all_dims(x: Array, dim: Dims = None, keepdim: bool = False) -> Array:
    """Whether no element along the axes is 0; an empty list is none of them."""
    return _truth(x, jnp.all(x != 0, _listed(dim, x.ndim), keepdims=keepdim))


def _listed(dim: Dims, rank: int) -> tuple[int, ...]:
    return () if isinstance(dim, Sequence) and not dim else axes_of(dim, rank)


@lowers(aten.all.default)
def all_all(x: Array) -> Array:
    """Whether no element is 0."""
    return _truth(x, jnp.all(x != 0))


@lowers(aten.count_nonzero.dim_IntList)
def count_nonzero(x: Array, dim: Dims) -> Array:
    """How many elements along axes are not 0."""
    return jnp.sum(x != 0, axes_of(dim, x.ndim), dtype=INT64)


@lowers(aten.logsumexp.default)
def logsumexp(x: Array, dim: Dims, keepdim: bool = False) -> Array:
    """log(sum(exp(x))) along axes, without overflow."""
    x = as_float(x)
    axes = axes_of(dim, x.ndim)
    return as_dtype(jax.nn.logsumexp(wide(x), axes, keepdims=keepdim), x.dtype)


@lowers(aten.linalg_vector_norm.default)
def vector_norm(
    x: Array, ord: Operand = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    """The norm of order `ord` of the elements along axes."""
    if dtype is not None:
        x = as_dtype(x, dtype)
    size = jnp.abs(wide(x))
    result = _norm(size, float(ord), axes_of(dim, x.ndim), keepdim)
    return result if is_complex(x) else as_dtype(result, x.dtype)


def _norm(size: Array, order: float, axes: tuple[int, ...], keepdim: bool) -> Array:
    if order == float("inf"):
        return jnp.max(size, axes, keepdims=keepdim, initial=0)
    if order == float("-inf"):
        return jnp.min(size, axes, keepdims=keepdim)
    if order == 0:
        return jnp.sum(size != 0, axes, keepdims=keepdim, dtype=size.dtype)
    if order == 1:
        return jnp.sum(size, axes, keepdims=keepdim)
    if order == 2:
        return jnp.sqrt(jnp.sum(size * size, axes, keepdims=keepdim))
    return jnp.sum(size**order, axes, keepdims=keepdim) ** (1 / order)
