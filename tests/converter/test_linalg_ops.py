"""torch.linalg of small matrices against PyTorch; sizes on both sides of unrolling."""

import pytest
import torch

import litert_torch
from litert_torch.converter.lowerings.elimination import UNROLLED_UP_TO
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, f32, graph_of, integers, op_case

aten = torch.ops.aten

SIZES = [1, 2, 3, 5, UNROLLED_UP_TO, UNROLLED_UP_TO + 1, 20]


def _regular(*shape):
    """Far from singular, with pivots that are not on the diagonal."""
    return f32(*shape) + 3 * torch.eye(shape[-1]).roll(1, 0)


def _definite(*shape):
    x = f32(*shape)
    return x @ x.mT + torch.eye(shape[-1])


def _triangular(n):
    return f32(n, n) * 0.3 + 2 * torch.eye(n)


OF_SIZE = [
    case
    for n in SIZES
    for case in (
        op_case(aten.linalg_inv.default, _regular(2, 3, n, n)),
        op_case(aten.linalg_det.default, _regular(3, n, n) / n**0.5),
        op_case(aten.linalg_slogdet.default, _regular(3, n, n)),
        op_case(aten.linalg_solve.default, _regular(2, n, n), f32(2, n, 3)),
        op_case(aten.linalg_solve.default, _regular(2, n, n), f32(3, n), left=False)
        if n == 3
        else op_case(aten.linalg_solve.default, _regular(n, n), f32(n)),
        op_case(aten.linalg_cholesky.default, _definite(2, n, n)),
        op_case(aten.linalg_solve_triangular.default, _triangular(n), f32(2, n, 3), upper=False),
        op_case(aten.linalg_solve_triangular.default, _triangular(n), f32(n, 3), upper=True),
        op_case(aten.linalg_qr.default, f32(2, n, n)),
    )
]

SINGULAR = torch.tensor(
    [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [3.0, 1.0]], [[0.0, 2.0], [3.0, 0.0]]]
)

OTHERS = [
    op_case(aten.linalg_det.default, SINGULAR),
    op_case(aten.logdet.default, _definite(2, 3, 3)),
    op_case(aten.inverse.default, torch.tensor([[0.0, 2, 0], [0, 0, -1], [4, 0, 0]])),
    op_case(aten.inverse.default, torch.tensor([[0.0, 1e-8, 0], [1e-12, 0, 0], [0, 0, 1]])),
    op_case(aten.linalg_inv_ex.default, _regular(2, 3, 3)),
    op_case(aten.linalg_solve_ex.default, _regular(2, 3, 3), f32(2, 3, 2)),
    op_case(aten.linalg_solve.default, _regular(2, 1, 3, 3), f32(4, 3, 2)),
    op_case(aten.linalg_solve.default, _regular(2, 3, 3), f32(2, 3)),
    op_case(aten.linalg_cholesky.default, _definite(2, 3, 3), upper=True),
    op_case(aten.linalg_cholesky_ex.default, _definite(2, 3, 3)),
    op_case(aten.cholesky_solve.default, f32(2, 3, 4), _triangular(3)),
    op_case(aten.cholesky_solve.default, f32(3, 4), _triangular(3), True),
    op_case(aten.triangular_solve.default, f32(3, 2), _triangular(3), False, True),
    op_case(
        aten.linalg_solve_triangular.default, _triangular(4), f32(2, 4), upper=False, left=False
    ),
    op_case(
        aten.linalg_solve_triangular.default,
        _triangular(4),
        f32(4, 2),
        upper=True,
        unitriangular=True,
    ),
    op_case(aten.linalg_qr.default, f32(2, 5, 3)),
    op_case(aten.linalg_qr.default, f32(5, 3), "complete"),
    op_case(aten.linalg_qr.default, f32(2, 3, 5)),
    op_case(aten.linalg_qr.default, f32(4, 4).triu()),
    op_case(aten.linalg_matrix_power.default, f32(2, 3, 3), 5),
    op_case(aten.linalg_matrix_power.default, f32(2, 3, 3), 0),
    op_case(aten.linalg_matrix_power.default, _regular(2, 3, 3), -2),
    op_case(aten.linalg_cross.default, f32(2, 3, 4), f32(1, 3, 4), dim=1),
    op_case(aten.linalg_cross.default, f32(2, 3), f32(2, 3)),
    op_case(aten.trace.default, f32(3, 5)),
    op_case(aten.trace.default, integers(4, 3)),
    op_case(aten.linalg_diagonal.default, f32(2, 3, 4), offset=1),
    op_case(aten.cdist.default, f32(2, 4, 3), f32(1, 5, 3)),
    op_case(aten.cdist.default, f32(4, 3), f32(5, 3), 1.0),
    op_case(aten.cdist.default, f32(4, 3), f32(5, 3), float("inf")),
    op_case(aten.cdist.default, f32(4, 3), f32(5, 3), 3.0),
    op_case(aten.cdist.default, f32(30, 3), f32(5, 3) + 2, 2.0, 1),
    op_case(aten._cdist_forward.default, f32(4, 3), f32(5, 3), 2.0, None),
]


@pytest.mark.parametrize("case", [*OF_SIZE, *OTHERS], ids=str)
def test_values(case):
    assert_matches_torch(case, rtol=1e-3, atol=2e-4)


def test_large_matrices_are_refused():
    with pytest.raises(UnsupportedCaseError, match="at most"):
        graph_of(op_case(aten.linalg_inv.default, torch.eye(300)))


class Geometry(torch.nn.Module):
    """What PyTorch decomposes: norms, Kronecker products, pairs of distances."""

    def forward(self, a, b):
        return (
            torch.linalg.inv(a) @ b,
            *(torch.linalg.matrix_norm(a), torch.linalg.matrix_norm(a, 1)),
            *(torch.kron(a[0], b[1]), torch.cross(a, b, dim=2), torch.pairwise_distance(a, b)),
            torch.linalg.multi_dot([a[0], b[0], a[1]]),
        )


def test_through_torch_export():
    args = (_regular(2, 3, 3), f32(2, 3, 3))
    got = litert_torch.convert(Geometry().eval(), args)(*(a.numpy() for a in args))
    for g, w in zip(got, Geometry()(*args), strict=True):
        torch.testing.assert_close(torch.from_numpy(g), w, rtol=1e-4, atol=1e-4)
