"""torch.linalg of matrices of fixed size: what elimination gives.

Factors in LAPACK's form are in `householder.py`, `lu_factors.py` and `ldl_factors.py`.
"""

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.elimination import (
    Elimination,
    eliminated,
    factored,
    flat_batch,
    parity,
    substituted,
    swapped_axes,
)
from litert_torch.converter.lowerings.rearranging import diagonal
from litert_torch.converter.lowerings.reduction import sum_all
from litert_torch.converter.lowerings.slicing import parts
from litert_torch.converter.lowerings.views import broadcast
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_TAYLOR = 18  # terms, of a matrix whose norm is at most 3
_SQUARINGS = 8  # of matrices of a norm up to 256, whose exponential overflows float32 anyway
_LARGEST = 256  # rows; a WHILE of n steps over n*n elements is slow beyond


def _square(x: Value) -> int:
    n = int(x.shape[-1])
    if n > _LARGEST:
        raise UnsupportedCaseError(f"works on a matrix of {n} rows; at most {_LARGEST} make sense")
    return n


def _no_error(g: Graph, x: Value) -> Value:
    """The info tensor of the ops that report failure by one."""
    return filled(g, x.shape[:-2], 0, DType.INT32)


@lowers(aten.inverse.default)
def inverse(g: Graph, x: Value) -> Value:
    """The inverse; of a singular matrix, numbers that mean nothing, where PyTorch raises."""
    n = _square(x)
    flat = flat_batch(g, x)
    unit = broadcast(g, const(np.eye(n)[None], DType.FLOAT32), flat.shape)
    return tfl.reshape(g, eliminated(g, flat, unit).solution, x.shape)


@lowers(aten.linalg_inv.default)
def linalg_inv(g: Graph, A: Value) -> Value:  # noqa: N803
    """The inverse."""
    return inverse(g, A)


@lowers(aten.linalg_inv_ex.default)
def linalg_inv_ex(g: Graph, A: Value, *, check_errors: bool = False) -> list[Value]:  # noqa: N803
    """The inverse, and 0."""
    return [inverse(g, A), _no_error(g, A)]


@lowers(aten.linalg_solve.default)
def linalg_solve(g: Graph, A: Value, B: Value, *, left: bool = True) -> Value:  # noqa: N803
    """x of A x = B, or of x A = B."""
    n = _square(A)
    is_vector = B.rank == 1 or (B.rank == A.rank - 1 and B.shape == A.shape[:-1])
    b = tfl.reshape(g, B, (*B.shape, 1)) if is_vector else B
    if not left:
        x = linalg_solve(g, swapped_axes(g, A), swapped_axes(g, b))
        return swapped_axes(g, x)
    batch = dims.broadcast(A.shape[:-2], b.shape[:-2])
    a = flat_batch(g, broadcast(g, A, (*batch, n, n)))
    b = broadcast(g, b, (*batch, *b.shape[-2:]))
    x = tfl.reshape(g, eliminated(g, a, flat_batch(g, b)).solution, b.shape)
    return tfl.reshape(g, x, x.shape[:-1]) if is_vector else x


@lowers(aten.linalg_solve_ex.default)
def linalg_solve_ex(
    g: Graph,
    A: Value,  # noqa: N803
    B: Value,  # noqa: N803
    *,
    left: bool = True,
    check_errors: bool = False,
) -> list[Value]:
    """As `linalg_solve`, and 0."""
    return [linalg_solve(g, A, B, left=left), _no_error(g, A)]


def _eliminated(g: Graph, x: Value) -> Elimination:
    _square(x)
    return eliminated(g, flat_batch(g, x), None)


@lowers(aten._linalg_solve_ex.default)
def linalg_solve_with_factors(
    g: Graph,
    A: Value,  # noqa: N803
    B: Value,  # noqa: N803
    *,
    left: bool = True,
    check_errors: bool = False,
) -> list[Value | None]:
    """The solution, and 0 for no error; not the factors, which nothing reads in evaluation."""
    solution, info = linalg_solve_ex(g, A, B, left=left, check_errors=check_errors)
    return [solution, None, None, info]


@lowers(aten.det.default)
def det(g: Graph, x: Value) -> Value:
    """The product of the pivots, negated for an odd permutation."""
    done = _eliminated(g, x)
    size = tfl.reduce_prod(g, done.pivots, [1], False)
    return tfl.reshape(g, tfl.mul(g, size, parity(g, done.choices)), x.shape[:-2])


@lowers(aten.linalg_det.default)
def linalg_det(g: Graph, A: Value) -> Value:  # noqa: N803
    """The determinant."""
    return det(g, A)


@lowers(aten.slogdet.default)
def slogdet(g: Graph, x: Value) -> list[Value]:
    """Sign and logarithm of the determinant's absolute value."""
    done = _eliminated(g, x)
    signs = tfl.reduce_prod(g, tfl.sign(g, done.pivots), [1], False)
    sign = tfl.mul(g, signs, parity(g, done.choices))
    log = tfl.sum(g, tfl.log(g, tfl.abs(g, done.pivots)), [1], False)
    return [tfl.reshape(g, v, x.shape[:-2]) for v in (sign, log)]


@lowers(aten.linalg_slogdet.default)
def linalg_slogdet(g: Graph, A: Value) -> list[Value]:  # noqa: N803
    """Sign and logarithm of the determinant's absolute value."""
    return slogdet(g, A)


@lowers(aten.logdet.default)
def logdet(g: Graph, x: Value) -> Value:
    """The logarithm of the determinant; NaN where that is negative."""
    sign, log = slogdet(g, x)
    return tfl.add(g, log, tfl.log(g, sign)) if x.rank else log


@lowers(aten.linalg_cholesky.default)
def linalg_cholesky(g: Graph, x: Value, *, upper: bool = False) -> Value:
    """L with x = L L^T, or its transpose."""
    _square(x)
    lower = tfl.reshape(g, factored(g, flat_batch(g, x)), x.shape)
    return swapped_axes(g, lower) if upper else lower


@lowers(aten.linalg_cholesky_ex.default)
def linalg_cholesky_ex(
    g: Graph, x: Value, *, upper: bool = False, check_errors: bool = False
) -> list[Value]:
    """As `linalg_cholesky`, and 0."""
    return [linalg_cholesky(g, x, upper=upper), _no_error(g, x)]


@lowers(aten.linalg_solve_triangular.default)
def linalg_solve_triangular(
    g: Graph,
    x: Value,
    B: Value,  # noqa: N803
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    """y of x y = B, or of y x = B, where x is triangular."""
    n = _square(x)
    if not left:
        flipped = linalg_solve_triangular(
            g, swapped_axes(g, x), swapped_axes(g, B), upper=not upper, unitriangular=unitriangular
        )
        return swapped_axes(g, flipped)
    batch = dims.broadcast(x.shape[:-2], B.shape[:-2])
    a = flat_batch(g, broadcast(g, x, (*batch, n, n)))
    b = broadcast(g, B, (*batch, *B.shape[-2:]))
    y = substituted(g, a, flat_batch(g, b), upper=upper, unit=unitriangular)
    return tfl.reshape(g, y, b.shape)


@lowers(aten.triangular_solve.default)
def triangular_solve(
    g: Graph,
    x: Value,
    A: Value,  # noqa: N803
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> list[Value]:
    """y of A y = x, and A."""
    a = swapped_axes(g, A) if transpose else A
    turned = upper != transpose
    return [linalg_solve_triangular(g, a, x, upper=turned, unitriangular=unitriangular), A]


@lowers(aten.cholesky_solve.default)
def cholesky_solve(g: Graph, x: Value, input2: Value, upper: bool = False) -> Value:
    """y of L L^T y = x, given L, or its transpose."""
    lower = swapped_axes(g, input2) if upper else input2
    half = linalg_solve_triangular(g, lower, x, upper=False)
    return linalg_solve_triangular(g, swapped_axes(g, lower), half, upper=True)


@lowers(aten.cholesky_inverse.default)
def cholesky_inverse(g: Graph, x: Value, upper: bool = False) -> Value:
    """The inverse of L L^T, given L, or its transpose."""
    unit = broadcast(g, const(np.eye(_square(x)), DType.FLOAT32), x.shape)
    return cholesky_solve(g, unit, x, upper)


@lowers(aten.linalg_matrix_exp.default, aten.matrix_exp.default)
def linalg_matrix_exp(g: Graph, x: Value) -> Value:
    """Taylor's series of x / 2**s, squared s times, where x / 2**s has row sums of at most 3."""
    sums = tfl.sum(g, tfl.abs(g, x), [-1], True)
    norm = tfl.reduce_max(g, sums, [-2], True)
    unit = const(np.eye(_square(x)), DType.FLOAT32)
    scale = const(1.0, DType.FLOAT32)
    halvings = [tfl.greater(g, norm, const(3 * 2.0**k, DType.FLOAT32)) for k in range(_SQUARINGS)]
    for needed in halvings:
        half = tfl.select_v2(g, needed, const(0.5, DType.FLOAT32), const(1.0, DType.FLOAT32))
        scale = tfl.mul(g, scale, half)
    small = tfl.mul(g, x, scale)
    total = tfl.add(g, tfl.mul(g, small, const(1 / _TAYLOR, DType.FLOAT32)), unit)
    for k in range(_TAYLOR - 1, 0, -1):
        term = tfl.mul(g, tfl.batch_matmul(g, small, total), const(1 / k, DType.FLOAT32))
        total = tfl.add(g, term, unit)
    for needed in halvings:
        total = tfl.select_v2(g, needed, tfl.batch_matmul(g, total, total), total)
    return total


@lowers(aten.linalg_matrix_power.default, aten.matrix_power.default)
def linalg_matrix_power(g: Graph, x: Value, n: int) -> Value:
    """x multiplied with itself, by squaring; negative powers are those of the inverse."""
    size = _square(x)
    if n == 0:
        unit = const(np.eye(size), DType.FLOAT32)
        return broadcast(g, unit, x.shape)
    square = inverse(g, x) if n < 0 else x
    result = None
    for bit in reversed(f"{abs(n):b}"):
        if bit == "1":
            result = square if result is None else tfl.batch_matmul(g, result, square)
        square = tfl.batch_matmul(g, square, square)
    assert result is not None
    return result


@lowers(aten.trace.default)
def trace(g: Graph, x: Value) -> Value:
    """The sum of the diagonal; of integers, in int64."""
    return sum_all(g, diagonal(g, x))


@lowers(aten.linalg_diagonal.default)
def linalg_diagonal(
    g: Graph,
    A: Value,  # noqa: N803
    *,
    offset: int = 0,
    dim1: int = -2,
    dim2: int = -1,
) -> Value:
    """Elements (i, i + offset) of the last two axes."""
    return diagonal(g, A, offset, dim1, dim2)


@lowers(aten.linalg_cross.default)
def linalg_cross(g: Graph, x: Value, other: Value, *, dim: int = -1) -> Value:
    """The vector product along an axis of three."""
    shape = dims.broadcast(x.shape, other.shape)
    axis = dim % len(shape)
    a, b = (parts(g, broadcast(g, v, shape), axis, [1, 1, 1]) for v in (x, other))

    def component(i: int, j: int) -> Value:
        return tfl.sub(g, tfl.mul(g, a[i], b[j]), tfl.mul(g, a[j], b[i]))

    return tfl.concatenation(g, [component(1, 2), component(2, 0), component(0, 1)], axis=axis)
