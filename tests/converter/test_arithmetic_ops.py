import pytest
import torch

from tests.op_case import (
    assert_matches_torch,
    bools,
    f32,
    graph_of,
    integers,
    op_case,
    positive,
)

aten = torch.ops.aten
INT8, UINT8, INT16, INT64 = torch.int8, torch.uint8, torch.int16, torch.int64
BIG = torch.tensor([[2**40 + 3, -(2**33) - 7, 5]])
BYTES = torch.tensor([[0, 3, 200], [255, 130, 7]], dtype=UINT8)
SPECIAL = torch.tensor([[float("nan"), float("inf"), -float("inf"), -0.0, 1.5, -2.5]])

CASES = [
    op_case(aten.add.Tensor, f32(2, 3), f32(3)),
    op_case(aten.add.Tensor, f32(2, 3), f32(3), alpha=-3),
    op_case(aten.add.Tensor, f32(4, 1, 3), f32(2, 1), alpha=0.5),
    op_case(aten.add.Tensor, f32(2, 1, 3, 2, 2), f32(4, 1, 1, 2)),
    op_case(aten.add.Tensor, f32(2, 3), 2.5),
    op_case(aten.add.Tensor, f32(2, 3), 2, alpha=5),
    op_case(aten.add.Tensor, integers(2, 3), 2.5),
    op_case(aten.add.Tensor, integers(2, 3), 4, alpha=3),
    op_case(aten.add.Tensor, integers(2, 3, dtype=INT8), 120),
    op_case(aten.add.Tensor, integers(2, 3, dtype=INT16), integers(3, dtype=INT64)),
    op_case(aten.add.Tensor, integers(2, 3, dtype=INT16), integers(3, dtype=INT16)),
    op_case(aten.add.Tensor, BYTES, BYTES),
    op_case(aten.add.Tensor, bools(2, 3), bools(3)),
    op_case(aten.add.Tensor, bools(2, 3), f32(3)),
    op_case(aten.add.Tensor, integers(3), torch.tensor(2.5)),
    op_case(aten.add.Scalar, f32(3), 2, 4),
    op_case(aten.sub.Tensor, f32(2, 3), f32(3), alpha=2.5),
    op_case(aten.sub.Tensor, integers(2, 3, dtype=INT16), integers(3, dtype=INT16), alpha=2),
    op_case(aten.sub.Tensor, BYTES, 9),
    op_case(aten.sub.Tensor, BIG, integers(2, 1, dtype=INT64)),
    op_case(aten.sub.Scalar, f32(2, 3), 2),
    op_case(aten.rsub.Tensor, f32(2, 3), f32(3), alpha=4),
    op_case(aten.rsub.Scalar, f32(2, 3), 1),
    op_case(aten.rsub.Scalar, integers(2, 3), 1, 3),
    op_case(aten.mul.Tensor, f32(2, 3), f32(2, 1)),
    op_case(aten.mul.Tensor, f32(2, 3), 0.5),
    op_case(aten.mul.Tensor, integers(2, 3), 0.5),
    op_case(aten.mul.Tensor, BIG, 3),
    op_case(aten.mul.Tensor, BYTES, BYTES),
    op_case(aten.mul.Tensor, bools(2, 3), bools(3)),
    op_case(aten.mul.Tensor, bools(2, 3), integers(3, dtype=INT8)),
    op_case(aten.mul.Scalar, f32(), -2),
    op_case(aten.mul.Tensor, SPECIAL, 0),
    op_case(aten.sub.Tensor, SPECIAL, SPECIAL),
    op_case(aten.maximum.default, f32(2, 3), f32(4, 2, 1)),
    op_case(aten.maximum.default, integers(2, 3, dtype=INT8), integers(3, dtype=INT8)),
    op_case(aten.maximum.default, bools(2, 3), bools(3)),
    op_case(aten.maximum.default, torch.tensor([1.0, 2.0]), torch.tensor([float("nan"), 1.0])),
    op_case(aten.max.other, integers(2, 3), integers(3, dtype=INT64)),
    op_case(aten.minimum.default, f32(2, 3), f32(3)),
    op_case(aten.minimum.default, bools(2, 3), bools(3)),
    op_case(aten.min.other, BYTES, torch.tensor(9, dtype=UINT8)),
    op_case(aten.fmax.default, SPECIAL, torch.zeros(1)),
    op_case(aten.fmax.default, torch.zeros(1), SPECIAL),
    op_case(aten.fmin.default, SPECIAL, torch.zeros(1)),
    op_case(aten.fmin.default, torch.zeros(1), SPECIAL),
    op_case(aten.fmin.default, integers(2, 3), integers(3)),
    op_case(aten.clamp.default, f32(2, 3), -0.5, 0.7),
    op_case(aten.clamp.default, f32(2, 3), 0),
    op_case(aten.clamp.default, f32(2, 3) * 9, 0, 6),
    op_case(aten.clamp.default, f32(2, 3), -1, 1),
    op_case(aten.clamp.default, f32(2, 3), 0, 1),
    op_case(aten.clamp.default, f32(2, 3), None, 0.1),
    op_case(aten.clamp.default, f32(2, 3), 1.0, -1.0),
    op_case(aten.clamp.default, SPECIAL, -1.5, 2),
    op_case(aten.clamp.default, SPECIAL, 0, 1),
    op_case(aten.clamp.default, SPECIAL, 0, 6),
    op_case(aten.clamp.default, SPECIAL, -1, 1),
    op_case(aten.clamp.default, integers(2, 3), -2, 3),
    op_case(aten.clamp.default, integers(2, 3), -2.5, 3),
    op_case(aten.clamp.default, integers(2, 3, dtype=INT8), 0),
    op_case(aten.clamp.default, BIG, -5, 2**35),
    op_case(aten.clamp.Tensor, f32(2, 3), f32(3) - 1, f32(2, 1) + 1),
    op_case(aten.clamp.Tensor, integers(2, 3), None, integers(3)),
    op_case(aten.clamp_min.default, f32(2, 3), 0.2),
    op_case(aten.clamp_min.Tensor, f32(2, 3), f32(3)),
    op_case(aten.clamp_max.default, f32(2, 3), 0.2),
    op_case(aten.clamp_max.Tensor, f32(2, 3), f32(3)),
    op_case(aten.clip.default, f32(2, 3), -0.3),
    op_case(aten.neg.default, f32(2, 3)),
    op_case(aten.neg.default, BIG),
    op_case(aten.neg.default, BYTES),
    op_case(aten.neg.default, integers(2, 3, dtype=INT8)),
    op_case(aten.abs.default, f32(2, 3)),
    op_case(aten.abs.default, integers(2, 3)),
    op_case(aten.abs.default, integers(2, 3, dtype=INT8)),
    op_case(aten.abs.default, BIG),
    op_case(aten.abs.default, BYTES),
    op_case(aten.sign.default, torch.tensor([-2.5, 0.0, 3.0])),
    op_case(aten.sign.default, integers(2, 3, low=-1, high=2)),
    op_case(aten.sign.default, BIG),
    op_case(aten.sgn.default, integers(2, 3, dtype=INT16)),
    op_case(aten.addcmul.default, f32(2, 3), f32(3), f32(2, 1), value=-0.7),
    op_case(aten.addcmul.default, integers(2, 3), integers(3), integers(2, 1), value=2),
    op_case(aten.addcdiv.default, f32(2, 3), f32(3), positive(2, 1), value=3),
    op_case(aten.lerp.Scalar, f32(2, 3), f32(3), 0.25),
    op_case(aten.lerp.Scalar, f32(2, 3), f32(3), 0.75),
    op_case(aten.lerp.Tensor, f32(2, 3), f32(3), positive(2, 1)),
    op_case(aten.hypot.default, f32(2, 3), f32(3)),
    op_case(aten.copysign.Tensor, f32(4), torch.tensor([0.0, -0.0, -3.0, 2.0])),
    op_case(aten.copysign.Scalar, f32(2, 3), -2),
    op_case(aten.copysign.Tensor, integers(2, 3), f32(3)),
    op_case(aten.signbit.default, SPECIAL),
    op_case(aten.signbit.default, integers(2, 3)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


@pytest.mark.parametrize(
    ("case", "kinds"),
    [
        (op_case(aten.add.Tensor, f32(2), f32(2), alpha=1), ["ADD"]),
        (op_case(aten.clamp.default, f32(2), 0, 6), ["RELU6"]),
        (op_case(aten.clamp.default, f32(2), -1, 1), ["RELU_N1_TO_1"]),
        (op_case(aten.clamp.default, f32(2), 0, 1), ["RELU", "MINIMUM"]),
        (op_case(aten.clamp.default, f32(2), -2, 1), ["MAXIMUM", "MINIMUM"]),
        (op_case(aten.mul.Tensor, bools(2), bools(2)), ["LOGICAL_AND"]),
    ],
    ids=str,
)
def test_uses_the_op_that_delegates_take(case, kinds):
    assert [op.kind for op in graph_of(case).ops] == kinds


@pytest.mark.parametrize("op", [aten.maximum.default, aten.minimum.default], ids=str)
@pytest.mark.xfail(strict=True, reason="LiteRT's MAXIMUM and MINIMUM drop a NaN in operand 0")
def test_nan_in_the_first_operand(op):
    assert_matches_torch(op_case(op, SPECIAL, torch.zeros(1)))


def test_through_torch_export():
    assert_matches_torch(op_case(aten.add.Tensor, f32(2, 3), f32(3), alpha=-3), export=True)
