"""Singular value decompositions, and what is made of them."""

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import jacobi, lowers
from litert_torch.converter.lowerings.elimination import flat_batch, swapped_axes
from litert_torch.converter.lowerings.iterations import Values, iterated
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.symmetric_eigenvalues import (
    decomposed,
    mirrored,
    recomposed,
)
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

FLOAT32, INT32 = DType.FLOAT32, DType.INT32

_NEGLIGIBLE = 2e-7  # singular values below that share of the largest are rounding errors
_EPSILON = float(np.finfo(np.float32).eps)


def singular_rows(g: Graph, rows: Value) -> tuple[Value, Value, Value]:
    """U, S and V of rows = V^T diag(S) U, for rows [B, n, m] with n <= m.

    S [B, n] descends; U [B, n, m] has rows of length 1, or zeros where S is 0, and those where S
    is next to nothing may not be orthogonal; V [B, n, n] is orthogonal.
    """
    turned, v = jacobi.orthogonalized(g, rows)
    values = _lengths(g, turned)
    order = jacobi.descending(g, values)
    column = tfl.batch_matmul(g, order, _columns(g, values))
    turned, v = tfl.batch_matmul(g, order, turned), tfl.batch_matmul(g, order, v)
    is_zero = tfl.cast(g, tfl.equal(g, column, number(0)), FLOAT32)
    u = tfl.div(g, turned, tfl.add(g, column, is_zero))
    return u, tfl.reshape(g, column, values.shape), v


def _lengths(g: Graph, rows: Value) -> Value:
    """Of rows [B, n, m]: [B, n]; scaled, so that no square overflows or vanishes."""
    scale = jacobi.power_of_two(g, rows)
    square = tfl.sum(g, tfl.square(g, tfl.div(g, rows, scale)), [2], True)
    return tfl.reshape(g, tfl.mul(g, tfl.sqrt(g, square), scale), rows.shape[:2])


def dependable(g: Graph, rows: Value, values: Value) -> Value:
    """Singular vectors as rows, orthonormal, and zeros where the singular value is an error."""
    largest = tfl.reduce_max(g, values, [1], True)
    counts = tfl.greater(g, values, tfl.mul(g, largest, number(_NEGLIGIBLE)))
    return jacobi.polished(g, tfl.mul(g, rows, _columns(g, tfl.cast(g, counts, FLOAT32))))


def completed(g: Graph, rows: Value, count: int) -> Value:
    """Orthonormal rows [B, count, m] of rows [B, n, m] that are orthonormal, or zero at the end.

    A missing row is the part orthogonal to all others of the unit vector that has the largest.
    """
    batch, n, m = rows.shape
    rows = tfl.pad(g, rows, [(0, 0), (0, count - int(n)), (0, 0)])
    known = tfl.cast(g, tfl.greater(g, _squares(g, rows, 2), number(0.5)), FLOAT32)
    first = tfl.cast(g, tfl.reduce_min(g, tfl.sum(g, known, [1], False), [0], False), INT32)

    def goes_on(g: Graph, state: Values) -> Value:
        return tfl.less(g, state[0], const(count, INT32))

    def step(g: Graph, state: Values) -> Values:
        index, rows = state
        pick = tfl.reshape(g, tfl.one_hot(g, index, count, dtype=FLOAT32), (1, count, 1))
        length = tfl.sum(g, tfl.mul(g, _columns(g, _squares(g, rows, 2)), pick), [1], True)
        missing = tfl.cast(g, tfl.less(g, length, number(0.5)), FLOAT32)
        unit = tfl.one_hot(g, tfl.arg_min(g, _squares(g, rows, 1), 1), int(m), dtype=FLOAT32)
        fresh = tfl.reshape(g, unit, (batch, 1, m))
        for _ in range(2):  # once leaves what cancellation left
            shares = tfl.batch_matmul(g, fresh, rows, adj_y=True)
            fresh = tfl.sub(g, fresh, tfl.batch_matmul(g, shares, rows))
            size = tfl.sqrt(g, tfl.sum(g, tfl.square(g, fresh), [2], True))
            fresh = tfl.div(g, fresh, size)
        added = tfl.batch_matmul(g, tfl.mul(g, pick, missing), fresh)
        return [tfl.add(g, index, const(1, INT32)), tfl.add(g, rows, added)]

    return iterated(g, [first, rows], goes_on, step)[1]


def _squares(g: Graph, x: Value, axis: int) -> Value:
    return tfl.sum(g, tfl.square(g, x), [axis], False)


def _columns(g: Graph, x: Value) -> Value:
    return tfl.reshape(g, x, (*x.shape, 1))


def _thin(g: Graph, x: Value) -> tuple[Value, Value, Value]:
    """Rows of U [B, k, m], S [B, k] and rows of V [B, k, n] of x [..., m, n].

    The vectors of the shorter side are orthonormal, the others as `singular_rows` has them.
    """
    m, n = (int(s) for s in x.shape[-2:])
    jacobi.rotated_size(min(m, n))
    flat = flat_batch(g, x)
    if m < n:
        v, values, u = singular_rows(g, flat)
    else:
        u, values, v = singular_rows(g, swapped_axes(g, flat))
    return u, values, v


@lowers(aten._linalg_svd.default)
def linalg_svd(
    g: Graph,
    A: Value,  # noqa: N803
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> list[Value]:
    """U, descending S and V^T with A = U diag(S) V^T; the signs of singular vectors are free."""
    u, flat, v = _thin(g, A)
    m, n, batch = int(u.shape[2]), int(v.shape[2]), A.shape[:-2]
    values = tfl.reshape(g, flat, (*batch, flat.shape[1]))
    if not compute_uv:
        empty = const(np.zeros(0), FLOAT32)
        return [empty, values, empty]
    count = max(m, n) if full_matrices else min(m, n)
    if m < n:
        v = completed(g, dependable(g, v, flat), count)
    else:
        u = completed(g, dependable(g, u, flat), count)
    u = swapped_axes(g, u)
    return [
        tfl.reshape(g, u, (*batch, *u.shape[1:])),
        values,
        tfl.reshape(g, v, (*batch, *v.shape[1:])),
    ]


@lowers(aten.linalg_polar.default)
def linalg_polar(g: Graph, A: Value) -> list[Value]:  # noqa: N803
    """U with orthonormal columns and H, symmetric and not negative, with A = U H."""
    u, values, v = _thin(g, A)
    u = completed(g, dependable(g, u, values), int(u.shape[1]))
    turn = tfl.batch_matmul(g, u, v, adj_x=True)
    stretch = recomposed(g, values, v)
    n = A.shape[-1]
    return [tfl.reshape(g, turn, A.shape), tfl.reshape(g, stretch, (*A.shape[:-2], n, n))]


@lowers(aten.linalg_pinv.atol_rtol_tensor)
def linalg_pinv(
    g: Graph,
    x: Value,
    *,
    atol: Value | None = None,
    rtol: Value | None = None,
    hermitian: bool = False,
) -> Value:
    """V diag(1 / S) U^T, without singular values of at most max(atol, rtol * the largest)."""
    if hermitian:
        values, left = decomposed(g, mirrored(g, x))
        right = left
    else:
        right, values, left = _thin(g, x)
    sizes = tfl.abs(g, values)
    bound = _tolerance(g, x, tfl.reduce_max(g, sizes, [1], True), atol, rtol)
    counts = tfl.greater(g, sizes, bound)
    reciprocal = tfl.select_v2(g, counts, tfl.div(g, number(1), values), number(0))
    scaled = tfl.mul(g, left, _columns(g, reciprocal))
    product = tfl.batch_matmul(g, scaled, right, adj_x=True)
    return tfl.reshape(g, product, (*x.shape[:-2], x.shape[-1], x.shape[-2]))


def _tolerance(g: Graph, x: Value, largest: Value, atol: Value | None, rtol: Value | None) -> Value:
    """[B, 1]; the default rtol holds where atol is not positive."""
    default = number(_EPSILON * max(int(s) for s in x.shape[-2:]))
    absolute = None if atol is None else _of_matrices(g, x, atol)
    if rtol is not None:
        relative = _of_matrices(g, x, rtol)
    elif absolute is not None:
        given = tfl.greater(g, absolute, number(0))
        relative = tfl.select_v2(g, given, number(0), default)
    else:
        relative = default
    bound = tfl.mul(g, largest, relative)
    return bound if absolute is None else tfl.maximum(g, absolute, bound)


def _of_matrices(g: Graph, x: Value, tolerance: Value) -> Value:
    """A tolerance for all matrices of x, or for each, as [1, 1] or [B, 1]."""
    tolerance = tfl.cast(g, tolerance, FLOAT32)
    batch = x.shape[:-2]
    if not dims.is_static(batch) or dims.numel(tolerance.shape) == 1:
        return tfl.reshape(g, tolerance, (1, 1))
    return tfl.reshape(g, broadcast(g, tolerance, batch), (dims.numel(batch), 1))
