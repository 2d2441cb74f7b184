"""Gauss-Jordan elimination and Cholesky's, step by step, for inverses and determinants.

A matrix of up to `UNROLLED_UP_TO` rows is worked off by that many copies of a step, a larger one
by a WHILE. Rows are never exchanged: a step chooses its pivot among the rows not yet chosen, by
the largest absolute value (partial pivoting), and the order of the choices is a permutation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings import loops
from litert_torch.converter.lowerings.point_sampling import number

UNROLLED_UP_TO = 8
FLOAT32 = DType.FLOAT32


@dataclass(frozen=True, eq=False)
class Elimination:
    """A x = B brought to P x = C.

    Attributes:
        solution: x = P^T C, [B, n, m].
        choices: P^T: row k is 1 where the pivot of column k was, [B, n, n].
        pivots: [B, n].
    """

    solution: Value
    choices: Value
    pivots: Value


def worked_off(
    g: Graph, step: loops.Step, operands: loops.Operands
) -> tuple[list[Value], list[Value]]:
    """Apply `step` to each slice of xs: unrolled where these are few, else by a WHILE."""
    run = loops.unrolled if int(operands.xs[0].shape[0]) <= UNROLLED_UP_TO else loops.scan
    return run(g, step, operands)


def _unit_rows(count: int, *, backwards: bool = False) -> Value:
    """The rows of the unit matrix, which pick a column or a row: [n, 1, 1, n]."""
    rows = np.eye(count)[:: -1 if backwards else 1]
    return const(rows.reshape(count, 1, 1, count), FLOAT32)


def _column(g: Graph, x: Value, pick: Value) -> Value:
    """The column of x [B, n, m] that the unit row `pick` [1, 1, m] picks: [B, n, 1]."""
    return tfl.sum(g, tfl.mul(g, x, pick), [2], True)


def _as_column(g: Graph, row: Value) -> Value:
    return tfl.reshape(g, row, (row.shape[0], row.shape[2], 1))


def eliminated(g: Graph, a: Value, b: Value | None) -> Elimination:
    """Of a [B, n, n] and b [B, n, m]; without b, its solution means nothing."""
    batch, n = a.shape[0], int(a.shape[1])
    both = a if b is None else tfl.concatenation(g, [a, b], axis=2)
    width = int(both.shape[2])
    picks = const(np.eye(n, width).reshape(n, 1, 1, width), FLOAT32)
    free = tfl.add(g, tfl.mul(g, tfl.sum(g, a, [1], True), number(0)), number(1))
    rows = (TensorType((batch, 1, n), FLOAT32), TensorType((batch, 1, 1), FLOAT32))
    operands = loops.Operands([picks], [both, free], [], rows)
    (choices, pivots), (reduced, _) = worked_off(g, _elimination_step, operands)
    order = tfl.transpose(g, tfl.reshape(g, choices, (n, batch, n)), (1, 0, 2))
    diagonal = tfl.transpose(g, tfl.reshape(g, pivots, (n, batch)), (1, 0))
    right = reduced if b is None else tfl.slice(g, reduced, (0, 0, n), b.shape)
    return Elimination(tfl.batch_matmul(g, order, right), order, diagonal)


def _elimination_step(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """A - (column - choice) * row / pivot: the column becomes the choice, a unit vector."""
    (pick,), (a, free) = xs, state
    batch, n, _ = a.shape
    column = _column(g, a, pick)
    line = tfl.reshape(g, column, (batch, 1, n))
    taken = tfl.sub(g, number(1), free)
    candidates = tfl.sub(g, tfl.mul(g, tfl.abs(g, line), free), taken)
    best = tfl.arg_max(g, candidates, 2)
    choice = tfl.one_hot(g, best, int(n), dtype=FLOAT32)
    pivot = tfl.sum(g, tfl.mul(g, line, choice), [2], True)
    is_zero = tfl.cast(g, tfl.equal(g, pivot, number(0)), FLOAT32)
    row = tfl.div(g, tfl.batch_matmul(g, choice, a), tfl.add(g, pivot, is_zero))
    change = tfl.batch_matmul(g, tfl.sub(g, column, _as_column(g, choice)), row)
    return [choice, pivot], [tfl.sub(g, a, change), tfl.sub(g, free, choice)]


def parity(g: Graph, choices: Value) -> Value:
    """+1 or -1 for an even or odd permutation, given as rows [B, n, n]: [B]."""
    batch, n, _ = choices.shape
    numbers = const(np.arange(int(n), dtype=np.float32).reshape(1, 1, int(n)), FLOAT32)
    place = tfl.sum(g, tfl.mul(g, choices, numbers), [2], False)
    before = tfl.reshape(g, place, (batch, n, 1))
    after = tfl.reshape(g, place, (batch, 1, n))
    swapped = tfl.cast(g, tfl.greater(g, before, after), FLOAT32)
    pairs = const(np.triu(np.ones((1, int(n), int(n))), 1), FLOAT32)
    count = tfl.sum(g, tfl.mul(g, swapped, pairs), [1, 2], False)
    half = tfl.mul(g, count, number(0.5))
    odd = tfl.sub(g, half, tfl.floor(g, half))
    return tfl.sub(g, number(1), tfl.mul(g, odd, number(4)))


def factored(g: Graph, a: Value) -> Value:
    """The lower triangle L of a = L L^T, [B, n, n]; NaN where a is not positive definite."""
    batch, n = a.shape[0], int(a.shape[1])
    below = const(np.triu(np.ones((n, n))).reshape(n, 1, 1, n), FLOAT32)
    rows = (TensorType((batch, 1, n), FLOAT32),)
    operands = loops.Operands([_unit_rows(n), below], [a], [], rows)
    (columns,), _ = worked_off(g, _factor_step, operands)
    return tfl.transpose(g, tfl.reshape(g, columns, (n, batch, n)), (1, 2, 0))


def _factor_step(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """One column of L; what it explains is taken away from the matrix."""
    (pick, below), (a,) = xs, state
    batch, n, _ = a.shape
    line = tfl.mul(g, tfl.reshape(g, _column(g, a, pick), (batch, 1, n)), below)
    pivot = tfl.sum(g, tfl.mul(g, line, pick), [2], True)
    row = tfl.div(g, line, tfl.sqrt(g, pivot))
    return [row], [tfl.sub(g, a, tfl.batch_matmul(g, _as_column(g, row), row))]


def substituted(g: Graph, a: Value, b: Value, *, upper: bool, unit: bool) -> Value:
    """x of a x = b [B, n, m], where a [B, n, n] is triangular; its other triangle is not read."""
    n = int(a.shape[1])
    nothing = tfl.mul(g, b, number(0))
    operands = loops.Operands([_unit_rows(n, backwards=upper)], [nothing], [a, b], ())

    def step(
        g: Graph, xs: loops.Values, state: loops.Values, fixed: Sequence[Value]
    ) -> tuple[loops.Values, loops.Values]:
        """Row k of x, from the rows of x that are known; the others are zero."""
        (pick,), (x,), (a, b) = xs, state, fixed
        column = tfl.reshape(g, pick, (1, n, 1))
        of_a = tfl.sum(g, tfl.mul(g, a, column), [1], True)
        of_b = tfl.sum(g, tfl.mul(g, b, column), [1], True)
        rest = tfl.sub(g, of_b, tfl.batch_matmul(g, of_a, x))
        if not unit:
            rest = tfl.div(g, rest, tfl.sum(g, tfl.mul(g, of_a, pick), [2], True))
        return [], [tfl.add(g, x, tfl.mul(g, column, rest))]

    return worked_off(g, step, operands)[1][0]


def flat_batch(g: Graph, x: Value) -> Value:
    """x [..., n, m] as [B, n, m]."""
    batch: Size = 1
    for s in x.shape[:-2]:
        batch = s if batch == 1 else batch * s
    return tfl.reshape(g, x, (batch, *x.shape[-2:]))


def swapped_axes(g: Graph, x: Value) -> Value:
    """The transposes of matrices x [..., n, m]."""
    return tfl.transpose(g, x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))
