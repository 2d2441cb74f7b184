"""LU factors with partial pivoting, in LAPACK's form: L and U in one matrix, and row exchanges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.elimination import (
    flat_batch,
    substituted,
    swapped_axes,
    worked_off,
)
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.rearranging import diagonal, tril, triu
from litert_torch.converter.lowerings.row_exchanges import (
    exchange,
    first_failure,
    in_place,
    order_of,
    rows,
)
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

FLOAT32, INT32 = DType.FLOAT32, DType.INT32


@dataclass(frozen=True, eq=False)
class _Factors:
    """A = P L U.

    Attributes:
        packed: U, and below its diagonal L, [B, m, n].
        pivots: With which row each was exchanged, counted from 1, int32 [B, k].
        order: What row of L U is which of A, int32 [B, m].
    """

    packed: Value
    pivots: Value
    order: Value


@lowers(aten.linalg_lu_factor_ex.default)
def linalg_lu_factor_ex(
    g: Graph,
    A: Value,  # noqa: N803
    *,
    pivot: bool = True,
    check_errors: bool = False,
) -> list[Value]:
    """L and U in one, pivots, and the first pivot that is 0."""
    lead, k = A.shape[:-2], min(int(A.shape[-2]), int(A.shape[-1]))
    done = _factored(g, flat_batch(g, A), pivot=pivot)
    info = filled(g, lead, 0, INT32)
    if k:
        is_zero = tfl.equal(g, diagonal(g, done.packed, 0, -2, -1), number(0))
        info = tfl.reshape(g, first_failure(g, is_zero), lead)
    return [
        tfl.reshape(g, done.packed, A.shape),
        tfl.reshape(g, done.pivots, (*lead, k)),
        info,
    ]


@lowers(aten.linalg_lu.default)
def linalg_lu(g: Graph, A: Value, *, pivot: bool = True) -> list[Value]:  # noqa: N803
    """P, L and U with A = P L U; no P without pivots."""
    done = _factored(g, flat_batch(g, A), pivot=pivot)
    p = _permutation(g, done.order, A.shape[:-2]) if pivot else _nothing()
    return [p, *_unpacked(g, tfl.reshape(g, done.packed, A.shape))]


@lowers(aten.lu_unpack.default)
def lu_unpack(
    g: Graph,
    LU_data: Value,  # noqa: N803
    LU_pivots: Value,  # noqa: N803
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> list[Value]:
    """P, L and U of the packed form; empty where they are not asked for."""
    p = _nothing()
    if unpack_pivots:
        order = order_of(g, _flat_pivots(g, LU_pivots), int(LU_data.shape[-2]))
        p = _permutation(g, order, LU_data.shape[:-2])
    return [p, *(_unpacked(g, LU_data) if unpack_data else [_nothing(), _nothing()])]


@lowers(aten.linalg_lu_solve.default)
def linalg_lu_solve(
    g: Graph,
    LU: Value,  # noqa: N803
    pivots: Value,
    B: Value,  # noqa: N803
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Value:
    """x of A x = B, A^T x = B, x A = B or x A^T = B, of the packed factors of A."""
    if not left:
        turned = swapped_axes(g, B)
        return swapped_axes(g, linalg_lu_solve(g, LU, pivots, turned, adjoint=not adjoint))
    lead = dims.broadcast(LU.shape[:-2], B.shape[:-2])
    n = int(LU.shape[-1])
    packed = flat_batch(g, broadcast(g, LU, (*lead, n, n)))
    places = _flat_pivots(g, broadcast(g, pivots, (*lead, n)))
    b = broadcast(g, B, (*lead, *B.shape[-2:]))
    solve = _solved_transposed if adjoint else _solved
    return tfl.reshape(g, solve(g, packed, order_of(g, places, n), flat_batch(g, b)), b.shape)


def _solved(g: Graph, packed: Value, order: Value, b: Value) -> Value:
    """x of P L U x = b."""
    y = substituted(g, packed, rows(g, b, order), upper=False, unit=True)
    return substituted(g, packed, y, upper=True, unit=False)


def _solved_transposed(g: Graph, packed: Value, order: Value, b: Value) -> Value:
    """x of U^T L^T P^T x = b."""
    turned = swapped_axes(g, packed)
    y = substituted(g, turned, b, upper=False, unit=False)
    y = substituted(g, turned, y, upper=True, unit=True)
    return tfl.batch_matmul(g, _permutation(g, order, order.shape[:1]), y)


def _flat_pivots(g: Graph, pivots: Value) -> Value:
    """Pivots [..., k] as [B, k]."""
    flat = flat_batch(g, tfl.reshape(g, pivots, (*pivots.shape, 1)))
    return tfl.reshape(g, flat, flat.shape[:2])


def _nothing() -> Value:
    return const(np.zeros(0), FLOAT32)


def _permutation(g: Graph, order: Value, lead: Sequence[Size]) -> Value:
    """P, of which column j is 1 in row order[j]: [*lead, m, m]."""
    m = int(order.shape[1])
    return tfl.reshape(g, tfl.one_hot(g, order, m, dtype=FLOAT32, axis=1), (*lead, m, m))


def _unpacked(g: Graph, packed: Value) -> list[Value]:
    """L [..., m, k] with ones on its diagonal, and U [..., k, n]."""
    *lead, m, n = packed.shape
    k = min(int(m), int(n))
    begin = [0] * packed.rank
    lower = tril(g, tfl.slice(g, packed, begin, (*lead, m, k)), -1)
    unit = const(np.eye(int(m), k), FLOAT32)
    return [tfl.add(g, lower, unit), triu(g, tfl.slice(g, packed, begin, (*lead, k, n)))]


def _factored(g: Graph, a: Value, *, pivot: bool) -> _Factors:
    """Of a [B, m, n]; without `pivot` no row is exchanged."""
    batch, m, n = a.shape[0], int(a.shape[1]), int(a.shape[2])
    k = min(m, n)
    order = in_place(g, (batch,), m)
    own = tfl.add(g, in_place(g, (batch,), k), const(1, INT32))
    if k == 0:
        return _Factors(a, own, order)
    xs = [np.eye(k, m), np.triu(np.ones((k, m)), 1), np.eye(k, n), np.triu(np.ones((k, n)), 1)]
    shapes = [(k, 1, m, 1), (k, 1, m, 1), (k, 1, 1, n), (k, 1, 1, n)]
    stacks = [const(x.reshape(s), FLOAT32) for x, s in zip(xs, shapes, strict=True)]
    if not pivot:
        (packed,) = worked_off(g, _eliminate, loops.Operands(stacks, [a], [], ()))[1]
        return _Factors(packed, own, order)
    numbers = const(np.arange(k).reshape(k, 1), FLOAT32)
    results = (TensorType((batch, 1), INT32),)
    operands = loops.Operands([numbers, *stacks], [a, order], [], results)
    (places,), (packed, order) = worked_off(g, _exchange_and_eliminate, operands)
    places = tfl.transpose(g, tfl.reshape(g, places, (k, batch)), (1, 0))
    return _Factors(packed, tfl.add(g, places, const(1, INT32)), order)


def _exchange_and_eliminate(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """The row that is largest in column k goes to row k; then column k is worked off."""
    (step, *masks), (a, order) = xs, state
    here, below, column, _ = masks
    batch, m, _ = a.shape
    left = tfl.add(g, here, below)
    size = tfl.abs(g, tfl.sum(g, tfl.mul(g, a, column), [2], True))
    candidates = tfl.sub(g, tfl.mul(g, size, left), tfl.sub(g, number(1), left))
    best = tfl.arg_max(g, tfl.reshape(g, candidates, (batch, m)), 1)
    best = tfl.reshape(g, best, (batch, 1))
    read = exchange(g, tfl.cast(g, step, INT32), best, int(m))
    read = tfl.reshape(g, read, (batch, m))
    _, (a,) = _eliminate(g, masks, [rows(g, a, read)], fixed)
    return [best], [a, rows(g, order, read)]


def _eliminate(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """Column k below the diagonal becomes L's, a product with which goes off the columns after."""
    (here, below, column, after), (a,) = xs, state
    row = tfl.sum(g, tfl.mul(g, a, here), [1], True)
    pivot = tfl.sum(g, tfl.mul(g, row, column), [2], True)
    divisor = tfl.add(g, pivot, tfl.cast(g, tfl.equal(g, pivot, number(0)), FLOAT32))
    below_pivot = tfl.mul(g, tfl.sum(g, tfl.mul(g, a, column), [2], True), below)
    factor = tfl.div(g, below_pivot, divisor)
    cleared = tfl.mul(g, a, tfl.sub(g, number(1), tfl.mul(g, below, column)))
    change = tfl.mul(g, factor, tfl.sub(g, tfl.mul(g, row, after), column))
    return [], [tfl.sub(g, cleared, change)]
