import pytest
import torch

from tests.op_case import assert_matches_torch, bools, f32, integers, op_case

aten = torch.ops.aten
INT8, UINT8, INT16, INT64 = torch.int8, torch.uint8, torch.int16, torch.int64
BIG = torch.tensor([[2**62 + 5, -(2**40) - 3, -1, 77]])
BYTES = torch.tensor([[0, 3, 200, 255]], dtype=UINT8)
OPERANDS = [
    (integers(2, 3), integers(3, low=-99, high=99)),
    (integers(2, 3, dtype=INT8), integers(2, 1, dtype=INT8)),
    (integers(2, 3, dtype=INT16), integers(3, dtype=INT16)),
    (BYTES, torch.tensor([[7], [129]], dtype=UINT8)),
    (BIG, torch.tensor([[2**33 + 1], [-2]])),
    (bools(2, 3), bools(4, 1, 3)),
    (integers(3, dtype=INT64), bools(2, 3)),
]

CASES = [
    op_case(op, *operands)
    for op in (aten.bitwise_and.Tensor, aten.bitwise_or.Tensor, aten.bitwise_xor.Tensor)
    for operands in OPERANDS
]
CASES += [
    op_case(op, *operands)
    for op in (aten.logical_and.default, aten.logical_or.default, aten.logical_xor.default)
    for operands in [
        (bools(2, 3), bools(3)),
        (integers(2, 5, low=-1, high=2), f32(5).relu()),
        (integers(2, 5, low=-1, high=2, dtype=INT8), bools(2, 1)),
    ]
]
CASES += [
    op_case(aten.bitwise_and.Scalar, integers(2, 3), 6),
    op_case(aten.bitwise_and.Scalar, BIG, 2**40 - 1),
    op_case(aten.bitwise_or.Scalar, integers(2, 3), 1),
    op_case(aten.bitwise_xor.Scalar, bools(2, 3), True),
    op_case(aten.bitwise_xor.Scalar_Tensor, 3, integers(2, 3)),
    op_case(aten.__and__.Tensor, bools(2, 3), bools(3)),
    op_case(aten.__or__.Tensor, integers(2, 3), integers(3)),
    op_case(aten.__xor__.Scalar, integers(2, 3), 5),
    op_case(aten.bitwise_not.default, bools(2, 3)),
    op_case(aten.bitwise_not.default, integers(2, 3)),
    op_case(aten.bitwise_not.default, BYTES),
    op_case(aten.bitwise_not.default, BIG),
    op_case(aten.logical_not.default, bools(2, 3)),
    op_case(aten.logical_not.default, torch.tensor([0.0, 0.3, -2.0])),
    op_case(aten.logical_not.default, integers(2, 3, low=-1, high=2, dtype=INT64)),
    op_case(aten.__lshift__.Scalar, integers(2, 3), 2),
    op_case(aten.bitwise_left_shift.Tensor_Scalar, BIG, 5),
    op_case(aten.bitwise_left_shift.Tensor_Scalar, BIG, 63),
    op_case(aten.bitwise_left_shift.Tensor_Scalar, integers(2, 3), 31),
    op_case(aten.bitwise_left_shift.Tensor, integers(2, 3), integers(3, low=0)),
    op_case(aten.bitwise_left_shift.Tensor, BYTES, torch.tensor([[1], [3]], dtype=UINT8)),
    op_case(aten.bitwise_left_shift.Tensor, BIG, integers(2, 1, low=0, dtype=INT64)),
    op_case(aten.bitwise_left_shift.Scalar_Tensor, 3, integers(2, 3, low=0)),
    op_case(aten.__rshift__.Scalar, integers(2, 3), 1),
    op_case(aten.bitwise_right_shift.Tensor_Scalar, BIG, 7),
    op_case(aten.bitwise_right_shift.Tensor_Scalar, BIG, 62),
    op_case(aten.bitwise_right_shift.Tensor_Scalar, BYTES, 3),
    op_case(aten.bitwise_right_shift.Tensor, integers(2, 3), integers(3, low=0)),
    op_case(aten.bitwise_right_shift.Tensor, BIG, integers(2, 1, low=0, dtype=INT64)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_through_torch_export():
    assert_matches_torch(op_case(aten.bitwise_or.Tensor, *OPERANDS[0]), export=True)
