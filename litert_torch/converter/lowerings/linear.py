"""Matrix products.

A product with a constant matrix is FULLY_CONNECTED, which keeps the weight small in memory and is
what quantization recipes look for; any other is BATCH_MATMUL. Integers multiply and sum exactly, as
LiteRT's products take floats only.
"""

from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Quantization, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_MOST_RANKS = 5  # of BATCH_MATMUL on the CPU without a delegate
_MOST_INTEGER_PRODUCTS = 1 << 24  # 64 MiB of int32
_EXACT_PRODUCTS = 1024  # of int8 numbers, the sum of which has 24 bits


@lowers(aten.linear.default)
def linear(g: Graph, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """Of x [..., K] with weight [N, K] or [K]: x @ weight.T + bias."""
    if weight.rank == 1:
        return _plus(g, matmul(g, x, weight), bias)
    if _is_constant_matrix(weight) and x.dtype.is_float and weight.shape[1] != 0:
        return _by_weight(g, x, weight, bias)
    return _plus(g, matmul(g, x, tfl.transpose(g, weight, (1, 0))), bias)


@lowers(aten.matmul.default)
def matmul(g: Graph, x: Value, other: Value) -> Value:
    """numpy's `x @ other`: vectors are rows on the left, columns on the right."""
    if x.rank == 1:
        y = matmul(g, tfl.reshape(g, x, (1, *x.shape)), other)
        at = y.rank - (1 if other.rank == 1 else 2)
        return tfl.reshape(g, y, (*y.shape[:at], *y.shape[at + 1 :]))
    if other.rank == 1:
        y = matmul(g, x, tfl.reshape(g, other, (*other.shape, 1)))
        return tfl.reshape(g, y, y.shape[:-1])
    return _product(g, x, other)


def _product(g: Graph, x: Value, other: Value) -> Value:
    """Of x [..., M, K] and other [..., K, N]; sums of no products are 0."""
    if x.shape[-1] == 0:
        shape = (*dims.broadcast(x.shape[:-2], other.shape[:-2]), x.shape[-2], other.shape[-1])
        return tfl.broadcast_to(g, const(0, x.dtype), shape)
    if not x.dtype.is_float:
        return _integer_product(g, x, other)
    if _is_constant_matrix(other):
        return _by_weight(g, x, tfl.transpose(g, other, (1, 0)), None)
    if _is_constant_matrix(x):
        return swapped(g, _by_weight(g, swapped(g, other), x, None))
    if other.rank == 2 and x.rank > 2:
        rows = tfl.reshape(g, x, (dims.numel(x.shape[:-1]), x.shape[-1]))
        y = tfl.batch_matmul(g, rows, other)
        return tfl.reshape(g, y, (*x.shape[:-1], other.shape[-1]))
    return _batched(g, x, other)


def _is_constant_matrix(x: Value) -> bool:
    return tfl.is_constant(x) and x.rank == 2


def swapped(g: Graph, x: Value) -> Value:
    """The last two axes exchanged."""
    return tfl.transpose(g, x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def _by_weight(g: Graph, x: Value, weight: Value, bias: Value | None) -> Value:
    """FULLY_CONNECTED of x [..., K] with a constant [N, K]; a run-time bias is added after it."""
    rows = tfl.reshape(g, x, (1, *x.shape)) if x.rank == 1 else x
    is_fused = bias is not None and bias.const is not None and bias.shape == weight.shape[:1]
    y = tfl.fully_connected(g, rows, weight, bias if is_fused else None)
    if x.rank == 1:
        y = tfl.reshape(g, y, weight.shape[:1])
    return y if is_fused else _plus(g, y, bias)


def _plus(g: Graph, x: Value, bias: Value | None) -> Value:
    return x if bias is None else tfl.add(g, x, bias)


def _batched(g: Graph, x: Value, other: Value) -> Value:
    """BATCH_MATMUL; equal leading axes are one where there are many."""
    if max(x.rank, other.rank) <= 4:
        return tfl.batch_matmul(g, x, other)
    if x.shape[:-2] == other.shape[:-2]:
        batch = dims.numel(x.shape[:-2])
        flat = [tfl.reshape(g, v, (batch, *v.shape[-2:])) for v in (x, other)]
        return tfl.reshape(g, tfl.batch_matmul(g, *flat), (*x.shape[:-1], other.shape[-1]))
    shape = dims.broadcast(x.shape[:-2], other.shape[:-2])
    if len(shape) + 2 > _MOST_RANKS:
        wide = [tfl.broadcast_to(g, v, (*shape, *v.shape[-2:])) for v in (x, other)]
        return _batched(g, *wide)
    return tfl.batch_matmul(g, x, other)


def _integer_product(g: Graph, x: Value, other: Value) -> Value:
    """Every product of elements, summed over K: exact, and wraps around as PyTorch does."""
    batch = dims.broadcast(x.shape[:-2], other.shape[:-2])
    m, k, n = x.shape[-2], x.shape[-1], other.shape[-1]
    if int(dims.numel((*batch, m, k, n))) > _MOST_INTEGER_PRODUCTS:
        raise UnsupportedCaseError(
            f"a product of {x.type} and {other.type} matrices is too large: use float32 operands"
        )
    wide = x.dtype if x.dtype == DType.INT64 else DType.INT32
    left = tfl.cast(g, tfl.reshape(g, x, (*x.shape, 1)), wide)
    right = tfl.cast(g, tfl.reshape(g, other, (*other.shape[:-2], 1, k, n)), wide)
    y = tfl.sum(g, tfl.mul(g, left, right), [len(batch) + 1], False)
    return tfl.cast(g, y, x.dtype)


@lowers(aten._int_mm.default)
def int_mm(g: Graph, x: Value, mat2: Value) -> Value:
    """Of int8 x [M, K] and mat2 [K, N], in int32: float sums of 1024 such products are exact."""
    inner = int(x.shape[1])
    total = None
    for begin in range(0, inner, _EXACT_PRODUCTS):
        count = min(_EXACT_PRODUCTS, inner - begin)
        left = tfl.slice(g, x, (0, begin), (x.shape[0], count))
        right = tfl.slice(g, mat2, (begin, 0), (count, mat2.shape[1]))
        part = _product(g, tfl.cast(g, left, DType.FLOAT32), _as_float(g, right))
        part = tfl.cast(g, part, DType.INT32)
        total = part if total is None else tfl.add(g, total, part)
    return tfl.broadcast_to(g, const(0, DType.INT32), (0, 0)) if total is None else total


def _as_float(g: Graph, x: Value) -> Value:
    """CAST; of a constant, DEQUANTIZE, so that it is stored as integers."""
    if x.const is None or x.dtype != DType.INT8:
        return tfl.cast(g, x, DType.FLOAT32)
    one = Quantization(np.ones(1, np.float32), np.zeros(1, np.int64))
    return tfl.dequantize(g, Value(x.type, const=x.const, quantization=one))


@lowers(aten.bilinear.default)
def bilinear(
    g: Graph, input1: Value, input2: Value, weight: Value, bias: Value | None = None
) -> Value:
    """Of x [..., I], y [..., J] and weight [O, I, J]: sums of weight * x * y, plus bias [O]."""
    o, i, j = dims.static(weight.shape)
    rows = dims.numel(input1.shape[:-1])
    x, y = tfl.reshape(g, input1, (rows, i)), tfl.reshape(g, input2, (rows, j))
    matrix = tfl.reshape(g, tfl.transpose(g, weight, (1, 0, 2)), (i, o * j))
    by_x = tfl.reshape(g, _product(g, x, matrix), (rows, o, j))
    total = tfl.sum(g, tfl.mul(g, by_x, tfl.reshape(g, y, (rows, 1, j))), [2], False)
    return tfl.reshape(g, _plus(g, total, bias), (*input1.shape[:-1], o))


@lowers(aten.mm.default)
def mm(g: Graph, x: Value, mat2: Value) -> Value:
    """Of x [M, K] and mat2 [K, N]."""
    return _product(g, x, mat2)


@lowers(aten.bmm.default)
def bmm(g: Graph, x: Value, mat2: Value) -> Value:
    """Of x [B, M, K] and mat2 [B, K, N]."""
    return _product(g, x, mat2)


@lowers(aten.mv.default)
def mv(g: Graph, x: Value, vec: Value) -> Value:
    """Of x [M, K] and vec [K]."""
    return matmul(g, x, vec)


@lowers(aten.dot.default)
def dot(g: Graph, x: Value, tensor: Value) -> Value:
    """Of two vectors, as a scalar."""
    return tfl.sum(g, tfl.mul(g, x, tensor), [0], False)


@lowers(aten.vdot.default)
def vdot(g: Graph, x: Value, other: Value) -> Value:
    """Of two real vectors, as a scalar."""
    return dot(g, x, other)


@lowers(aten.addmm.default)
def addmm(g: Graph, x: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """Beta * x + alpha * (mat1 @ mat2)."""
    fused = _is_constant_matrix(mat2) and mat1.dtype.is_float and beta == 1 and alpha == 1
    if fused and mat2.shape[0] != 0 and x.rank == 1 and x.shape[0] == mat2.shape[1]:
        return _by_weight(g, mat1, tfl.transpose(g, mat2, (1, 0)), x)
    return _accumulated(g, x, _product(g, mat1, mat2), beta, alpha)


@lowers(aten.addmv.default)
def addmv(g: Graph, x: Value, mat: Value, vec: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    """Beta * x + alpha * (mat @ vec)."""
    return _accumulated(g, x, matmul(g, mat, vec), beta, alpha)


@lowers(aten.baddbmm.default)
def baddbmm(
    g: Graph, x: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    """Beta * x + alpha * (batch1 @ batch2)."""
    return _accumulated(g, x, _product(g, batch1, batch2), beta, alpha)


@lowers(aten.addbmm.default)
def addbmm(
    g: Graph, x: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    """Beta * x + alpha * sum over the batch of (batch1 @ batch2)."""
    total = tfl.sum(g, _product(g, batch1, batch2), [0], False)
    return _accumulated(g, x, total, beta, alpha)


def _accumulated(g: Graph, x: Value, product: Value, beta: Any, alpha: Any) -> Value:
    """Beta * x + alpha * product; with beta 0, x is not read, so that its NaNs do not matter."""
    y = _times(g, product, alpha)
    if beta == 0:
        return y
    return tfl.add(g, y, _times(g, x, beta))


def _times(g: Graph, x: Value, factor: Any) -> Value:
    return x if factor == 1 else tfl.mul(g, x, const(factor, x.dtype))
