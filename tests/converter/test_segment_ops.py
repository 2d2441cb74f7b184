"""Windows and runs whose places the model computes: segment_reduce, fractional pooling."""

import pytest
import torch

from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, f32, integers, lowered_alone, op_case

aten = torch.ops.aten
segments = aten.segment_reduce.default
LENGTHS = torch.tensor([2, 0, 1, 3])
OFFSETS = torch.tensor([0, 2, 2, 3, 6])
PLANES = torch.tensor([[1, 0, 3], [2, 2, 0]])
KINDS = ("sum", "mean", "prod", "max", "min")


def shares(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


DRAWN = shares(2, 3, 3)
BYTES = integers(5, 2100, low=-9, high=10, dtype=torch.int8) * 14

CASES = [
    *(op_case(segments, f32(6, 2, 3), kind, lengths=LENGTHS) for kind in KINDS),
    *(op_case(segments, f32(6), kind, offsets=OFFSETS, initial=0.5) for kind in KINDS),
    *(op_case(segments, f32(2, 4, 3), kind, lengths=PLANES, axis=1, initial=-1) for kind in KINDS),
    op_case(aten.fractional_max_pool2d.default, f32(2, 3, 9, 11), [2, 3], [3, 4], shares(2, 3, 2)),
    op_case(aten.fractional_max_pool2d.default, f32(3, 7, 8), [3, 2], [1, 4], shares(1, 3, 2)),
    op_case(aten.fractional_max_pool3d.default, f32(2, 3, 5, 7, 6), [2, 3, 2], [3, 4, 2], DRAWN),
    op_case(aten._int_mm.default, BYTES, BYTES.reshape(2100, 5)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_segments_by_indices_are_refused():
    with pytest.raises(UnsupportedCaseError, match="give lengths or offsets"):
        lowered_alone(op_case(segments, f32(6), "sum", indices=torch.zeros(6, dtype=torch.int64)))
