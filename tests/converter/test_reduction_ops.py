import math

import pytest
import torch

from litert_torch.errors import UnsupportedCaseError
from tests.op_case import (
    assert_matches_torch,
    bools,
    f32,
    integers,
    lowered_alone,
    op_case,
    positive,
)

aten = torch.ops.aten
I64, INF = torch.int64, float("inf")

CASES = [
    op_case(aten.sum.default, f32(3, 4)),
    op_case(aten.sum.default, f32()),
    op_case(aten.sum.default, bools(3, 4)),
    op_case(aten.sum.default, integers(3, 4, dtype=torch.int8), dtype=torch.float32),
    op_case(aten.sum.dim_IntList, f32(3, 4, 5), [0, -1]),
    op_case(aten.sum.dim_IntList, f32(3, 4, 5), [1], True),
    op_case(aten.sum.dim_IntList, integers(3, 4), [1]),
    op_case(aten.sum.dim_IntList, f32(3, 4), None),
    op_case(aten.sum.dim_IntList, f32(3, 4), []),
    op_case(aten.sum.dim_IntList, f32(0, 3), [0]),
    op_case(aten.mean.default, f32(3, 4)),
    op_case(aten.mean.dim, f32(2, 3, 4, 5), [-1, -2], True),
    op_case(aten.mean.dim, integers(3, 4), [0], dtype=torch.float32),
    op_case(aten.amax.default, f32(3, 4, 5), [0, 2]),
    op_case(aten.amax.default, integers(3, 4, dtype=torch.int8)),
    op_case(aten.amin.default, f32(3, 4), [-1], True),
    op_case(aten.amin.default, bools(3, 4), [1]),
    op_case(aten.max.default, integers(3, 4, dtype=I64)),
    op_case(aten.min.default, f32(3, 4)),
    op_case(aten.max.dim, f32(3, 4, 5), 1),
    op_case(aten.max.dim, integers(4, 9, low=-2, high=2), -1, True),
    op_case(aten.max.dim, f32(), 0),
    op_case(aten.min.dim, integers(4, 9, low=-2, high=2, dtype=I64), 0),
    op_case(aten.aminmax.default, f32(3, 4), dim=1),
    op_case(aten.aminmax.default, f32(3, 4)),
    op_case(aten.argmax.default, f32(3, 4, 5), -2),
    op_case(aten.argmax.default, f32(3, 4)),
    op_case(aten.argmax.default, f32(3, 4), None, True),
    op_case(aten.argmax.default, integers(3, 9, low=0, high=3, dtype=I64), 1, True),
    op_case(aten.argmin.default, integers(3, 9, low=0, high=3, dtype=I64), 0),
    op_case(aten.argmin.default, integers(3, 9, low=0, high=3, dtype=torch.int16)),
    op_case(aten.prod.default, f32(3, 4)),
    op_case(aten.prod.dim_int, integers(3, 4, low=-3, high=4), 1, True),
    op_case(aten.prod.dim_int, f32(3, 4), 0),
    op_case(aten.prod.dim_int, integers(3, 4, low=0, high=3), 0, dtype=torch.bool),
    op_case(aten.prod.default, bools(3, 4), dtype=torch.bool),
    op_case(
        aten.linalg_vector_norm.default, torch.tensor([[1.0, math.nan], [-3.0, 2.0]]), math.inf, [1]
    ),
    op_case(aten.all.default, bools(3, 4)),
    op_case(aten.all.dim, integers(3, 4, low=0, high=3), 1),
    op_case(aten.all.dims, f32(3, 4, 2), [0, 2], True),
    op_case(aten.any.default, f32(3, 4) * 0),
    op_case(aten.any.dim, bools(3, 4), -1, True),
    op_case(aten.any.dims, integers(3, 4, low=0, high=2, dtype=torch.uint8), None),
    op_case(aten.count_nonzero.default, integers(3, 4, low=-1, high=2)),
    op_case(aten.count_nonzero.dim_IntList, bools(3, 4), [1]),
    op_case(aten.var.default, f32(3, 4)),
    op_case(aten.var.dim, f32(3, 4, 5), [0, 2], False, True),
    op_case(aten.var.correction, f32(3, 4), [1], correction=2.5),
    op_case(aten.var.correction, f32(3, 4)),
    op_case(aten.var.correction, f32(3, 1), [1]),
    op_case(aten.std.default, f32(7), False),
    op_case(aten.std.dim, f32(3, 4), [0]),
    op_case(aten.std.correction, f32(3, 4), [0], correction=0, keepdim=True),
    op_case(aten.var_mean.default, f32(3, 4)),
    op_case(aten.var_mean.dim, f32(3, 4), [1]),
    op_case(aten.var_mean.correction, f32(3, 4), [1], correction=0, keepdim=True),
    op_case(aten.std_mean.default, f32(3, 4)),
    op_case(aten.std_mean.dim, f32(3, 4), None),
    op_case(aten.std_mean.correction, f32(3, 4), [-1]),
    *[
        op_case(aten.linalg_vector_norm.default, f32(3, 4, 2), order, [0, -1], True)
        for order in (2, 1, INF, -INF, 0, 3.5, -1)
    ],
    op_case(aten.linalg_vector_norm.default, f32(3, 4)),
    op_case(aten.norm.Scalar, f32(3, 4), 1),
    op_case(aten.norm.ScalarOpt_dim, f32(3, 4), None, [1], True),
    op_case(aten.norm.ScalarOpt_dim_dtype, f32(3, 4), 2, [1], False, dtype=torch.float32),
    op_case(aten.norm.ScalarOpt_dtype, f32(3, 4), 2, dtype=torch.float32),
    op_case(aten.logsumexp.default, f32(3, 4, 2) * 50, [0, 2]),
    op_case(aten.logsumexp.default, (f32(3, 4) > 1.2).float().log(), [1], True),
    op_case(aten.logsumexp.default, positive(2, 3) / 0, [0]),
]


@pytest.mark.filterwarnings("ignore:var", "ignore:std", "ignore:.*degrees of freedom")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_the_maximum_of_nothing_is_refused():
    with pytest.raises(UnsupportedCaseError, match="no elements"):
        lowered_alone(op_case(aten.amax.default, f32(0, 3), [0]))


NAN = torch.tensor([1.0, float("nan"), 3.0, -2.0])
MIXED = torch.tensor(
    [[1.0, float("nan"), INF, 2.0], [-INF, 3.0, INF, -2.0], [-INF, -1.0, 4.0, 0.0]]
)


@pytest.mark.parametrize(
    "case",
    [
        op_case(aten.amax.default, NAN),
        op_case(aten.amin.default, MIXED, [1]),
        op_case(aten.amax.default, MIXED, [1], True),
        op_case(aten.amax.default, MIXED, [0]),
        op_case(aten.max.default, MIXED),
        op_case(aten.aminmax.default, MIXED, dim=0),
        op_case(aten.logsumexp.default, NAN, [0]),
    ],
    ids=str,
)
def test_nan_is_kept(case):
    assert_matches_torch(case)


@pytest.mark.xfail(strict=True, reason="LiteRT's ARG_MAX and TOPK_V2 pass over NaN")
@pytest.mark.parametrize(
    "case",
    [op_case(aten.argmax.default, NAN), op_case(aten.sort.default, NAN, 0, True)],
    ids=str,
)
def test_nan_is_the_largest(case):
    assert_matches_torch(case)
