"""Exchanges of two rows in each matrix of a batch, as LAPACK's pivots list them.

Rows are read by GATHER, not multiplied with a permutation: that is exact, whatever they hold.
"""

from collections.abc import Sequence

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import loops
from litert_torch.converter.lowerings.elimination import worked_off
from litert_torch.converter.lowerings.views import broadcast

INT32, FLOAT32 = DType.INT32, DType.FLOAT32


def in_place(g: Graph, lead: Sequence[Size], n: int) -> Value:
    """Every row's own index: int32 [*lead, n]."""
    return broadcast(g, const(np.arange(n), INT32), (*lead, n))


def exchange(g: Graph, i: Value, j: Value, n: int) -> Value:
    """Of n rows, which to read for each, where i and j are exchanged: int32 [..., n].

    i and j are int32 tensors of one rank, of shapes that broadcast to [...]; they may be equal.
    """
    way = tfl.sub(g, j, i)
    way = tfl.reshape(g, way, (*way.shape, 1))
    there = tfl.mul(g, tfl.one_hot(g, i, n, dtype=INT32), way)
    back = tfl.mul(g, tfl.one_hot(g, j, n, dtype=INT32), way)
    own = const(np.arange(n).reshape((1,) * (way.rank - 1) + (n,)), INT32)
    return tfl.add(g, own, tfl.sub(g, there, back))


def rows(g: Graph, x: Value, order: Value) -> Value:
    """The rows of x [B, n, ...] that int32 `order` [B, m] names: [B, m, ...]."""
    return tfl.gather(g, x, order, axis=1, batch_dims=1)


def order_of(g: Graph, pivots: Value, n: int) -> Value:
    """What row of P^T A was which of A, for pivots [B, k] counted from 1: int32 [B, n]."""
    batch, k = pivots.shape[0], int(pivots.shape[1])
    if k == 0:
        return in_place(g, (batch,), n)
    places = tfl.cast(g, tfl.transpose(g, pivots, (1, 0)), FLOAT32)
    numbers = const(np.arange(k).reshape(k, 1), FLOAT32)
    operands = loops.Operands([numbers, places], [in_place(g, (batch,), n)], [], ())
    return worked_off(g, _exchange_step, operands)[1][0]


def _exchange_step(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    (number, pivot), (order,) = (tfl.cast(g, x, INT32) for x in xs), state
    other = tfl.sub(g, pivot, const(1, INT32))
    return [], [rows(g, order, exchange(g, number, other, int(order.shape[1])))]


def first_failure(g: Graph, failed: Value) -> Value:
    """The step, counted from 1, of the first true element in bool [B, k], or 0: int32 [B]."""
    steps = tfl.cast(g, failed, FLOAT32)
    any_failed = tfl.cast(g, tfl.reduce_max(g, steps, [1], False), INT32)
    step = tfl.add(g, tfl.arg_max(g, steps, 1), const(1, INT32))
    return tfl.mul(g, step, any_failed)
