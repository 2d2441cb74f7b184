import itertools

import pytest
import torch

from tests.op_case import assert_matches_torch, bools, f32, graph_of, integers, op_case

aten = torch.ops.aten
DTYPES = (
    torch.float32,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
)
SAMPLE = torch.tensor([0.0, 1.0, 2.75, 100.9, 127.0])

CASES = [op_case(aten.to.dtype, SAMPLE.to(a), b) for a, b in itertools.product(DTYPES, DTYPES)]
CASES += [
    op_case(aten.to.dtype, torch.tensor([-3.9, -0.5, 0.4, -100.2]), torch.int8),
    op_case(aten.to.dtype, torch.tensor([-3.9, -0.5, 0.4, -1e9]), torch.int32),
    op_case(aten.to.dtype, torch.tensor([-0.5, 0.0, -0.0, float("nan")]), torch.bool),
    op_case(aten.to.dtype, torch.tensor([300, -300, 128]), torch.int8),
    op_case(aten.to.dtype, torch.tensor([300, -1, 256]), torch.uint8),
    op_case(aten.to.dtype, torch.tensor([2**32 + 5, -(2**33) - 7]), torch.int32),
    op_case(aten.to.dtype, torch.tensor([2**40 + 3, -5]), torch.float32),
    op_case(aten.to.dtype_layout, integers(2, 3), dtype=torch.float32),
    op_case(aten.to.dtype_layout, f32(2, 3)),
    op_case(aten.to.device, f32(2, 3), torch.device("cpu"), torch.int64),
    op_case(aten.to.other, f32(2, 3), integers(1)),
    op_case(aten._to_copy.default, f32(2, 3), dtype=torch.int32),
    op_case(aten.type_as.default, integers(2, 3), f32(1)),
    op_case(torch.ops.prims.convert_element_type.default, bools(2, 3), torch.float32),
    op_case(aten.clone.default, f32(2, 3)),
    op_case(aten.contiguous.default, f32(2, 3)),
    op_case(aten.alias.default, integers(2, 3)),
    op_case(aten.detach.default, f32(2, 3)),
    op_case(aten.lift_fresh_copy.default, bools(2, 3)),
    op_case(aten.positive.default, f32(2, 3)),
    op_case(aten.dropout.default, f32(2, 3), 0.5, False),
    op_case(aten.dropout.default, f32(2, 3), 0.0, True),
    op_case(aten.feature_dropout.default, f32(2, 3), 0.5, False),
    op_case(aten.alpha_dropout.default, f32(2, 3), 0.5, False),
    op_case(aten.native_dropout.default, f32(2, 3), 0.5, False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_half_and_double_compute_in_float32(dtype):
    assert graph_of(op_case(aten.to.dtype, f32(3), dtype)).ops == []


def test_through_torch_export():
    assert_matches_torch(op_case(aten.to.dtype, f32(2, 3) * 9, torch.int64), export=True)
