import pytest
import torch

from tests.op_case import assert_matches_torch, f32, op_case

aten = torch.ops.aten

CASES = [
    op_case(aten.linear.default, f32(2, 5), f32(3, 5), f32(3)),
    op_case(aten.linear.default, f32(2, 3, 5), f32(4, 5)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_through_torch_export():
    assert_matches_torch(CASES[0], export=True)
