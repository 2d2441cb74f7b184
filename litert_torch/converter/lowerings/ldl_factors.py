"""LDL factors of symmetric matrices by Bunch and Kaufman's pivoting, in LAPACK's form (sytrf).

D has blocks of one and two rows. Which it is differs between the matrices of a batch, so all take
as many steps as they have rows, and the second step of a block of two only hands on what the first
computed. Always a WHILE: a step is some sixty ops.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.elimination import flat_batch, swapped_axes
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.rearranging import diagonal, tril
from litert_torch.converter.lowerings.row_exchanges import exchange, first_failure, rows

aten = torch.ops.aten

FLOAT32, INT32 = DType.FLOAT32, DType.INT32

_ALPHA = (1 + math.sqrt(17)) / 8  # of all bounds the one that lets elements grow least


@lowers(aten.linalg_ldl_factor_ex.default)
def linalg_ldl_factor_ex(
    g: Graph, x: Value, *, hermitian: bool = False, check_errors: bool = False
) -> list[Value]:
    """L and D in one, pivots, and the first row of D that is 0; of x's lower triangle."""
    lead, n = x.shape[:-2], int(x.shape[-1])
    if n == 0:
        return [x, const(np.zeros((*map(int, lead), 0)), INT32), filled(g, lead, 0, INT32)]
    packed, pivots = _factored(g, flat_batch(g, x))
    is_zero = tfl.equal(g, diagonal(g, packed, 0, -2, -1), number(0))
    is_single = tfl.greater(g, pivots, const(0, INT32))
    info = first_failure(g, tfl.logical_and(g, is_zero, is_single))
    return [
        tfl.reshape(g, packed, x.shape),
        tfl.reshape(g, pivots, x.shape[:-1]),
        tfl.reshape(g, info, lead),
    ]


def _factored(g: Graph, x: Value) -> tuple[Value, Value]:
    """Of x [B, n, n]: L and D in one [B, n, n], and pivots, int32 [B, n]."""
    batch, n = x.shape[0], int(x.shape[1])
    lower = tril(g, x)
    whole = tfl.add(g, lower, swapped_axes(g, tril(g, x, -1)))
    masks = [np.eye(n), np.triu(np.ones((n, n)), 1), np.eye(n, k=1), np.triu(np.ones((n, n)), 2)]
    stacks = [const(m.reshape(n, 1, n), FLOAT32) for m in masks]
    numbers = const(np.arange(n).reshape(n, 1, 1), FLOAT32)
    results = (TensorType((batch, n), FLOAT32), TensorType((batch, 1), INT32))
    held = [filled(g, t.shape, 0, t.dtype) for t in results]
    operands = loops.Operands([numbers, *stacks], [whole, *held], [], results)
    (columns, pivots), _ = loops.scan(g, _step, operands)
    pivots = tfl.transpose(g, tfl.reshape(g, pivots, (n, batch)), (1, 0))
    return tfl.transpose(g, columns, (1, 2, 0)), pivots


@dataclass(frozen=True, eq=False)
class _At:
    """Where a step is: masks of row k, the rows after, row k + 1, and those after; [1, n]."""

    step: Value
    here: Value
    below: Value
    next: Value
    beyond: Value


@dataclass(frozen=True, eq=False)
class _Choice:
    """What a step does with each matrix.

    Attributes:
        is_pair: Whether rows k and k + 1 are a block of D: bool [B, 1].
        source: The row that is exchanged, k or k + 1: int32 [B, 1].
        target: The row that it is exchanged with: int32 [B, 1].
    """

    is_pair: Value
    source: Value
    target: Value


def _step(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """Column k of L and D, and its pivot; the second of a pair was held by the first."""
    a, held, held_pivot = state
    batch, n, _ = a.shape
    at = _At(tfl.cast(g, xs[0], INT32), *xs[1:])
    is_second = tfl.less(g, held_pivot, const(0, INT32))
    chosen = _chosen(g, a, at, is_second)
    read = tfl.reshape(g, exchange(g, chosen.source, chosen.target, int(n)), (batch, n))
    a = rows(g, swapped_axes(g, rows(g, a, read)), read)
    first, second = _row(g, a, at.here), _row(g, a, at.next)
    of_first, of_second = _multiples(g, first, second, at, chosen.is_pair)
    of_first = tfl.select_v2(g, is_second, number(0), of_first)
    block = tfl.add(g, at.here, tfl.mul(g, at.next, tfl.cast(g, chosen.is_pair, FLOAT32)))
    column = tfl.add(g, tfl.mul(g, first, block), of_first)
    place = tfl.add(g, chosen.target, const(1, INT32))
    next_pivot = tfl.select_v2(
        g, chosen.is_pair, tfl.sub(g, const(0, INT32), place), const(0, INT32)
    )
    pivot = tfl.select_v2(g, chosen.is_pair, next_pivot, place)
    change = tfl.batch_matmul(
        g, _stacked(g, of_first, of_second), _stacked(g, first, second), adj_x=True
    )
    results = [
        tfl.select_v2(g, is_second, held, column),
        tfl.select_v2(g, is_second, held_pivot, pivot),
    ]
    held = tfl.add(g, tfl.mul(g, second, at.next), of_second)
    return results, [tfl.sub(g, a, change), held, next_pivot]


def _chosen(g: Graph, a: Value, at: _At, is_second: Value) -> _Choice:
    """Bunch and Kaufman's tests, in sytf2's order and with its bounds."""
    batch, n, _ = a.shape
    line = tfl.abs(g, _row(g, a, at.here))
    own = _element(g, line, at.here)
    off = tfl.mul(g, line, at.below)
    largest = tfl.reduce_max(g, off, [1], True)
    i = tfl.reshape(g, tfl.arg_max(g, off, 1), (batch, 1))
    row = tfl.abs(g, tfl.reshape(g, rows(g, a, i), (batch, n)))
    at_i = tfl.reshape(g, tfl.one_hot(g, i, int(n), dtype=FLOAT32), (batch, n))
    left = tfl.add(g, at.here, at.below)
    others = tfl.mul(g, tfl.mul(g, row, left), tfl.sub(g, number(1), at_i))
    largest_of_i = tfl.reduce_max(g, others, [1], True)
    bound = tfl.mul(g, largest, number(_ALPHA))
    ratio = tfl.mul(g, bound, tfl.div(g, largest, largest_of_i))  # 0 / 0 where own passes anyway
    stays = tfl.logical_or(g, tfl.greater_equal(g, own, bound), tfl.greater_equal(g, own, ratio))
    stays = tfl.logical_or(g, stays, is_second)
    bound_of_i = tfl.mul(g, largest_of_i, number(_ALPHA))
    is_single = tfl.greater_equal(g, _element(g, row, at_i), bound_of_i)
    is_pair = tfl.logical_not(g, tfl.logical_or(g, stays, is_single))
    source = tfl.add(g, at.step, tfl.cast(g, is_pair, INT32))
    return _Choice(is_pair, source, tfl.select_v2(g, stays, at.step, i))


def _multiples(
    g: Graph, first: Value, second: Value, at: _At, is_pair: Value
) -> tuple[Value, Value]:
    """The columns k and k + 1 of L below D, [B, n] each; of a single k, the second is 0."""
    own = _element(g, first, at.here)
    is_zero = tfl.cast(g, tfl.equal(g, own, number(0)), FLOAT32)
    single = tfl.div(g, tfl.mul(g, first, at.below), tfl.add(g, own, is_zero))
    off = tfl.select_v2(g, is_pair, _element(g, first, at.next), number(1))
    d11 = tfl.div(g, _element(g, second, at.next), off)
    d22 = tfl.div(g, own, off)
    scale = tfl.mul(g, tfl.sub(g, tfl.mul(g, d11, d22), number(1)), off)
    w1 = tfl.div(g, tfl.sub(g, tfl.mul(g, d11, first), second), scale)
    w2 = tfl.div(g, tfl.sub(g, tfl.mul(g, d22, second), first), scale)
    return (
        tfl.select_v2(g, is_pair, tfl.mul(g, w1, at.beyond), single),
        tfl.select_v2(g, is_pair, tfl.mul(g, w2, at.beyond), number(0)),
    )


def _row(g: Graph, a: Value, mask: Value) -> Value:
    """The row of a [B, n, n] that mask [1, n] picks: [B, n]."""
    return tfl.sum(g, tfl.mul(g, a, tfl.reshape(g, mask, (1, mask.shape[1], 1))), [1], False)


def _element(g: Graph, line: Value, mask: Value) -> Value:
    """The element of line [B, n] that the mask picks: [B, 1]."""
    return tfl.sum(g, tfl.mul(g, line, mask), [1], True)


def _stacked(g: Graph, x: Value, y: Value) -> Value:
    """X and y [B, n] as [B, 2, n]."""
    both = [tfl.reshape(g, v, (v.shape[0], 1, v.shape[1])) for v in (x, y)]
    return tfl.concatenation(g, both, axis=1)
