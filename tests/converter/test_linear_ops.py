"""Matrix products of every rank, with weights at run time and as constants."""

import pytest
import torch

from tests.op_case import assert_matches_torch, f32, integers, op_case

aten = torch.ops.aten
matmul = aten.matmul.default

CASES = [
    op_case(aten.linear.default, f32(2, 5), f32(3, 5), f32(3)),
    op_case(aten.linear.default, f32(2, 3, 5), f32(4, 5)),
    op_case(aten.linear.default, f32(5), f32(4, 5), f32(4)),
    op_case(aten.linear.default, f32(2, 5), f32(5)),
    op_case(aten.linear.default, f32(2, 1, 3, 2, 5), f32(4, 5), f32(4)),
    op_case(matmul, f32(5), f32(5)),
    op_case(matmul, f32(5), f32(5, 4)),
    op_case(matmul, f32(5), f32(2, 3, 5, 4)),
    op_case(matmul, f32(3, 5), f32(5)),
    op_case(matmul, f32(2, 3, 4, 5), f32(5)),
    op_case(matmul, f32(3, 5), f32(5, 4)),
    op_case(matmul, f32(2, 3, 5), f32(5, 4)),
    op_case(matmul, f32(3, 5), f32(2, 5, 4)),
    op_case(matmul, f32(2, 1, 3, 5), f32(4, 5, 6)),
    op_case(matmul, f32(2, 4, 3, 5), f32(2, 4, 5, 6)),
    op_case(matmul, f32(2, 3, 1, 4, 5), f32(2, 3, 1, 5, 6)),
    op_case(matmul, f32(2, 1, 3, 4, 5), f32(2, 3, 1, 5, 6)),
    op_case(matmul, f32(2, 1, 3, 1, 4, 5), f32(2, 3, 1, 2, 5, 6)),
    op_case(matmul, integers(3, 5), integers(5, 4)),
    op_case(matmul, integers(2, 1, 3, 5, low=-(2**30), high=2**30), integers(3, 5, 4)),
    op_case(matmul, integers(2, 3, 5, dtype=torch.int64), integers(5, dtype=torch.int64)),
    op_case(aten.mm.default, integers(3, 5, dtype=torch.int8), integers(5, 4, dtype=torch.int8)),
    op_case(aten.mm.default, f32(3, 5), f32(5, 4)),
    op_case(aten.bmm.default, f32(2, 3, 5), f32(2, 5, 4)),
    op_case(aten.mv.default, f32(3, 5), f32(5)),
    op_case(aten.dot.default, f32(7), f32(7)),
    op_case(aten.dot.default, integers(7), integers(7)),
    op_case(aten.vdot.default, f32(7), f32(7)),
    op_case(aten.addmm.default, f32(4), f32(3, 5), f32(5, 4)),
    op_case(aten.addmm.default, f32(3, 1), f32(3, 5), f32(5, 4), beta=0.5, alpha=-2),
    op_case(aten.addmm.default, f32(3, 4) / 0, f32(3, 5), f32(5, 4), beta=0),
    op_case(aten.addmm.default, integers(4), integers(3, 5), integers(5, 4), beta=2, alpha=3),
    op_case(aten.addmv.default, f32(3), f32(3, 5), f32(5), beta=2, alpha=0.5),
    op_case(aten.baddbmm.default, f32(2, 3, 4), f32(2, 3, 5), f32(2, 5, 4), beta=2, alpha=0.5),
    op_case(aten.baddbmm.default, f32(1, 1, 4), f32(2, 3, 5), f32(2, 5, 4)),
    op_case(aten.addbmm.default, f32(3, 4), f32(2, 3, 5), f32(2, 5, 4), beta=-1, alpha=0.5),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_through_torch_export():
    assert_matches_torch(CASES[0], export=True)


def test_einsum_through_torch_export():
    def contracted(a, b, v):
        scores = torch.einsum("bhqd,bhkd->qbk", a, b)
        return scores, torch.einsum("bhqd,d->bqh", a, v), torch.einsum("bij->bji", a[0])

    case = op_case(contracted, f32(2, 3, 4, 5), f32(2, 3, 6, 5), f32(5))
    assert_matches_torch(case, export=True)


weight, bias4, bias5 = f32(4, 5), f32(4), f32(5)
BY_WEIGHT = [
    op_case(lambda x: aten.linear.default(x, weight, bias4), f32(2, 3, 5)),
    op_case(lambda x: aten.linear.default(x, weight, bias4), f32(5)),
    op_case(lambda x: x @ weight, f32(2, 3, 4)),
    op_case(lambda x: x @ weight, f32(4)),
    op_case(lambda x: weight @ x, f32(5, 3)),
    op_case(lambda x: weight @ x, f32(2, 3, 5, 2)),
    op_case(lambda x: torch.addmm(bias5, x, weight), f32(3, 4)),
]


@pytest.mark.parametrize("case", BY_WEIGHT, ids=range(len(BY_WEIGHT)))
def test_constant_matrix_is_fully_connected(case):
    assert_matches_torch(case, export=True)
