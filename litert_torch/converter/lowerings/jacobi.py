"""Jacobi's rotations: eigenvectors of symmetric matrices, and orthogonal rows of any matrix.

A round rotates n / 2 disjoint pairs of rows at once: row i with row i + n // 2. Then rows change
places as in a round-robin tournament, so that after a sweep of rounds each has met every other.
Rotations and places are one orthogonal matrix, and a round is two or three matrix products.
"""

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings.iterations import Step, Values, repeated
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.views import broadcast
from litert_torch.errors import UnsupportedCaseError

FLOAT32 = DType.FLOAT32

_LARGEST = 256  # rows; a round is n^3 operations, and a sweep n rounds
_SWEEPS = 16  # at most; random matrices of 64 rows take 8
_CONVERGED = 1e-5  # convergence is quadratic: a sweep that finds no more leaves nothing behind
_NEGLIGIBLE = 1e-8  # rows shorter than that share of the longest are rounding errors
_TINY = 1e-30


def rotated_size(n: Size) -> int:
    """How many rows are to be rotated; raises where they are too many."""
    n = int(n)
    if n > _LARGEST:
        raise UnsupportedCaseError(f"rotates {n} rows pair by pair; at most {_LARGEST} make sense")
    return n


def identity(g: Graph, n: int, like: Value) -> Value:
    """Unit matrices [B, n, n], as many as `like` has matrices."""
    return broadcast(g, const(np.eye(n)[None], FLOAT32), (like.shape[0], n, n))


def power_of_two(g: Graph, x: Value) -> Value:
    """The power of two up to each matrix's largest magnitude, [B, 1, 1]; scaling by it is exact."""
    size = tfl.reduce_max(g, tfl.abs(g, x), [1, 2], True)
    bits = tfl.bitcast(g, tfl.maximum(g, size, number(2.0**-100)), DType.INT32)
    fraction = const(1 << 23, DType.INT32)
    exponent = tfl.mul(g, tfl.floor_div(g, bits, fraction), fraction)
    return tfl.bitcast(g, exponent, FLOAT32)


def symmetric(g: Graph, a: Value) -> Value:
    """The eigenvectors of symmetric matrices [B, n, n] as rows, in no order: [B, n, n]."""
    n = int(a.shape[1])
    vectors = identity(g, n, a)
    if n == 1:
        return vectors
    a, poison = _finite(g, a)
    a = tfl.div(g, a, power_of_two(g, a))
    a = tfl.div(g, a, _frobenius(g, a))
    vectors = _swept(g, [a, vectors], n, _symmetric_round)[1]
    return tfl.add(g, polished(g, vectors), poison)


def _finite(g: Graph, a: Value) -> tuple[Value, Value]:
    """`a` with zeros for each matrix that has NaN or infinities, and NaN for these, 0 for others.

    Such a matrix must not end the iteration of those beside it.
    """
    poison = tfl.sum(g, tfl.mul(g, a, number(0)), [1, 2], True)
    return tfl.select_v2(g, tfl.equal(g, poison, number(0)), a, number(0)), poison


def _frobenius(g: Graph, a: Value) -> Value:
    square = tfl.sum(g, tfl.square(g, a), [1, 2], True)
    return tfl.maximum(g, tfl.sqrt(g, square), number(_TINY))


def orthogonalized(g: Graph, rows: Value) -> tuple[Value, Value]:
    """V rows and V, where V is orthogonal and V rows has orthogonal rows; in no order.

    Of rows [B, n, m]: this is Hestenes' singular value decomposition, which keeps small singular
    values as exact as large ones.
    """
    n, m = int(rows.shape[1]), int(rows.shape[2])
    unit = identity(g, n, rows)
    if n == 1:
        return rows, unit
    rows, poison = _finite(g, rows)
    scale = power_of_two(g, rows)
    both = tfl.concatenation(g, [tfl.div(g, rows, scale), unit], axis=2)

    def one_round(g: Graph, state: Values) -> Values:
        return _row_round(g, state, m)

    (both,) = _swept(g, [both], n, one_round)
    turned = tfl.slice(g, both, (0, 0, 0), rows.shape)
    vectors = tfl.slice(g, both, (0, 0, m), (rows.shape[0], n, n))
    length = tfl.sqrt(g, tfl.sum(g, tfl.square(g, vectors), [2], True))
    turned = tfl.div(g, turned, length)  # rounding lengthens both alike, by 5e-6 in 64 rows
    turned = tfl.add(g, tfl.mul(g, turned, scale), poison)
    return turned, tfl.add(g, polished(g, vectors), poison)


def polished(g: Graph, rows: Value) -> Value:
    """Nearly orthonormal rows (or zeros) made so to the last bit: a step of Newton and Schulz."""
    gram = tfl.batch_matmul(g, rows, rows, adj_y=True)
    change = tfl.mul(g, tfl.batch_matmul(g, gram, rows), number(0.5))
    return tfl.sub(g, tfl.mul(g, rows, number(1.5)), change)


def _swept(g: Graph, state: Values, n: int, one_round: Step) -> Values:
    """Sweeps of rounds until one finds nothing to rotate."""

    def sweep(g: Graph, values: Values) -> Values:
        fresh = [*values[:-1], tfl.mul(g, values[-1], number(0))]
        return repeated(g, fresh, n - 1 + n % 2, one_round)

    def goes_on(g: Graph, values: Values) -> Value:
        return tfl.greater(g, values[-1], number(_CONVERGED))

    return repeated(g, [*state, number(1)], _SWEEPS, sweep, goes_on)[:-1]


def _symmetric_round(g: Graph, state: Values) -> Values:
    a, vectors, worst = state
    batch, n, _ = a.shape
    half = int(n) // 2
    diagonal = tfl.sum(g, tfl.mul(g, a, const(np.eye(int(n))[None], FLOAT32)), [2], False)
    upper = tfl.slice(g, diagonal, (0, 0), (batch, half))
    lower = tfl.slice(g, diagonal, (0, half), (batch, half))
    corner = tfl.slice(g, a, (0, 0, half), (batch, half, half))
    coupling = tfl.sum(g, tfl.mul(g, corner, const(np.eye(half)[None], FLOAT32)), [2], False)
    turn = _rotations(g, int(n), tfl.sub(g, lower, upper), coupling)
    a = tfl.batch_matmul(g, tfl.batch_matmul(g, turn, a), turn, adj_y=True)
    return [a, tfl.batch_matmul(g, turn, vectors), _worse(g, worst, tfl.abs(g, coupling))]


def _row_round(g: Graph, state: Values, m: int) -> Values:
    both, worst = state
    batch, n, _ = both.shape
    half = int(n) // 2
    upper = tfl.slice(g, both, (0, 0, 0), (batch, half, m))
    lower = tfl.slice(g, both, (0, half, 0), (batch, half, m))
    p, q = (tfl.sum(g, tfl.square(g, x), [2], False) for x in (upper, lower))
    coupling = tfl.sum(g, tfl.mul(g, upper, lower), [2], False)
    turn = _rotations(g, int(n), tfl.sub(g, q, p), coupling)
    sizes = tfl.mul(g, tfl.sqrt(g, p), tfl.sqrt(g, q))
    slack = tfl.mul(g, tfl.sqrt(g, tfl.add(g, p, q)), number(_NEGLIGIBLE))
    cosine = tfl.div(g, tfl.abs(g, coupling), tfl.add(g, tfl.add(g, sizes, slack), number(_TINY)))
    return [tfl.batch_matmul(g, turn, both), _worse(g, worst, cosine)]


def _worse(g: Graph, worst: Value, found: Value) -> Value:
    return tfl.maximum(g, worst, tfl.reduce_max(g, found, [0, 1], False))


def _rotations(g: Graph, n: int, difference: Value, coupling: Value) -> Value:
    """The rotations [B, n, n] that take [[p, coupling], [coupling, q]] to diagonals.

    `difference` is q - p and `coupling` what is to vanish, both [B, n // 2]. The tangent is the
    smaller one of two, and 0 for nothing.
    """
    twice = tfl.mul(g, coupling, number(2))
    signed = tfl.add(g, difference, number(_TINY))
    sign = tfl.div(g, signed, tfl.abs(g, signed))
    root = tfl.sqrt(g, tfl.add(g, tfl.square(g, difference), tfl.square(g, twice)))
    root = tfl.maximum(g, root, tfl.abs(g, twice))  # where squares vanish
    size = tfl.add(g, tfl.add(g, tfl.abs(g, difference), root), number(_TINY))
    tangent = tfl.div(g, tfl.mul(g, sign, twice), size)
    cosine = tfl.div(g, number(1), tfl.sqrt(g, tfl.add(g, tfl.square(g, tangent), number(1))))
    sine = tfl.mul(g, tangent, cosine)
    own, other = [cosine, cosine], [sine, tfl.neg(g, sine)]
    if n % 2:
        nothing = tfl.mul(g, tfl.slice(g, sine, (0, 0), (sine.shape[0], 1)), number(0))
        own, other = [*own, tfl.add(g, nothing, number(1))], [*other, nothing]
    stay, cross = _places(n)
    kept, mixed = (
        tfl.mul(g, matrix, tfl.reshape(g, tfl.concatenation(g, v, axis=1), (sine.shape[0], 1, n)))
        for matrix, v in ((stay, own), (cross, other))
    )
    return tfl.add(g, kept, mixed)


def _places(n: int) -> tuple[Value, Value]:
    """Which row goes where, and the partner of which: [1, n, n] each."""
    unit = np.eye(n)
    order, half = next_places(n), n // 2
    partner = [*range(half, 2 * half), *range(half), *range(2 * half, n)]
    places, crossed = unit[order], unit[[partner[i] for i in order]]
    return const(places[None], FLOAT32), const(crossed[None], FLOAT32)


def next_places(n: int) -> list[int]:
    """Which row comes to each place for the next round, where i meets i + n // 2.

    The circle method: one player stays, all others move on by one seat; of an odd number, nobody
    stays, and the last place sits out.
    """
    half = n // 2
    upper, lower = list(range(half)), list(range(half, 2 * half))
    if n % 2:
        return [n - 1, *upper[:-1], *lower[1:], upper[-1], lower[0]]
    if half == 1:
        return [0, 1]
    return [0, lower[0], *upper[1:-1], *lower[1:], upper[-1]]


def descending(g: Graph, keys: Value) -> Value:
    """Permutation matrices [B, n, n] that sort keys [B, n]; equal keys keep their order."""
    batch, n = keys.shape[0], int(keys.shape[1])
    mine, other = tfl.reshape(g, keys, (batch, n, 1)), tfl.reshape(g, keys, (batch, 1, n))
    larger = tfl.cast(g, tfl.greater(g, other, mine), FLOAT32)
    equal = tfl.cast(g, tfl.equal(g, other, mine), FLOAT32)
    earlier = const(np.tri(n, k=-1)[None], FLOAT32)
    before = tfl.add(g, larger, tfl.mul(g, equal, earlier))
    rank = tfl.sum(g, before, [2], False)
    places = const(np.arange(n).reshape(1, n, 1), FLOAT32)
    return tfl.cast(g, tfl.equal(g, tfl.reshape(g, rank, (batch, 1, n)), places), FLOAT32)
