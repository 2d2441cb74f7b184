"""Schur's form of real matrices: Hessenberg's form, then Francis's QR steps of two shifts.

All in real arithmetic, so that complex eigenvalues come out as exact conjugates. The matrices of a
batch go in step: one that is not in reach of a reflection, or done, is reflected by nothing.
"""

from dataclasses import dataclass

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings.iterations import Values, iterated, repeated
from litert_torch.converter.lowerings.jacobi import identity, power_of_two
from litert_torch.converter.lowerings.point_sampling import number

FLOAT32, INT32 = DType.FLOAT32, DType.INT32

_SWEEPS = 30  # a row at most; two or three are usual
_EXCEPTIONAL = 10  # every so many sweeps, other shifts break a circle
_EPSILON = float(np.finfo(np.float32).eps)
_TINY = 1e-30


@dataclass(frozen=True, eq=False)
class SchurForm:
    """A = scale Q T Q^T.

    Attributes:
        t: Upper triangular but for blocks of two rows, [B, n, n].
        q: Orthogonal, [B, n, n]; None where not asked for.
        scale: [B, 1, 1].
    """

    t: Value
    q: Value | None
    scale: Value


def schur_form(g: Graph, a: Value, *, vectors: bool) -> SchurForm:
    """Of matrices [B, n, n]."""
    n = int(a.shape[1])
    scale = power_of_two(g, a)
    state = [tfl.div(g, a, scale), *([identity(g, n, a)] if vectors else [])]
    if n > 2:
        state = repeated(g, [const(0, INT32), *state], n - 2, _hessenberg_step)[1:]
        h, bottom, top = _deflated(g, state[0])
        counter = number(0)
        state = repeated(
            g, [counter, bottom, top, h, *state[1:]], _SWEEPS * n, _sweep, _is_unfinished
        )[3:]
    return SchurForm(state[0], state[1] if vectors else None, scale)


def _hessenberg_step(g: Graph, state: Values) -> Values:
    """Column k reflected to zero below row k + 1."""
    index, *matrices = state
    n = int(matrices[0].shape[1])
    own = _of_table(g, np.eye(n), index)
    head = _of_table(g, np.eye(n, k=1), index)
    below = _of_table(g, np.triu(np.ones((n, n)), 1), index)
    column = tfl.mul(g, tfl.batch_matmul(g, matrices[0], own), below)
    v = _reflector(g, column, head)
    return [tfl.add(g, index, const(1, INT32)), *_reflected(g, matrices, v)]


def _of_table(g: Graph, table: np.ndarray, index: Value) -> Value:
    """Row `index` of a table [k, n] of constants, as [1, n, 1]."""
    row = tfl.gather(g, const(table, FLOAT32), index, axis=0)
    return tfl.reshape(g, row, (1, table.shape[1], 1))


def _reflector(g: Graph, x: Value, head: Value) -> Value:
    """v such that I - v v^T takes x [B, n, 1] to a multiple of the unit vector `head`.

    It is zero where x is. `head` is [1, n, 1].
    """
    largest = tfl.reduce_max(g, tfl.abs(g, x), [1], True)
    x = tfl.div(g, x, tfl.add(g, largest, number(_TINY)))
    first = tfl.sum(g, tfl.mul(g, x, head), [1], True)
    length = tfl.sqrt(g, tfl.sum(g, tfl.square(g, x), [1], True))
    v = tfl.add(g, x, tfl.mul(g, head, tfl.mul(g, signs(g, first), length)))
    square = tfl.mul(g, tfl.sum(g, tfl.square(g, v), [1], True), number(0.5))
    return tfl.div(g, v, tfl.sqrt(g, tfl.add(g, square, number(_TINY))))


def signs(g: Graph, x: Value) -> Value:
    """-1 or 1, which is that of 0 too."""
    nonzero = tfl.add(g, x, number(_TINY))
    return tfl.div(g, nonzero, tfl.abs(g, nonzero))


def _reflected(g: Graph, matrices: Values, v: Value) -> Values:
    """The first matrix reflected from both sides, the others from the right."""
    h = matrices[0]
    h = tfl.sub(g, h, tfl.batch_matmul(g, v, tfl.batch_matmul(g, v, h, adj_x=True)))
    return [_reflected_columns(g, m, v) for m in (h, *matrices[1:])]


def _reflected_columns(g: Graph, m: Value, v: Value) -> Value:
    return tfl.sub(g, m, tfl.batch_matmul(g, tfl.batch_matmul(g, m, v), v, adj_y=True))


def _is_unfinished(g: Graph, state: Values) -> Value:
    """Whether a matrix has a block of more than two rows."""
    return tfl.greater(g, tfl.reduce_max(g, state[1], [0, 1, 2], False), number(0))


def _deflated(g: Graph, h: Value) -> Values:
    """h with zeros below the subdiagonal, and for what is negligible in it.

    Then the last and the first row, [B, 1, 1], of the lowest block of more than two rows; 0 where
    there is none.
    """
    n = int(h.shape[1])
    linked = is_linked(g, h)
    keep = tfl.add(
        g, const(np.triu(np.ones((1, n, n))), FLOAT32), tfl.mul(g, linked, _below_diagonal(n))
    )
    h = tfl.mul(g, h, keep)
    rows = const(np.arange(n).reshape(1, n, 1), FLOAT32)
    both = tfl.mul(g, linked, shifted(g, linked, 1))
    bottom = tfl.reduce_max(g, tfl.mul(g, both, rows), [1], True)
    above = tfl.cast(g, tfl.less_equal(g, rows, bottom), FLOAT32)
    starts = tfl.mul(g, tfl.sub(g, number(1), linked), above)
    return [h, bottom, tfl.reduce_max(g, tfl.mul(g, starts, rows), [1], True)]


def is_linked(g: Graph, h: Value) -> Value:
    """1 for each row [B, n, 1] whose element left of the diagonal is not negligible, else 0."""
    n = int(h.shape[1])
    sizes = tfl.abs(g, diagonal(g, h))
    bound = tfl.mul(g, tfl.add(g, sizes, shifted(g, sizes, 1)), number(_EPSILON))
    left = tfl.sum(g, tfl.mul(g, tfl.abs(g, h), _below_diagonal(n)), [2], True)
    return tfl.cast(g, tfl.greater(g, left, tfl.add(g, bound, number(1e-10))), FLOAT32)


def diagonal(g: Graph, h: Value) -> Value:
    """The diagonals of matrices [B, n, n] as columns [B, n, 1]."""
    return tfl.sum(g, tfl.mul(g, h, const(np.eye(int(h.shape[1]))[None], FLOAT32)), [2], True)


def _below_diagonal(n: int) -> Value:
    return const(np.eye(n, k=-1)[None], FLOAT32)


def shifted(g: Graph, column: Value, by: int) -> Value:
    """Column [B, n, 1] moved down by rows, or up where `by` is negative; zeros come after it."""
    batch, n, _ = column.shape
    kept = tfl.slice(g, column, (0, max(-by, 0), 0), (batch, int(n) - abs(by), 1))
    return tfl.pad(g, kept, [(0, 0), (max(by, 0), max(-by, 0)), (0, 0)])


def _sweep(g: Graph, state: Values) -> Values:
    """A bulge chased through the lowest unfinished block of each matrix."""
    counter, bottom, top, *matrices = state
    h = matrices[0]
    n = int(h.shape[1])
    rows = const(np.arange(n).reshape(1, n, 1), FLOAT32)
    within = tfl.cast(g, tfl.less_equal(g, rows, bottom), FLOAT32)
    within = tfl.mul(g, within, tfl.cast(g, tfl.greater_equal(g, rows, top), FLOAT32))
    start = _first_column(g, h, within, top, *_shifts(g, h, bottom, counter))
    is_busy = tfl.cast(g, tfl.greater(g, bottom, number(0)), FLOAT32)
    idle = tfl.mul(g, tfl.sub(g, number(1), is_busy), number(n))
    first = tfl.reduce_min(g, tfl.add(g, top, idle), [0, 1, 2], False)
    last = tfl.reduce_max(g, bottom, [0, 1, 2], False)
    chased = iterated(
        g,
        [
            *(tfl.cast(g, first, INT32), tfl.cast(g, last, INT32)),
            *(start, top, tfl.mul(g, within, is_busy)),
            *matrices,
        ],
        lambda g, s: tfl.less(g, s[0], s[1]),
        _chase,
    )[5:]
    h, bottom, top = _deflated(g, chased[0])
    return [_next_count(g, counter), bottom, top, h, *chased[1:]]


def _next_count(g: Graph, counter: Value) -> Value:
    """Counts from 0 to `_EXCEPTIONAL` - 1 and from 0 again."""
    following = tfl.add(g, counter, number(1))
    goes_on = tfl.cast(g, tfl.less(g, following, number(_EXCEPTIONAL)), FLOAT32)
    return tfl.mul(g, following, goes_on)


def _chase(g: Graph, state: Values) -> Values:
    """One reflection of rows k to k + 2, which moves the bulge one row down."""
    index, last, start, top, within, *matrices = state
    n = int(matrices[0].shape[1])
    window = np.triu(np.ones((n, n))) - np.triu(np.ones((n, n)), 3)
    left = _of_table(g, np.eye(n, k=-1), index)
    head = _of_table(g, np.eye(n), index)
    k = tfl.cast(g, index, FLOAT32)
    is_first = tfl.cast(g, tfl.equal(g, top, k), FLOAT32)
    later = tfl.cast(g, tfl.less(g, top, k), FLOAT32)
    column = tfl.mul(g, tfl.batch_matmul(g, matrices[0], left), later)
    x = tfl.add(g, column, tfl.mul(g, start, is_first))
    x = tfl.mul(g, x, tfl.mul(g, within, _of_table(g, window, index)))
    v = _reflector(g, x, head)
    following = tfl.add(g, index, const(1, INT32))
    return [following, last, start, top, within, *_reflected(g, matrices, v)]


def _shifts(g: Graph, h: Value, bottom: Value, counter: Value) -> tuple[Value, Value]:
    """Real part, and square of the imaginary part, of the eigenvalues of the block's last two rows.

    Of two real ones, the nearer to the last element is both.
    """
    last = _unit(g, h, bottom)
    before = shifted(g, last, -1)
    right, left = tfl.batch_matmul(g, h, last), tfl.batch_matmul(g, h, before)
    a, c = _product(g, before, left), _product(g, last, left)
    b, d = _product(g, before, right), _product(g, last, right)
    half = tfl.mul(g, tfl.sub(g, a, d), number(0.5))
    cross = tfl.mul(g, b, c)
    inside = tfl.add(g, tfl.square(g, half), cross)
    is_real = tfl.cast(g, tfl.greater_equal(g, inside, number(0)), FLOAT32)
    root = tfl.sqrt(g, tfl.maximum(g, inside, number(0)))
    far = tfl.add(g, half, tfl.mul(g, signs(g, half), root))
    is_zero = tfl.cast(g, tfl.equal(g, far, number(0)), FLOAT32)
    near = tfl.sub(g, d, tfl.div(g, cross, tfl.add(g, far, is_zero)))
    middle = tfl.add(g, d, half)
    shift = tfl.select_v2(g, tfl.greater(g, is_real, number(0)), near, middle)
    square = tfl.maximum(g, tfl.neg(g, inside), number(0))
    size = tfl.add(g, tfl.abs(g, c), tfl.abs(g, b))
    is_usual = tfl.less(g, counter, number(_EXCEPTIONAL - 1))
    other = tfl.add(g, d, tfl.mul(g, size, number(0.75)))
    shift = tfl.select_v2(g, is_usual, shift, other)
    square = tfl.select_v2(g, is_usual, square, tfl.mul(g, tfl.square(g, size), number(0.4375)))
    return shift, square


def _first_column(
    g: Graph, h: Value, within: Value, top: Value, shift: Value, square: Value
) -> Value:
    """((H - shift)^2 + square) times the block's first unit vector, [B, n, 1]."""
    unit = _unit(g, h, top)
    once = _less(g, h, unit, within, shift)
    twice = _less(g, h, once, within, shift)
    return tfl.add(g, twice, tfl.mul(g, unit, square))


def _less(g: Graph, h: Value, x: Value, within: Value, shift: Value) -> Value:
    product = tfl.mul(g, tfl.batch_matmul(g, h, x), within)
    return tfl.sub(g, product, tfl.mul(g, x, shift))


def _unit(g: Graph, h: Value, row: Value) -> Value:
    """Unit vectors [B, n, 1] of rows [B, 1, 1]."""
    n = int(h.shape[1])
    rows = const(np.arange(n).reshape(1, n, 1), FLOAT32)
    return tfl.cast(g, tfl.equal(g, rows, row), FLOAT32)


def _product(g: Graph, x: Value, y: Value) -> Value:
    return tfl.sum(g, tfl.mul(g, x, y), [1], True)
