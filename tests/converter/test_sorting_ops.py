import pytest
import torch

from tests.op_case import assert_matches_torch, bools, f32, integers, op_case

aten = torch.ops.aten
I64 = torch.int64
FEW = {"low": 0, "high": 4}  # many equal elements
MODES = torch.tensor([[3, 1, 3, 2, 1], [2, 2, 0, 0, 5], [-4, 1, 7, -4, 5]])

CASES = [
    op_case(aten.topk.default, f32(3, 7), 3),
    op_case(aten.topk.default, f32(7, 3, 2), 2, 0),
    op_case(aten.topk.default, f32(3, 7), 4, -1, False),
    op_case(aten.topk.default, torch.tensor([5, -(2**40), 2**40, 7]), 2, 0, False),
    op_case(aten.sort.default, f32(3, 7)),
    op_case(aten.sort.default, f32(7, 3), 0, True),
    op_case(aten.sort.default, f32()),
    op_case(aten.sort.stable, integers(3, 9, **FEW), stable=True),
    op_case(
        aten.sort.stable, integers(9, 3, dtype=I64, **FEW), stable=True, dim=0, descending=True
    ),
    op_case(aten.sort.stable, integers(3, 9, dtype=torch.uint8, **FEW), stable=True),
    op_case(aten.sort.stable, bools(3, 9), stable=True, descending=True),
    op_case(aten.argsort.default, f32(3, 7), 0),
    op_case(aten.argsort.stable, integers(3, 9, **FEW), stable=True, dim=1, descending=True),
    op_case(aten.msort.default, f32(5, 2)),
    op_case(aten.kthvalue.default, f32(3, 7), 2),
    op_case(aten.kthvalue.default, f32(7, 3), 5, 0, True),
    op_case(aten.median.default, f32(3, 4)),
    op_case(aten.median.dim, f32(3, 6), 1),
    op_case(aten.median.dim, f32(5, 3, 2), 0, True),
    op_case(aten.mode.default, MODES),
    op_case(aten.mode.default, MODES.float(), 0, True),
    op_case(aten.cumsum.default, f32(3, 4, 2), 1),
    op_case(aten.cumsum.default, integers(3, 4, dtype=torch.int16), -2),
    op_case(aten.cumsum.default, bools(7), 0),
    op_case(aten.cumsum.default, integers(7), 0, dtype=torch.float32),
    op_case(aten.cumsum.default, integers(7), 0, dtype=torch.int32),
    op_case(aten.cumprod.default, f32(3, 7), 1),
    op_case(aten.cumprod.default, integers(5, 2, low=-3, high=4), 0),
    op_case(aten.cummax.default, f32(3, 9), 1),
    op_case(aten.cummax.default, integers(9, 2, **FEW), 0),
    op_case(aten.cummin.default, integers(3, 9, dtype=I64, **FEW), -1),
    op_case(aten.cummin.default, f32(1, 3), 0),
    op_case(aten.logcumsumexp.default, f32(3, 9) * 20, 1),
    op_case(aten.logcumsumexp.default, torch.tensor([1.0, float("inf"), 2.0]), 0),
    op_case(aten.logcumsumexp.default, (f32(3, 9) > 0).float().log(), 0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)
