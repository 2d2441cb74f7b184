"""Eigenvalues and eigenvectors of symmetric matrices, and what is made of them."""

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import jacobi, lowers
from litert_torch.converter.lowerings.elimination import flat_batch, swapped_axes

aten = torch.ops.aten


def decomposed(g: Graph, a: Value) -> tuple[Value, Value]:
    """Ascending eigenvalues [B, n] of symmetric matrices [B, n, n], and eigenvectors as rows."""
    rows = jacobi.symmetric(g, a)
    values = tfl.sum(g, tfl.mul(g, tfl.batch_matmul(g, rows, a), rows), [2], False)
    order = jacobi.descending(g, tfl.neg(g, values))
    column = tfl.reshape(g, values, (*values.shape, 1))
    values = tfl.reshape(g, tfl.batch_matmul(g, order, column), values.shape)
    return values, tfl.batch_matmul(g, order, rows)


def mirrored(g: Graph, x: Value, *, upper: bool = False) -> Value:
    """The symmetric matrices [B, n, n] of which x [..., n, n] holds one triangle."""
    n = jacobi.rotated_size(x.shape[-1])
    flat = flat_batch(g, x)
    inside = np.tri(n, dtype=bool)
    mask = const((inside.T if upper else inside)[None], DType.BOOL)
    return tfl.select_v2(g, mask, flat, swapped_axes(g, flat))


@lowers(aten._linalg_eigh.default)
def linalg_eigh(
    g: Graph,
    A: Value,  # noqa: N803
    UPLO: str = "L",  # noqa: N803
    compute_v: bool = True,
) -> list[Value]:
    """Ascending eigenvalues, and eigenvectors as columns, whose signs are free."""
    values, rows = decomposed(g, mirrored(g, A, upper=UPLO.upper() == "U"))
    values = tfl.reshape(g, values, A.shape[:-1])
    if not compute_v:
        return [values, const(np.zeros(0), DType.FLOAT32)]
    return [values, swapped_axes(g, tfl.reshape(g, rows, A.shape))]


@lowers(aten.linalg_matrix_sqrth.default)
def linalg_matrix_sqrth(g: Graph, x: Value) -> Value:
    """The square root of a positive definite matrix, of which the lower triangle is read."""
    values, rows = decomposed(g, mirrored(g, x))
    roots = tfl.sqrt(g, values)
    return tfl.reshape(g, recomposed(g, roots, rows), x.shape)


def recomposed(g: Graph, values: Value, rows: Value) -> Value:
    """The matrices [B, n, n] of eigenvalues [B, n] and eigenvectors as rows."""
    scaled = tfl.mul(g, rows, tfl.reshape(g, values, (*values.shape, 1)))
    return tfl.batch_matmul(g, rows, scaled, adj_x=True)
