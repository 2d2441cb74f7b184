"""LU, LDL and QR factors in LAPACK's form against PyTorch: signs, pivots and orders of rows too."""

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch.converter.lowerings.elimination import UNROLLED_UP_TO
from litert_torch.converter.lowerings.loops import NESTED_ABOVE
from tests.op_case import assert_matches_torch, f32, graph_of, integers, lowered_alone, op_case, run

aten = torch.ops.aten

SHAPES = [
    (1, 1), (3, 1, 4), (2, 4, 1), (2, 2), (2, 3, 3, 5), (5, 3), (3, 7, 7), (11, 9),
    (UNROLLED_UP_TO + 1, 12), (NESTED_ABOVE + 3, NESTED_ABOVE + 1),
]  # fmt: skip


def _lu(*shape):
    return torch.linalg.lu_factor_ex(f32(*shape))[:2]


def _tall(*shape):
    return torch.geqrf(f32(*shape))


def _tied(*shape):
    """Columns with several largest elements, and zeros in places of pivots."""
    return integers(*shape, low=-2, high=3).float()


OF_SHAPE = [
    case
    for shape in SHAPES
    for case in (
        op_case(aten.geqrf.default, f32(*shape)),
        op_case(aten.linalg_lu.default, f32(*shape)),
        op_case(aten.linalg_lu_factor_ex.default, f32(*shape)),
        op_case(aten.lu_unpack.default, *_lu(*shape)),
    )
]

LU = [
    op_case(aten.linalg_lu_factor_ex.default, _tied(5, 4, 4)),
    op_case(aten.linalg_lu_factor_ex.default, _tied(2, 6, 4)),
    op_case(aten.linalg_lu_factor_ex.default, 1e-12 * f32(4, 4)),
    op_case(aten.linalg_lu_factor_ex.default, torch.zeros(2, 3, 3)),
    op_case(aten.linalg_lu_factor_ex.default, torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 2, 9]])),
    op_case(aten.linalg_lu.default, _tied(2, 5, 7)),
    op_case(aten.lu_unpack.default, *_lu(2, 5, 3), True, False),
    op_case(aten.lu_unpack.default, *_lu(2, 5, 3), False, True),
    op_case(aten.linalg_lu_factor_ex.default, torch.zeros(2, 3, 0)),
    op_case(aten.linalg_lu.default, torch.zeros(3, 0)),
    *(
        op_case(aten.linalg_lu_solve.default, *_lu(2, n, n), b, left=left, adjoint=adjoint)
        for n, b in ((3, f32(4, 2, 3, 3)), (UNROLLED_UP_TO + 2, f32(10, 10)))
        for left in (True, False)
        for adjoint in (True, False)
    ),
    op_case(aten.linalg_lu_solve.default, *_lu(2, 1, 7, 7), f32(3, 7, 2)),
]

HOUSEHOLDER = [
    op_case(aten.geqrf.default, torch.tensor([[2.0, 1], [0, 3], [0, 4]])),
    op_case(aten.geqrf.default, -f32(4, 4).triu()),
    op_case(aten.geqrf.default, torch.zeros(2, 3, 2)),
    op_case(aten.linalg_qr.default, f32(70, 66)),
    op_case(aten.linalg_qr.default, f32(3, 5), "complete"),
    op_case(aten.linalg_qr.default, f32(0, 3), "complete"),
    op_case(aten.linalg_qr.default, f32(3, 0), "complete"),
    op_case(aten.linalg_householder_product.default, *_tall(2, 3, 5, 3)),
    op_case(aten.linalg_householder_product.default, *_tall(7, 7)),
    op_case(aten.linalg_householder_product.default, *_tall(12, 10)),
    op_case(aten.linalg_householder_product.default, f32(5, 4), f32(2)),
    op_case(aten.linalg_householder_product.default, f32(5, 4), f32(0)),
    *(
        op_case(aten.ormqr.default, *_tall(*shape), c if left else c.mT, left, transpose)
        for shape, c in (((2, 5, 3), f32(2, 5, 4)), ((3, 5), f32(3, 1)), ((11, 9), f32(11, 2)))
        for left in (True, False)
        for transpose in (True, False)
    ),
    op_case(aten.ormqr.default, f32(5, 0), f32(0), f32(5, 3)),
]


@pytest.mark.parametrize("case", [*OF_SHAPE, *LU, *HOUSEHOLDER], ids=str)
def test_values(case):
    assert_matches_torch(case, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_reflections_of_any_scale(scale):
    """The squares of these elements are no float32 numbers."""
    x = f32(5, 3) * scale
    (got, taus), (want, want_taus) = (
        run(lowered_alone(op_case(aten.geqrf.default, x)), x),
        (t.numpy() for t in torch.geqrf(x)),
    )
    np.testing.assert_allclose(taus, want_taus, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.triu(got) / scale, np.triu(want) / scale, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 4, 4), (3, 5), (5, 3), (10, 9)])
def test_lu_without_pivots(shape):
    """Eager PyTorch has it on GPUs only."""
    x = f32(*shape) + 4 * torch.eye(*shape[-2:])
    p, lower, upper = run(lowered_alone(op_case(aten.linalg_lu.default, x, pivot=False)), x)
    assert p.shape == (0,)
    np.testing.assert_allclose(lower @ upper, x, rtol=1e-4, atol=1e-5)
    packed, pivots, info = run(
        lowered_alone(op_case(aten.linalg_lu_factor_ex.default, x, pivot=False)), x
    )
    assert (pivots == np.arange(1, min(shape[-2:]) + 1)).all()
    assert (info == 0).all()
    np.testing.assert_allclose(np.triu(packed)[..., : upper.shape[-2], :], upper)


SYMMETRIC = ["any", "zero diagonal", "definite", "tied", "small"]


def _symmetric(kind, *shape):
    x = f32(*shape)
    x = x + x.mT
    if kind == "zero diagonal":  # every block of D has two rows
        return x - torch.diag_embed(x.diagonal(dim1=-2, dim2=-1))
    if kind == "definite":
        return x @ x.mT / shape[-1] + torch.eye(shape[-1])
    return x.round() if kind == "tied" else x * 1e-12 if kind == "small" else x


LDL = [
    *(
        op_case(aten.linalg_ldl_factor_ex.default, _symmetric(kind, *shape))
        for kind in SYMMETRIC
        for shape in ((2, 2, 7, 7), (20, 20))
    ),
    *(
        op_case(aten.linalg_ldl_factor_ex.default, _symmetric("any", n, n))
        for n in (1, 2, 3, NESTED_ABOVE + 3)
    ),
    op_case(aten.linalg_ldl_factor_ex.default, f32(2, 5, 5)),  # reads its lower triangle
    op_case(aten.linalg_ldl_factor_ex.default, torch.zeros(2, 3, 3)),
    op_case(aten.linalg_ldl_factor_ex.default, torch.zeros(2, 0, 0)),
    op_case(aten.linalg_ldl_factor_ex.default, torch.diag(torch.tensor([2.0, 0, 3]))),
]


def _ldl(kind, *shape):
    return torch.linalg.ldl_factor(_symmetric(kind, *shape))


LDL_SOLVE = [
    op_case(aten.linalg_ldl_solve.default, *_ldl("any", 3, 2, 7, 7), f32(2, 7, 4)),
    op_case(aten.linalg_ldl_solve.default, *_ldl("zero diagonal", 4, 6, 6), f32(4, 6, 3)),
    op_case(aten.linalg_ldl_solve.default, *_ldl("zero diagonal", 10, 10), f32(10, 2)),
    op_case(aten.linalg_ldl_solve.default, *_ldl("definite", 3, 5, 5), f32(5, 2)),
    op_case(aten.linalg_ldl_solve.default, *_ldl("any", 1, 1), f32(1, 2)),
    op_case(aten.linalg_ldl_solve.default, *_ldl("any", 2, 2), f32(2, 1)),
    op_case(aten.linalg_ldl_solve.default, *_ldl("any", 67, 67), f32(67, 1)),
]


@pytest.mark.parametrize("case", [*LDL, *LDL_SOLVE], ids=str)
def test_symmetric_values(case):
    assert_matches_torch(case, rtol=1e-3, atol=5e-4)


def test_ldl_factors_broadcast():
    """Eager PyTorch broadcasts the factors, but reads beyond the end of their pivots."""
    factors, pivots = _ldl("any", 2, 1, 6, 6)
    b = f32(2, 5, 6, 3)
    case = op_case(aten.linalg_ldl_solve.default, factors, pivots, b)
    (got,) = run(lowered_alone(case), *case.tensors)
    factors, pivots = factors.expand(2, 5, 6, 6), pivots.expand(2, 5, 6).contiguous()
    want = torch.linalg.ldl_solve(factors, pivots, b)
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "case",
    [
        op_case(aten.linalg_lu.default, f32(50, 50)),
        op_case(aten.linalg_lu_solve.default, *_lu(50, 50), f32(50, 2)),
        op_case(aten.linalg_qr.default, f32(50, 50)),
        op_case(aten.ormqr.default, *_tall(50, 50), f32(50, 2)),
        op_case(aten.linalg_ldl_factor_ex.default, _symmetric("any", 50, 50)),
        op_case(aten.linalg_ldl_solve.default, *_ldl("any", 50, 50), f32(50, 2)),
    ],
    ids=str,
)
def test_large_matrices_are_loops(case):
    graph = graph_of(case)
    ops = [op for g in [graph, *graph.subgraphs()] for op in g.ops]
    assert len(ops) < 200
    assert any(op.kind == "WHILE" for op in ops)


class Factored(torch.nn.Module):
    """The ops by their public names, with a batch that varies."""

    def forward(self, a, b):
        lu, pivots = torch.linalg.lu_factor(a)
        ld, blocks = torch.linalg.ldl_factor(a + a.mT)
        return (
            *(torch.linalg.lu_solve(lu, pivots, b), torch.lu_solve(b, lu, pivots)),
            *(*torch.linalg.lu(a), *torch.lu_unpack(lu, pivots)),
            *(torch.linalg.ldl_solve(ld, blocks, b), blocks),
            *(torch.orgqr(lu, b[..., 0]), torch.ormqr(lu, b[..., 0], b)),
        )


def test_through_torch_export_with_a_dynamic_batch():
    batch = torch.export.Dim("batch")

    def inputs(count):
        return f32(count, 3, 3) + 3 * torch.eye(3).roll(1, 0), f32(count, 3, 2)

    model = litert_torch.convert(
        Factored().eval(), inputs(2), dynamic_shapes=({0: batch}, {0: batch})
    )
    a, b = inputs(7)
    for got, want in zip(model(a.numpy(), b.numpy()), Factored()(a, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
