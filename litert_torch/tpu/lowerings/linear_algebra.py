"""Factors of matrices, and systems of equations; batches in the leading axes."""

from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.errors import UnsupportedCaseError
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, Array, real_dtype

aten = torch.ops.aten


def _no_errors(x: Array) -> Array:
    """Zeros: what LAPACK returns where nothing went wrong."""
    return jnp.zeros(x.shape[:-2], INT32)


def adjoint(x: Array) -> Array:
    """The conjugate transpose of the last two axes."""
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _cholesky(x: Array, upper: bool) -> Array:
    # Only the named triangle is read.
    lower = jnp.tril(adjoint(x) if upper else x)
    factor = lax.linalg.cholesky(lower, symmetrize_input=False)
    return adjoint(factor) if upper else factor


@lowers(aten.linalg_cholesky_ex.default)
def linalg_cholesky_ex(
    x: Array, *, upper: bool = False, check_errors: bool = False
) -> tuple[Array, Array]:
    """(the triangular factor, what went wrong: nothing)."""
    return _cholesky(x, upper), _no_errors(x)


@lowers(aten.cholesky_solve.default)
def cholesky_solve(x: Array, input2: Array, upper: bool = False) -> Array:
    """The solution for the right sides x, of the matrix with factor input2."""
    factor = adjoint(input2) if upper else input2
    half = _triangular(factor, x, lower=True)
    return _triangular(adjoint(factor), half, lower=False)


@lowers(aten.cholesky_inverse.default)
def cholesky_inverse(x: Array, upper: bool = False) -> Array:
    """The inverse of the matrix with factor x."""
    eye = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    return cholesky_solve(eye, x, upper)


def _triangular(a: Array, b: Array, *, lower: bool, unit: bool = False) -> Array:
    """X with a x = b, both broadcast."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (a, b))
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, unit_diagonal=unit)


@lowers(aten.linalg_solve_triangular.default)
def linalg_solve_triangular(
    x: Array,
    B: Array,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Array:
    """The solution for the right sides B of a triangular matrix x; of X x = B where not `left`."""
    if left:
        return _triangular(x, B, lower=not upper, unit=unitriangular)
    turned = (jnp.swapaxes(t, -1, -2) for t in (x, B))
    result = _triangular(*turned, lower=upper, unit=unitriangular)
    return jnp.swapaxes(result, -1, -2)


@lowers(aten.triangular_solve.default)
def triangular_solve(
    x: Array,
    A: Array,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Array, Array]:
    """(the solution for the right sides x of a triangular matrix A, A)."""
    matrix = jnp.swapaxes(A, -1, -2) if transpose else A
    result = _triangular(matrix, x, lower=upper == transpose, unit=unitriangular)
    return result, jnp.broadcast_to(A, (*result.shape[:-2], *A.shape[-2:]))


def solved(a: Array, b: Array) -> Array:
    """X with a x = b, for matrices b."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (a, b))
    factors, _, order = lax.linalg.lu(a)
    moved = jnp.take_along_axis(b, order[..., None], axis=-2)
    half = _triangular(factors, moved, lower=True, unit=True)
    return _triangular(factors, half, lower=False)


@lowers(aten.linalg_inv_ex.default)
def linalg_inv_ex(
    A: Array,
    *,
    check_errors: bool = False,
) -> tuple[Array, Array]:
    """(the inverse, what went wrong: nothing)."""
    return inverted(A), _no_errors(A)


def inverted(a: Array) -> Array:
    """The inverse."""
    return solved(a, jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape))


@lowers(aten._linalg_solve_ex.default)
def linalg_solve_ex(
    A: Array,
    B: Array,
    *,
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """(the solution, LU, pivots, what went wrong: nothing); B may be vectors."""
    is_vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    right = B[..., None] if is_vector else B
    if left:
        result = solved(A, right)
    else:
        turned = solved(jnp.swapaxes(A, -1, -2), jnp.swapaxes(right, -1, -2))
        result = jnp.swapaxes(turned, -1, -2)
    factors, pivots, _ = lax.linalg.lu(A)
    return result[..., 0] if is_vector else result, factors, pivots + 1, _no_errors(A)


def _permutation(order: Array, dtype: Any) -> Array:
    """The matrix P with (P L U)[order] = L U, transposed: rows back in place."""
    return jnp.swapaxes(jax.nn.one_hot(order, order.shape[-1], dtype=dtype), -1, -2)


def _triangles(factors: Array) -> tuple[Array, Array]:
    """The unit lower and the upper triangle of packed factors."""
    rows, columns = factors.shape[-2:]
    least = min(rows, columns)
    lower = jnp.tril(factors[..., :, :least], -1) + jnp.eye(rows, least, dtype=factors.dtype)
    return lower, jnp.triu(factors[..., :least, :])


def _without_pivots(a: Array) -> Array:
    """Packed factors, eliminated column by column."""
    least = min(a.shape[-2:])
    rows = lax.iota(INT32, a.shape[-2])

    def step(k: Any, t: Array) -> Array:
        pivot = lax.dynamic_slice_in_dim(lax.dynamic_slice_in_dim(t, k, 1, -2), k, 1, -1)
        column = lax.dynamic_slice_in_dim(t, k, 1, -1) / pivot
        below = (rows > k)[:, None]
        column = jnp.where(below, column, 0).astype(t.dtype)
        row = lax.dynamic_slice_in_dim(t, k, 1, -2)
        right = lax.iota(INT32, t.shape[-1]) > k
        rest = t - jnp.where(right, column * row, 0).astype(t.dtype)
        at = (lax.iota(INT32, t.shape[-1]) == k) & below
        return jnp.where(at, column, rest)

    return lax.fori_loop(0, least, step, a)


@lowers(aten.linalg_lu_factor_ex.default)
def linalg_lu_factor_ex(
    A: Array,
    *,
    pivot: bool = True,
    check_errors: bool = False,
) -> tuple[Array, Array, Array]:
    """(packed factors, LAPACK's pivots, what went wrong: nothing)."""
    if not pivot:
        least = min(A.shape[-2:])
        pivots = jnp.broadcast_to(lax.iota(INT32, least) + 1, (*A.shape[:-2], least))
        return _without_pivots(A), pivots, _no_errors(A)
    factors, pivots, _ = lax.linalg.lu(A)
    return factors, pivots.astype(INT32) + 1, _no_errors(A)


@lowers(aten.linalg_lu.default)
def linalg_lu(A: Array, *, pivot: bool = True) -> tuple[Array, Array, Array]:
    """(P, L, U) with P L U = A."""
    if not pivot:
        return jnp.zeros((0,), A.dtype), *_triangles(_without_pivots(A))
    factors, _, order = lax.linalg.lu(A)
    return _permutation(order, A.dtype), *_triangles(factors)


@lowers(aten.lu_unpack.default)
def lu_unpack(
    LU_data: Array,
    LU_pivots: Array,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Array, Array, Array]:
    """(P, L, U) of packed factors."""
    nothing = jnp.zeros((0,), LU_data.dtype)
    lower, upper = _triangles(LU_data) if unpack_data else (nothing, nothing)
    if not unpack_pivots:
        return nothing, lower, upper
    order = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, LU_data.shape[-2])
    return _permutation(order, LU_data.dtype), lower, upper


@lowers(aten.linalg_lu_solve.default)
def linalg_lu_solve(
    LU: Array,
    pivots: Array,
    B: Array,
    *,
    left: bool = True,
    adjoint: bool = False,
) -> Array:
    """The solution for the right sides B of the matrix with packed factors LU."""
    if not left:  # X A = B is A* X* = B*
        turned = jnp.conj(jnp.swapaxes(B, -1, -2))
        result = linalg_lu_solve(LU, pivots, turned, left=True, adjoint=not adjoint)
        return jnp.conj(jnp.swapaxes(result, -1, -2))
    batch = jnp.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    LU, B = (jnp.broadcast_to(t, (*batch, *t.shape[-2:])) for t in (LU, B))  # noqa: N806
    pivots = jnp.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    order = lax.linalg.lu_pivots_to_permutation(pivots - 1, LU.shape[-1])
    if not adjoint:
        half = _triangular(LU, jnp.take_along_axis(B, order[..., None], -2), lower=True, unit=True)
        return _triangular(LU, half, lower=False)
    turned = jnp.conj(jnp.swapaxes(LU, -1, -2))
    half = _triangular(turned, B, lower=True)
    whole = _triangular(turned, half, lower=False, unit=True)
    return jnp.take_along_axis(whole, jnp.argsort(order, -1)[..., None], -2)


@lowers(aten._linalg_det.default)
def linalg_det(A: Array) -> tuple[Array, Array, Array]:
    """(the determinant, LU, pivots)."""
    factors, pivots, _ = lax.linalg.lu(A)
    return jnp.linalg.det(A), factors, pivots.astype(INT32) + 1


@lowers(aten._linalg_slogdet.default)
def linalg_slogdet(A: Array) -> tuple[Array, Array, Array, Array]:
    """(the determinant's sign, the log of its size, LU, pivots)."""
    factors, pivots, _ = lax.linalg.lu(A)
    sign, log = jnp.linalg.slogdet(A)
    return sign, log, factors, pivots.astype(INT32) + 1


@lowers(aten.linalg_qr.default)
def linalg_qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """(Q, R), reduced or complete; Q is empty in mode 'r'."""
    if mode == "r":
        return jnp.zeros((0,), A.dtype), jnp.linalg.qr(A, mode="r")
    q, r = jnp.linalg.qr(A, mode=mode)
    return q, r


@lowers(aten.geqrf.default)
def geqrf(x: Array) -> tuple[Array, Array]:
    """(R and the reflectors below it, their scales), as LAPACK packs them."""
    packed, scales = jnp.linalg.qr(x, mode="raw")
    return jnp.swapaxes(packed, -1, -2), scales


@lowers(aten.linalg_householder_product.default)
def linalg_householder_product(x: Array, tau: Array) -> Array:
    """The first columns of the product of reflectors."""
    return lax.linalg.householder_product(x, tau)


@lowers(aten.ormqr.default)
def ormqr(
    x: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False
) -> Array:
    """The product of reflectors x with scales input2, times input3."""
    size = input3.shape[-2 if left else -1]
    wide = jnp.zeros((*x.shape[:-1], size - x.shape[-1]), x.dtype)
    scales = jnp.zeros((*input2.shape[:-1], size - input2.shape[-1]), x.dtype)
    q = lax.linalg.householder_product(
        jnp.concatenate([x, wide], -1), jnp.concatenate([input2, scales], -1)
    )
    q = adjoint(q) if transpose else q
    return jnp.matmul(q, input3) if left else jnp.matmul(input3, q)


@lowers(aten._linalg_eigh.default)
def linalg_eigh(
    A: Array,
    UPLO: str = "L",
    compute_v: bool = True,
) -> tuple[Array, Array]:
    """(eigenvalues in order, eigenvectors) of a Hermitian matrix, of which one triangle is read."""
    lower = jnp.tril(A if UPLO.upper() == "L" else adjoint(A))
    whole = lower + adjoint(jnp.tril(lower, -1))
    vectors, values = lax.linalg.eigh(whole, symmetrize_input=False, sort_eigenvalues=True)
    nothing = jnp.zeros((0,), A.dtype)
    return values.astype(real_dtype(A.dtype)), vectors if compute_v else nothing


@lowers(aten.linalg_eig.default)
def linalg_eig(x: Array) -> tuple[Array, Array]:
    """(eigenvalues, eigenvectors), complex: on CPU only."""
    values, vectors = jnp.linalg.eig(x)
    return values, vectors


@lowers(aten._linalg_eigvals.default)
def linalg_eigvals(x: Array) -> Array:
    """Eigenvalues, complex: on CPU only."""
    return jnp.linalg.eigvals(x)


@lowers(aten._linalg_svd.default)
def linalg_svd(
    A: Array,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> tuple[Array, Array, Array]:
    """(U, singular values from the greatest, V transposed and conjugated)."""
    if not compute_uv:
        nothing = jnp.zeros((0,), A.dtype)
        return nothing, jnp.linalg.svd(A, compute_uv=False), nothing
    u, s, vh = jnp.linalg.svd(A, full_matrices=full_matrices)
    return u, s, vh


@lowers(aten.linalg_matrix_exp.default)
def linalg_matrix_exp(x: Array) -> Array:
    """The exponential of matrices."""
    if x.ndim > 2 and 0 in x.shape:
        return x
    return jax.scipy.linalg.expm(x, max_squarings=32)


@lowers(aten.linalg_cross.default)
def linalg_cross(x: Array, other: Array, *, dim: int = -1) -> Array:
    """The cross product of vectors of three along an axis."""
    return jnp.cross(x, other, axis=dim)


@lowers(aten.linalg_lstsq.default)
def linalg_lstsq(
    x: Array, b: Array, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """(least squares solution, residuals, nothing, nothing), of matrices of full rank."""
    raise UnsupportedCaseError("least squares: use torch.linalg.pinv(a) @ b")
