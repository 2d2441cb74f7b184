"""QR factors as LAPACK keeps them: Householder's reflections I - tau v v^T, and products of these.

A reflection's v is 0 above row k, 1 in row k, and stored below the diagonal of column k.
"""

from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.elimination import flat_batch, swapped_axes, worked_off
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.rearranging import triu
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

FLOAT32 = DType.FLOAT32


@dataclass(frozen=True, eq=False)
class _Reflections:
    """H_0 H_1 ... H_(k-1).

    Attributes:
        columns: v_i where it is stored, with anything in rows up to i, [k, B, m, 1].
        taus: [k, B, 1, 1].
    """

    columns: Value
    taus: Value

    @property
    def count(self) -> int:
        return int(self.columns.shape[0])


@lowers(aten.geqrf.default)
def geqrf(g: Graph, x: Value) -> list[Value]:
    """R of x [..., m, n] with the reflections' vectors below it, and their taus [..., k]."""
    reflections, reflected = _factored(g, flat_batch(g, x))
    batch, m, n = reflected.shape
    k = reflections.count
    columns = tfl.reshape(g, reflections.columns, (k, batch, m))
    packed = tfl.transpose(g, columns, (1, 2, 0))
    if int(n) > k:
        rest = tfl.slice(g, reflected, (0, 0, k), (batch, m, int(n) - k))
        packed = tfl.concatenation(g, [packed, rest], axis=2)
    taus = tfl.transpose(g, tfl.reshape(g, reflections.taus, (k, batch)), (1, 0))
    return [tfl.reshape(g, packed, x.shape), tfl.reshape(g, taus, (*x.shape[:-2], k))]


@lowers(aten.linalg_qr.default)
def linalg_qr(g: Graph, A: Value, mode: str = "reduced") -> list[Value]:  # noqa: N803
    """Q and R with A = Q R, of A [..., m, n]; R alone in mode "r"."""
    m, n = int(A.shape[-2]), int(A.shape[-1])
    lead, kept = A.shape[:-2], m if mode == "complete" else min(m, n)
    if min(m, n) == 0:
        return [_unit(g, A, m, kept), tfl.reshape(g, A, (*lead, kept, n))]
    reflections, reflected = _factored(g, flat_batch(g, A))
    batch = reflected.shape[0]
    r = triu(g, tfl.slice(g, reflected, (0, 0, 0), (batch, kept, n)))
    r = tfl.reshape(g, r, (*lead, kept, n))
    if mode == "r":
        return [const(np.zeros(0), FLOAT32), r]
    unit = flat_batch(g, _unit(g, A, m, kept))
    q = _applied(g, reflections, unit, last_first=True)
    return [tfl.reshape(g, q, (*lead, m, kept)), r]


@lowers(aten.linalg_householder_product.default)
def linalg_householder_product(g: Graph, x: Value, tau: Value) -> Value:
    """The first n columns of the product of the reflections in x [..., m, n]."""
    unit = _unit(g, x, int(x.shape[-2]), int(x.shape[-1]))
    if tau.shape[-1] == 0:
        return unit
    q = _applied(g, _stored(g, x, tau), flat_batch(g, unit), last_first=True)
    return tfl.reshape(g, q, x.shape)


@lowers(aten.ormqr.default)
def ormqr(
    g: Graph,
    x: Value,
    input2: Value,
    input3: Value,
    left: bool = True,
    transpose: bool = False,
) -> Value:
    """Q C, Q^T C, C Q or C Q^T, of the reflections x and their taus and C, which is input3."""
    if input2.shape[-1] == 0:
        return input3
    if not left:
        turned = swapped_axes(g, input3)
        return swapped_axes(g, ormqr(g, x, input2, turned, transpose=not transpose))
    c = flat_batch(g, input3)
    done = _applied(g, _stored(g, x, input2), c, last_first=not transpose)
    return tfl.reshape(g, done, input3.shape)


def _unit(g: Graph, like: Value, rows: int, columns: int) -> Value:
    """The unit matrix for each matrix of a batch as that of `like`."""
    unit = const(np.eye(rows, columns), FLOAT32)
    return broadcast(g, unit, (*like.shape[:-2], rows, columns))


def _stored(g: Graph, x: Value, tau: Value) -> _Reflections:
    """The reflections in the columns of x [..., m, n], as many as tau [..., k] has elements."""
    flat = flat_batch(g, x)
    batch, m, _ = flat.shape
    k = int(tau.shape[-1])
    columns = tfl.transpose(g, tfl.slice(g, flat, (0, 0, 0), (batch, m, k)), (2, 0, 1))
    taus = tfl.transpose(g, tfl.reshape(g, tau, (batch, k)), (1, 0))
    return _Reflections(
        tfl.reshape(g, columns, (k, batch, m, 1)), tfl.reshape(g, taus, (k, batch, 1, 1))
    )


def _rows(count: int, m: int, *, last_first: bool = False) -> tuple[Value, Value]:
    """Where a column's row k is, and where the rows below: two of [count, 1, m, 1]."""
    order = slice(None, None, -1 if last_first else 1)
    here = np.eye(count, m)[order].reshape(count, 1, m, 1)
    below = np.triu(np.ones((count, m)), 1)[order].reshape(count, 1, m, 1)
    return const(here, FLOAT32), const(below, FLOAT32)


def _applied(g: Graph, reflections: _Reflections, c: Value, *, last_first: bool) -> Value:
    """H_0 ... H_(k-1) c, which begins with the last; or H_(k-1) ... H_0 c; of c [B, m, w]."""
    xs = [reflections.columns, reflections.taus]
    if last_first and reflections.count > 1:
        xs = [tfl.reverse_v2(g, x, [0]) for x in xs]
    xs += _rows(reflections.count, int(c.shape[1]), last_first=last_first)
    return worked_off(g, _apply, loops.Operands(xs, [c], [], ()))[1][0]


def _apply(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    (column, tau, here, below), (c,) = xs, state
    v = tfl.add(g, tfl.mul(g, column, below), here)
    return [], [_reflected(g, c, v, tau)]


def _reflected(g: Graph, c: Value, v: Value, tau: Value) -> Value:
    """C - tau v (v^T c)."""
    along = tfl.batch_matmul(g, v, c, adj_x=True)
    return tfl.sub(g, c, tfl.batch_matmul(g, tfl.mul(g, v, tau), along))


def _factored(g: Graph, a: Value) -> tuple[_Reflections, Value]:
    """The reflections that make a [B, m, n] upper triangular, and a after them.

    What is above the reflections' vectors is R; what is below the diagonal of a is nothing.
    """
    batch, m, n = a.shape[0], int(a.shape[1]), int(a.shape[2])
    k = min(m, n)
    picks = const(np.eye(k, n).reshape(k, 1, 1, n), FLOAT32)
    results = (TensorType((batch, m, 1), FLOAT32), TensorType((batch, 1, 1), FLOAT32))
    operands = loops.Operands([picks, *_rows(k, m)], [a], [], results)
    (columns, taus), (reflected,) = worked_off(g, _factor, operands)
    return _Reflections(columns, taus), reflected


def _factor(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """A column's part below row k mirrored to zero; one that is zero there stays, with tau 0."""
    (pick, here, below), (a,) = xs, state
    column = tfl.sum(g, tfl.mul(g, a, pick), [2], True)
    tail, head, size = _scaled(g, column, here, below)
    rest = tfl.sum(g, tfl.square(g, tail), [1], True)
    length = tfl.sqrt(g, tfl.add(g, tfl.square(g, head), rest))
    stays = tfl.equal(g, rest, number(0))
    away = tfl.select_v2(g, tfl.less(g, head, number(0)), length, tfl.neg(g, length))
    mirrored = tfl.select_v2(g, stays, head, away)
    difference = tfl.sub(g, mirrored, head)
    tau = tfl.div(g, difference, tfl.select_v2(g, stays, number(1), mirrored))
    divisor = tfl.select_v2(g, stays, number(1), tfl.neg(g, difference))
    v = tfl.div(g, tail, divisor)
    above = tfl.sub(g, tfl.sub(g, number(1), here), below)
    kept = tfl.add(g, tfl.mul(g, column, above), v)
    stored = tfl.add(g, kept, tfl.mul(g, here, tfl.mul(g, mirrored, size)))
    return [stored, tau], [_reflected(g, a, tfl.add(g, v, here), tau)]


def _scaled(g: Graph, column: Value, here: Value, below: Value) -> tuple[Value, Value, Value]:
    """The part below row k and the element in it, divided by a size that saves their squares."""
    part = tfl.mul(g, column, tfl.add(g, here, below))
    largest = tfl.reduce_max(g, tfl.abs(g, part), [1], True)
    size = tfl.add(g, largest, tfl.cast(g, tfl.equal(g, largest, number(0)), FLOAT32))
    part = tfl.div(g, part, size)
    head = tfl.sum(g, tfl.mul(g, part, here), [1], True)
    return tfl.mul(g, part, below), head, size
