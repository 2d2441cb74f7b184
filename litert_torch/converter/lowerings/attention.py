"""Scaled dot-product attention as BATCH_MATMUL, ADD, SOFTMAX, BATCH_MATMUL.

The scale goes onto the query, the smallest operand. With fewer key heads than query heads, the
queries that share a head are rows of one product, so that keys and values are never repeated. A
mask adds a large negative number; rows that it hides completely give 0, as in PyTorch.
"""

import math

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.dynamic_sizes import scalar
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.dropout import dropped
from litert_torch.converter.lowerings.random_numbers import kept
from litert_torch.converter.lowerings.softmax import FLOAT32_MIN, has_finite
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_HIDDEN = -1e9  # added to hidden scores: exp of it is 0, and no sum with a score overflows


@lowers(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """Of query [..., H, L, E], key [..., H, S, E] and value [..., H, S, F]."""
    return _attention(g, query, key, value, attn_mask, is_causal, scale, dropout_p)[0]


@lowers(aten._scaled_dot_product_attention_math.default)
def scaled_dot_product_attention_math(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Value | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> list[Value]:
    """The result, and the weights of the values."""
    _require_no_dropout(dropout_p)
    y, scores, keep = _attention(g, query, key, value, attn_mask, is_causal, scale)
    weights = _softmax(g, scores)
    return [y, weights if keep is None else tfl.mul(g, weights, keep)]


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def scaled_dot_product_flash_attention_for_cpu(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> list[Value]:
    """The result, and the logarithms of the softmax's denominators."""
    _require_no_dropout(dropout_p)
    y, scores, _ = _attention(g, query, key, value, attn_mask, is_causal, scale)
    return [y, _log_sum_exp(g, scores)]


@lowers(aten._scaled_dot_product_efficient_attention.default)
def scaled_dot_product_efficient_attention(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    attn_bias: Value | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> list[Value]:
    """The result, the logarithms of the softmax's denominators, and a seed and offset of 0."""
    _require_no_dropout(dropout_p)
    y, scores, _ = _attention(g, query, key, value, attn_bias, is_causal, scale)
    return [y, _log_sum_exp(g, scores), const(0, DType.INT64), const(0, DType.INT64)]


def _require_no_dropout(dropout_p: float) -> None:
    if dropout_p:
        raise UnsupportedCaseError("attention with dropout: call .eval() on the module first")


def _log_sum_exp(g: Graph, scores: Value) -> Value:
    largest = tfl.reduce_max(g, scores, [-1], True)
    total = tfl.sum(g, tfl.exp(g, tfl.sub(g, scores, largest)), [-1], True)
    y = tfl.add(g, tfl.log(g, total), largest)
    return tfl.reshape(g, y, y.shape[:-1])


def _attention(
    g: Graph,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    is_causal: bool,
    scale: float | None,
    dropout_p: float = 0.0,
) -> tuple[Value, Value, Value | None]:
    """The result, the masked scores, and the factor of each row of the result."""
    scale = 1 / math.sqrt(int(query.shape[-1])) if scale is None else scale
    query = tfl.mul(g, query, const(scale, query.dtype))
    bias, keep = _bias(g, mask, is_causal, query.shape[-2], key.shape[-2])
    scores = _product(g, query, key, adj_y=True)
    if bias is not None:
        scores = tfl.add(g, scores, bias)
    weights = _softmax(g, scores)
    if dropout_p:  # as eager does, in evaluation too
        weights = dropped(g, weights, kept(g, weights.shape, 1 - dropout_p), dropout_p)
    y = _product(g, weights, value)
    return (y if keep is None else tfl.mul(g, y, keep)), scores, keep


def _softmax(g: Graph, scores: Value) -> Value:
    if scores.rank <= 4:
        return tfl.softmax(g, scores)
    rows = tfl.reshape(g, scores, (dims.numel(scores.shape[:-1]), scores.shape[-1]))
    return tfl.reshape(g, tfl.softmax(g, rows), scores.shape)


def _product(g: Graph, x: Value, y: Value, *, adj_y: bool = False) -> Value:
    """x [..., H, L, K] by y with fewer heads, each for H / heads neighbours, or as many."""
    columns = y.shape[-2] if adj_y else y.shape[-1]
    result = (*x.shape[:-1], columns)
    if _shares_heads(x, y):
        heads, shared = int(y.shape[-3]), int(x.shape[-3]) // int(y.shape[-3])
        x = tfl.reshape(g, x, (*x.shape[:-3], heads, x.shape[-2] * shared, x.shape[-1]))
    if x.rank > 4 and x.shape[:-2] == y.shape[:-2]:
        x, y = (tfl.reshape(g, v, (dims.numel(v.shape[:-2]), *v.shape[-2:])) for v in (x, y))
    product = tfl.batch_matmul(g, x, y, adj_y=adj_y)
    return tfl.reshape(g, product, result) if x.shape[:-1] != result[:-1] else product


def _shares_heads(x: Value, y: Value) -> bool:
    """Whether several heads of x belong to each of y."""
    if x.rank != y.rank or x.rank < 3 or x.shape[:-3] != y.shape[:-3]:
        return False
    return bool(x.shape[-3] != y.shape[-3] and int(x.shape[-3]) > int(y.shape[-3]))


def _bias(
    g: Graph, mask: Value | None, is_causal: bool, rows: Size, columns: Size
) -> tuple[Value | None, Value | None]:
    """What to add to the scores, and a factor for each row of the result; None for neither."""
    if mask is None:
        return (_causal(g, rows, columns) if is_causal else None), None
    if mask.dtype == DType.BOOL:
        return _of_bools(g, mask)
    if mask.const is not None:
        return _of_known_floats(mask.const)
    finite = tfl.maximum(g, mask, const(FLOAT32_MIN, DType.FLOAT32))
    return finite, has_finite(g, mask, -1)


def _of_bools(g: Graph, mask: Value) -> tuple[Value, Value | None]:
    """True where a score counts."""
    if mask.const is not None:
        known = mask.const.derive("attention mask", _hidden_unless, dtype=DType.FLOAT32)
        return const(known), _row_factor(mask.read())
    counts = tfl.cast(g, mask, DType.FLOAT32)
    hidden = tfl.sub(g, counts, const(1.0, DType.FLOAT32))
    bias = tfl.mul(g, hidden, const(-_HIDDEN, DType.FLOAT32))
    return bias, tfl.reduce_max(g, counts, [-1], True)


def _of_known_floats(mask: Constant) -> tuple[Value, Value | None]:
    finite = mask.derive("finite mask", lambda m: np.maximum(m, np.float32(FLOAT32_MIN)))
    return const(finite), _row_factor(mask.read() > -np.inf)


def _row_factor(seen: Array) -> Value | None:
    """0 for rows where nothing is seen, or None where there are none."""
    rows = np.asarray(seen.any(-1, keepdims=True))
    return None if rows.all() else const(rows.astype(np.float32))


def _hidden_unless(counts: Array) -> Array:
    return np.where(counts, np.float32(0), np.float32(_HIDDEN))


def _causal(g: Graph, rows: Size, columns: Size) -> Value:
    """0 where column <= row, counted from the start of both, else a large negative number."""
    if isinstance(rows, int) and isinstance(columns, int):
        shape = (rows, columns)
        read = lambda: _hidden_unless(np.tri(*shape, dtype=bool))  # noqa: E731
        return const(Constant(shape, DType.FLOAT32, ("causal", shape), read))
    row, column = (_count(g, size) for size in (rows, columns))
    distance = tfl.sub(g, column, tfl.reshape(g, row, (rows, 1)))
    later = tfl.minimum(
        g, tfl.maximum(g, distance, const(0.0, DType.FLOAT32)), const(1.0, DType.FLOAT32)
    )
    return tfl.mul(g, later, const(_HIDDEN, DType.FLOAT32))


def _count(g: Graph, size: Size) -> Value:
    """0, 1, ... below a size, as float32."""
    if isinstance(size, int):
        return const(np.arange(size, dtype=np.float32))
    zero, one = const(0, DType.INT32), const(1, DType.INT32)
    return tfl.cast(g, tfl.range(g, zero, scalar(g, size), one, size), DType.FLOAT32)
