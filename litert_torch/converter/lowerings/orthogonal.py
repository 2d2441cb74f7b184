"""QR by Householder's reflections, with LAPACK's signs; what would need an iteration is refused."""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.elimination import UNROLLED_UP_TO, flat_batch
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.rearranging import triu
from litert_torch.converter.lowerings.views import broadcast
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


@lowers(aten.linalg_qr.default)
def linalg_qr(g: Graph, A: Value, mode: str = "reduced") -> list[Value]:  # noqa: N803
    """Q and R with A = Q R, of A [..., m, n]; R alone in mode "r"."""
    m, n = int(A.shape[-2]), int(A.shape[-1])
    flat = flat_batch(g, A)
    batch, kept = flat.shape[0], m if mode == "complete" else min(m, n)
    q = broadcast(g, const(np.eye(m)[None], DType.FLOAT32), (batch, m, m))
    steps = min(m - 1, n)
    if steps:
        units = const(np.eye(steps, m).reshape(steps, 1, m, 1), DType.FLOAT32)
        columns = const(np.eye(steps, n).reshape(steps, 1, 1, n), DType.FLOAT32)
        below = const(np.triu(np.ones((steps, m)), 1).reshape(steps, 1, m, 1), DType.FLOAT32)
        run = loops.unrolled if steps <= UNROLLED_UP_TO else loops.scan
        operands = loops.Operands([units, columns, below], [flat, q], [], ())
        flat, q = run(g, _reflection, operands)[1]
    r = triu(g, tfl.slice(g, flat, (0, 0, 0), (batch, kept, n)))
    q = tfl.slice(g, q, (0, 0, 0), (batch, m, kept))
    r = tfl.reshape(g, r, (*A.shape[:-2], kept, n))
    if mode == "r":
        return [const(np.zeros(0), DType.FLOAT32), r]
    return [tfl.reshape(g, q, (*A.shape[:-2], m, kept)), r]


def _reflection(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: Sequence[Value]
) -> tuple[loops.Values, loops.Values]:
    """A column's part below the diagonal mirrored to zero; a column that is zero there stays."""
    (unit, pick, below), (a, q) = xs, state
    column = tfl.sum(g, tfl.mul(g, a, pick), [2], True)
    tail = tfl.mul(g, column, below)
    head = tfl.sum(g, tfl.mul(g, column, unit), [1], True)
    rest = tfl.sum(g, tfl.square(g, tail), [1], True)
    length = tfl.sqrt(g, tfl.add(g, tfl.square(g, head), rest))
    is_negative = tfl.cast(g, tfl.less(g, head, number(0)), DType.FLOAT32)
    sign = tfl.sub(g, number(1), tfl.mul(g, is_negative, number(2)))
    v = tfl.add(g, tail, tfl.mul(g, unit, tfl.add(g, head, tfl.mul(g, sign, length))))
    size = tfl.sum(g, tfl.square(g, v), [1], True)
    stays = tfl.cast(g, tfl.equal(g, rest, number(0)), DType.FLOAT32)
    factor = tfl.div(
        g, tfl.sub(g, number(2), tfl.mul(g, stays, number(2))), tfl.add(g, size, stays)
    )
    scaled = tfl.mul(g, v, factor)
    of_a = tfl.batch_matmul(g, scaled, tfl.batch_matmul(g, v, a, adj_x=True))
    of_q = tfl.batch_matmul(g, tfl.batch_matmul(g, q, v), scaled, adj_y=True)
    return [], [tfl.sub(g, a, of_a), tfl.sub(g, q, of_q)]


def _refuse(what: str, instead: str) -> NoReturn:
    raise UnsupportedCaseError(
        f"{what} would need an iteration that LiteRT has no op for: {instead}"
    )


_OUTSIDE = "compute it outside the model, or of constants"
_PSEUDO_INVERSE = (
    "for a matrix of full column rank, torch.linalg.solve(A.mT @ A, A.mT) is the same; "
    "or compute it outside the model"
)


@lowers(aten.linalg_svd.default)
def linalg_svd(
    g: Graph,
    A: Value,  # noqa: N803
    full_matrices: bool = True,
    *,
    driver: str | None = None,
) -> list[Value]:
    """Refused."""
    _refuse("a singular value decomposition", _OUTSIDE)


@lowers(aten.linalg_svdvals.default)
def linalg_svdvals(g: Graph, A: Value, *, driver: str | None = None) -> Value:  # noqa: N803
    """Refused."""
    _refuse("singular values", _OUTSIDE)


@lowers(aten.svd.default)
def svd(g: Graph, x: Value, some: bool = True, compute_uv: bool = True) -> list[Value]:
    """Refused."""
    _refuse("a singular value decomposition", _OUTSIDE)


@lowers(aten.linalg_eigh.default)
def linalg_eigh(g: Graph, x: Value, UPLO: str = "L") -> list[Value]:  # noqa: N803
    """Refused."""
    _refuse("eigenvalues", _OUTSIDE)


@lowers(aten.linalg_eigvalsh.default)
def linalg_eigvalsh(g: Graph, x: Value, UPLO: str = "L") -> Value:  # noqa: N803
    """Refused."""
    _refuse("eigenvalues", _OUTSIDE)


@lowers(aten.linalg_pinv.default)
def linalg_pinv(g: Graph, x: Value, rcond: float, hermitian: bool = False) -> Value:
    """Refused."""
    _refuse("a pseudo-inverse", _PSEUDO_INVERSE)


@lowers(aten.linalg_pinv.atol_rtol_float)
def linalg_pinv_float(
    g: Graph,
    x: Value,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
) -> Value:
    """Refused."""
    _refuse("a pseudo-inverse", _PSEUDO_INVERSE)


@lowers(aten.linalg_pinv.atol_rtol_tensor)
def linalg_pinv_tensor(
    g: Graph,
    x: Value,
    *,
    atol: Value | None = None,
    rtol: Value | None = None,
    hermitian: bool = False,
) -> Value:
    """Refused."""
    _refuse("a pseudo-inverse", _PSEUDO_INVERSE)


@lowers(aten.pinverse.default)
def pinverse(g: Graph, x: Value, rcond: float = 1e-15) -> Value:
    """Refused."""
    _refuse("a pseudo-inverse", _PSEUDO_INVERSE)
