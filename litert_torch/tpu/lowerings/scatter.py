"""Writes to elements at given places along one axis."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.errors import UnsupportedCaseError
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.indexing import as_index
from litert_torch.tpu.lowerings.promotion import INT32, Array, Operand, as_dtype, is_integral

aten = torch.ops.aten


def _places(index: Array, axis: int) -> tuple[Array, ...]:
    """For each element of index, its place on every axis."""
    own = [lax.broadcasted_iota(INT32, index.shape, i) for i in range(index.ndim)]
    own[axis] = as_index(index)
    return tuple(own)


def _scattered(x: Array, dim: int, index: Array, src: Operand, write: str) -> Array:
    """X with `src` written ('set', 'add', 'multiply', 'max', 'min') at places along an axis."""
    if not x.ndim or not index.ndim:
        flat = _scattered(x.reshape(-1), 0, index.reshape(-1), _flat(src), write)
        return flat.reshape(x.shape)
    src = as_dtype(src, x.dtype)
    if src.ndim:
        src = src[tuple(jnp.s_[:n] for n in index.shape)]
    return getattr(x.at[_places(index, dim % x.ndim)], write)(src, mode="drop")


def _flat(src: Operand) -> Operand:
    return src.reshape(-1) if hasattr(src, "reshape") and src.ndim else src


@lowers(aten.scatter.src)
def scatter_src(x: Array, dim: int, index: Array, src: Array) -> Array:
    """X with the elements of src at places along an axis."""
    return _scattered(x, dim, index, src, "set")


@lowers(aten.scatter.value)
def scatter_value(x: Array, dim: int, index: Array, value: Operand) -> Array:
    """X with one value at places along an axis."""
    return _scattered(x, dim, index, value, "set")


@lowers(aten.scatter_add.default)
def scatter_add(x: Array, dim: int, index: Array, src: Array) -> Array:
    """X with the elements of src added at places along an axis."""
    return _scattered(x, dim, index, src, "add")


_WRITES = {"add": "add", "sum": "add", "multiply": "multiply", "prod": "multiply",
           "amax": "max", "amin": "min"}  # fmt: skip


@lowers(aten.scatter.reduce)
def scatter_reduce_src(x: Array, dim: int, index: Array, src: Array, *, reduce: str) -> Array:
    """X with the elements of src added or multiplied at places along an axis."""
    return _scattered(x, dim, index, src, _WRITES[reduce])


@lowers(aten.scatter.value_reduce)
def scatter_reduce_value(x: Array, dim: int, index: Array, value: Operand, *, reduce: str) -> Array:
    """X with a value added or multiplied at places along an axis."""
    return _scattered(x, dim, index, value, _WRITES[reduce])


Write = Callable[[Array, Operand, str], Array]


def reduced(x: Array, src: Array, reduce: str, include_self: bool, write: Write) -> Array:
    """Reductions into x by `write(onto, values, how)`; "mean" too; without x's own where asked."""
    if not include_self:
        untouched = write(jnp.ones_like(x, dtype=bool), jnp.zeros_like(src, dtype=bool), "min")
        start = jnp.where(untouched, x, _neutral(x, reduce))
    else:
        start = x
    if reduce != "mean":
        return write(start, src, _WRITES[reduce])
    total = write(start, src, "add")
    counts = jnp.full(x.shape, int(include_self), x.dtype)
    count = jnp.maximum(write(counts, jnp.ones_like(src), "add"), 1)
    return jnp.floor_divide(total, count) if is_integral(x) else total / count


def _neutral(x: Array, reduce: str) -> Array:
    limits: Any = jnp.iinfo(x.dtype) if is_integral(x) and x.dtype != bool else None
    least, most = (limits.min, limits.max) if limits else (-jnp.inf, jnp.inf)
    if x.dtype == bool:
        least, most = False, True
    values = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}
    if reduce not in values:
        raise UnsupportedCaseError(f"scatter with reduce={reduce!r}: use {', '.join(values)}")
    return jnp.asarray(values[reduce], x.dtype)


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    x: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """X with src reduced into it at places along an axis."""
    if src.ndim and index.ndim:
        src = src[tuple(jnp.s_[:n] for n in index.shape)]

    def write(onto: Array, values: Operand, how: str) -> Array:
        return _scattered(onto, dim, index, values, how)

    return reduced(x, src, reduce, include_self, write)
