import pytest
import torch

from tests.op_case import assert_matches_torch, f32, integers, op_case

aten = torch.ops.aten
HALVES = torch.tensor([[-3.5, -2.5, -1.5, -0.5, -0.49, 0.0, 0.25, 0.5, 1.5, 2.5, 2.75, -3.99]])
SPECIAL = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e20, -1e20])

CASES = [
    op_case(op, x)
    for op in (
        aten.ceil.default,
        aten.floor.default,
        aten.round.default,
        aten.trunc.default,
        aten.fix.default,
    )
    for x in (HALVES, SPECIAL, integers(2, 3))
]
CASES += [
    op_case(aten.frac.default, HALVES),
    op_case(aten.round.decimals, f32(2, 3) * 9, decimals=1),
    op_case(aten.round.decimals, f32(2, 3) * 900, decimals=-2),
    op_case(aten.round.decimals, HALVES, decimals=0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case, atol=1e-6)
