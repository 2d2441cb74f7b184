"""Softmax over any axis.

LiteRT's SOFTMAX is over the last axis. LOG_SOFTMAX is no delegate's, so that it is written out;
reductions take any axis, which saves the transposes.
"""

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.torch_types import compute_dtype

aten = torch.ops.aten

FLOAT32_MIN = float(torch.finfo(torch.float32).min)


@lowers(aten.softmax.int)
def softmax(g: Graph, x: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """Along `dim`, after a cast to `dtype`."""
    return softmax_along(g, _converted(g, x, dtype), dim)


@lowers(aten._softmax.default)
def softmax_core(g: Graph, x: Value, dim: int, half_to_float: bool) -> Value:
    """Along `dim`; halves are computed as float32 in any case."""
    return softmax_along(g, x, dim)


@lowers(aten.log_softmax.int)
def log_softmax(g: Graph, x: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """Along `dim`, after a cast to `dtype`."""
    return _log_softmax(g, _converted(g, x, dtype), dim)


@lowers(aten._log_softmax.default)
def log_softmax_core(g: Graph, x: Value, dim: int, half_to_float: bool) -> Value:
    """Along `dim`; halves are computed as float32 in any case."""
    return _log_softmax(g, x, dim)


@lowers(aten._safe_softmax.default)
def safe_softmax(g: Graph, x: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """As softmax, but 0 where all elements are -inf."""
    x = _converted(g, x, dtype)
    y = softmax_along(g, tfl.maximum(g, x, const(FLOAT32_MIN, DType.FLOAT32)), dim)
    return tfl.mul(g, y, has_finite(g, x, dim))


def has_finite(g: Graph, x: Value, dim: int) -> Value:
    """1.0 where x has an element above -inf along `dim`, else 0.0; `dim` has size 1."""
    largest = tfl.reduce_max(g, x, [dim], True)
    return tfl.cast(
        g, tfl.greater_equal(g, largest, const(FLOAT32_MIN, DType.FLOAT32)), DType.FLOAT32
    )


def _converted(g: Graph, x: Value, dtype: torch.dtype | None) -> Value:
    return x if dtype is None else tfl.cast(g, x, compute_dtype(dtype))


def softmax_along(g: Graph, x: Value, dim: int) -> Value:
    """Softmax of any rank along any axis."""
    if x.rank == 0:
        return tfl.div(g, tfl.exp(g, tfl.sub(g, x, x)), const(1.0, x.dtype))
    dim %= x.rank
    perm = [a for a in range(x.rank) if a != dim] + [dim]
    rows = tfl.transpose(g, x, perm)
    flat = (
        rows if x.rank <= 4 else tfl.reshape(g, rows, (dims.numel(rows.shape[:-1]), rows.shape[-1]))
    )
    y = tfl.reshape(g, tfl.softmax(g, flat), rows.shape)
    return tfl.transpose(g, y, [perm.index(a) for a in range(x.rank)])


def _log_softmax(g: Graph, x: Value, dim: int) -> Value:
    """(x - max) - log(sum(exp(x - max)))."""
    if x.rank == 0:
        return tfl.sub(g, x, x)
    centred = tfl.sub(g, x, tfl.reduce_max(g, x, [dim], True))
    total = tfl.sum(g, tfl.exp(g, centred), [dim], True)
    return tfl.sub(g, centred, tfl.log(g, total))
