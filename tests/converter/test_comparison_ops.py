import pytest
import torch

from tests.op_case import assert_matches_torch, bools, f32, integers, op_case

aten = torch.ops.aten
INT8, UINT8, INT16, INT64 = torch.int8, torch.uint8, torch.int16, torch.int64
INF, NAN = float("inf"), float("nan")
SPECIAL = torch.tensor([[NAN, INF, -INF, -0.0, 1.5, -2.5]])
SMALL = {"low": -2, "high": 3}
BIG = torch.tensor([[2**32, 2**32 + 1, -(2**40), 5]])
COMPARISONS = (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)

CASES = [
    op_case(packet.Tensor, *operands)
    for packet in COMPARISONS
    for operands in [
        (f32(2, 3).round(), f32(3).round()),
        (SPECIAL, SPECIAL),
        (SPECIAL, torch.zeros(2, 1)),
        (integers(4, 5, **SMALL), integers(5, **SMALL)),
        (integers(4, 5, dtype=INT64, **SMALL), integers(5, **SMALL)),
        (integers(4, 5, dtype=INT8, **SMALL), integers(5, dtype=INT8, **SMALL)),
        (integers(4, 5, dtype=INT16, **SMALL), integers(5, dtype=INT16, **SMALL)),
        (
            torch.tensor([[0, 200, 3]], dtype=UINT8),
            torch.tensor([[200], [3]], dtype=UINT8),
        ),
        (bools(2, 3), bools(4, 1, 3)),
        (bools(2, 3), f32(3).round()),
        (f32(2, 1, 3, 2, 2).round(), f32(4, 1, 1, 2).round()),
    ]
]
CASES += [
    op_case(packet.Scalar, *operands)
    for packet in COMPARISONS
    for operands in [
        (f32(2, 3).round(), 1),
        (integers(2, 3, **SMALL), 1),
        (integers(2, 3, **SMALL), 0.5),
        (integers(2, 3, dtype=INT8, **SMALL), -1),
        (BIG, 2**32),
        (bools(2, 3), True),
        (f32().round(), 0),
    ]
]
CASES += [
    op_case(aten.greater.Tensor, f32(2, 3), f32(3)),
    op_case(aten.not_equal.Scalar, integers(2, 3, **SMALL), 1),
    op_case(aten.isnan.default, SPECIAL),
    op_case(aten.isnan.default, integers(2, 3)),
    op_case(aten.isinf.default, SPECIAL),
    op_case(aten.isinf.default, integers(2, 3)),
    op_case(aten.isposinf.default, SPECIAL),
    op_case(aten.isneginf.default, SPECIAL),
    op_case(aten.isfinite.default, SPECIAL),
    op_case(aten.isfinite.default, integers(2, 3, dtype=INT8)),
    op_case(aten.nan_to_num.default, SPECIAL),
    op_case(aten.nan_to_num.default, SPECIAL, 0.5, 9.0, -9.0),
    op_case(aten.nan_to_num.default, SPECIAL, None, 9.0),
    op_case(aten.nan_to_num.default, SPECIAL, 1.0, None, -4.0),
    op_case(aten.nan_to_num.default, integers(2, 3), 7.0),
    op_case(aten.where.self, bools(2, 3), f32(2, 3), f32(3)),
    op_case(aten.where.self, bools(3), f32(4, 2, 1), torch.tensor(-1.5)),
    op_case(aten.where.self, bools(2, 3), integers(3), f32(2, 1)),
    op_case(aten.where.self, bools(2, 3), integers(3, dtype=INT8), integers(3, dtype=INT64)),
    op_case(aten.where.self, bools(2, 3), bools(3), bools(2, 1)),
    op_case(aten.where.self, bools(2, 1, 3, 1, 2), f32(4, 1, 5, 1), f32(1)),
    op_case(aten.where.ScalarOther, bools(2, 3), f32(3), -INF),
    op_case(aten.where.ScalarOther, bools(2, 3), integers(3), 0.5),
    op_case(aten.where.ScalarSelf, bools(2, 3), 0, f32(3)),
    op_case(aten.where.Scalar, bools(2, 3), 1, 0),
    op_case(aten.where.Scalar, bools(2, 3), 1.0, 2),
    op_case(aten.masked_fill.Scalar, f32(2, 3), bools(3), -INF),
    op_case(aten.masked_fill.Scalar, f32(3), bools(2, 3), 7),
    op_case(aten.masked_fill.Scalar, integers(2, 3, dtype=INT64), bools(2, 1), -100),
    op_case(aten.masked_fill.Scalar, bools(2, 3), bools(3), True),
    op_case(aten.masked_fill.Tensor, f32(2, 3), bools(3), torch.tensor(2)),
    op_case(aten.heaviside.default, SPECIAL[:, 1:], torch.tensor(0.5)),
    op_case(aten.heaviside.default, integers(2, 3, **SMALL), torch.tensor([3], dtype=torch.int32)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_through_torch_export():
    case = op_case(aten.masked_fill.Scalar, f32(2, 3), bools(3), -INF)
    assert_matches_torch(case, export=True)
