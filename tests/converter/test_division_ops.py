import pytest
import torch

from litert_torch.converter.lowerings.division import is_power_of_two
from tests.op_case import assert_matches_torch, f32, graph_of, integers, op_case, positive

aten = torch.ops.aten
INT8, UINT8, INT16, INT64 = torch.int8, torch.uint8, torch.int16, torch.int64

N = torch.tensor([[-7, 7, -7, 7, -8, 0, 100, -100]])
D = torch.tensor([[2, -2, -2, 2, 4, 3, -33, 1]])
BIG = torch.tensor([[2**62 + 12345, -(2**62) - 1, 2**53 + 1, -(2**40) - 11, 2**63 - 1, 5]])
BIG_DIVISOR = torch.tensor([[3, 7, -1, 1000003, 2**31 + 1, 2**40]])
BYTES = torch.tensor([[0, 3, 200, 255]], dtype=UINT8)
# 2.1 / 0.7 and its like round up to a whole number that the divisor does not reach
TIES = torch.tensor([2.1, -2.1, 0.3, 0.6, 4.2, 6.3, -0.9, 1.4])

CASES = [
    op_case(aten.div.Tensor, f32(2, 3), positive(3)),
    op_case(aten.div.Tensor, f32(2, 3), 3.0),
    op_case(aten.div.Tensor, f32(2, 3), -4),
    op_case(aten.div.Tensor, f32(2, 3), 1),
    op_case(aten.div.Tensor, integers(2, 3), integers(3, low=1)),
    op_case(aten.div.Tensor, N, 4),
    op_case(aten.div.Tensor, integers(2, 3, dtype=INT8), integers(3, low=1, dtype=UINT8)),
    op_case(aten.div.Tensor, torch.tensor([0.0, 1.0, -1.0]), torch.zeros(1)),
    op_case(aten.true_divide.Tensor, f32(2, 3), positive(2, 1)),
    op_case(aten.div.Tensor_mode, f32(2, 3), f32(3), rounding_mode=None),
    op_case(aten.floor_divide.default, torch.tensor([1.0, -1.0, 0.0]), torch.zeros(1)),
    op_case(aten.floor_divide.Scalar, N, 3),
    op_case(aten.floor_divide.default, BIG, 3),
    op_case(aten.floor_divide.default, BIG, -(2**20)),
    op_case(aten.remainder.Scalar, f32(2, 3) * 4, 1.5),
    op_case(aten.remainder.Scalar, f32(2, 3) * 4, -2),
    op_case(aten.remainder.Scalar, f32(2, 3) * 4, 1),
    op_case(aten.remainder.Scalar, N, 1000003),
    op_case(aten.remainder.Scalar, BYTES, 7),
    op_case(aten.remainder.Scalar_Tensor, 17, D),
    op_case(aten.fmod.Scalar, f32(2, 3) * 4, 1.5),
    op_case(aten.fmod.Scalar, f32(2, 3) * 4, -1.5),
    op_case(aten.fmod.Scalar, N, 3),
]
CASES += [
    op_case(op, *operands, **how)
    for op, how in [
        (aten.div.Tensor_mode, {"rounding_mode": "floor"}),
        (aten.div.Tensor_mode, {"rounding_mode": "trunc"}),
        (aten.floor_divide.default, {}),
        (aten.remainder.Tensor, {}),
        (aten.fmod.Tensor, {}),
    ]
    for operands in [
        (f32(2, 3) * 4, f32(3)),
        (TIES, torch.tensor(0.7)),
        (TIES, torch.tensor([[0.1], [-0.3]])),
        (N.int(), D.int()),
        (N, D),
        (BIG, BIG_DIVISOR),
        (N.to(INT8), D.to(INT8)),
        (N.to(INT16), D.to(INT16)),
        (BYTES, torch.tensor([7, 250, 1, 3], dtype=UINT8)),
        (N, torch.tensor(2.5)),
    ]
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


@pytest.mark.parametrize(
    ("divisor", "yes"),
    [
        (2, True),
        (-0.25, True),
        (1, True),
        (3, False),
        (0, False),
        (float("inf"), False),
        (2.0**127, False),
    ],
)
def test_power_of_two(divisor, yes):
    assert is_power_of_two(divisor) is yes


def test_division_by_a_power_of_two_is_a_product():
    assert [op.kind for op in graph_of(op_case(aten.div.Tensor, f32(2), 8)).ops] == ["MUL"]


def test_through_torch_export():
    assert_matches_torch(op_case(aten.floor_divide.default, N, D), export=True)
