import pytest
import torch

from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, bools, f32, integers, lowered_alone, op_case

aten = torch.ops.aten

CASES = [
    op_case(aten.cat.default, [f32(2, 3), f32(1, 3), f32(4, 3)]),
    op_case(aten.cat.default, [f32(2, 1, 3), f32(2, 2, 3)], -2),
    op_case(aten.cat.default, [f32(0), f32(2, 3)]),
    op_case(aten.cat.default, [f32(2, 0), f32(2, 3)], 1),
    op_case(aten.cat.default, [integers(2, 3), f32(1, 3)]),
    op_case(aten.cat.default, [bools(2), integers(3, dtype=torch.int8)]),
    op_case(aten.cat.default, [f32(1, 2)] * 7),
    op_case(aten.concat.default, [bools(2, 3), bools(2, 1)], 1),
    op_case(aten.stack.default, [f32(2, 3), f32(2, 3)], -1),
    op_case(aten.stack.default, [f32(), f32(), f32()]),
    op_case(aten.stack.default, [integers(2, 3, dtype=torch.int64)] * 3, 1),
    op_case(aten.hstack.default, [f32(3), f32(2)]),
    op_case(aten.hstack.default, [f32(2, 3), f32(2, 1)]),
    op_case(aten.vstack.default, [f32(3), f32(3)]),
    op_case(aten.dstack.default, [f32(3), f32(3)]),
    op_case(aten.dstack.default, [f32(2, 3), f32(2, 3)]),
    op_case(aten.column_stack.default, [f32(3), f32(3, 2)]),
    op_case(aten.repeat.default, f32(2, 3), [2, 1, 3]),
    op_case(aten.repeat.default, f32(2, 3), [1, 4]),
    op_case(aten.repeat.default, f32(2, 3), [1, 7]),
    op_case(aten.repeat.default, integers(1, 3), [5, 1]),
    op_case(aten.repeat.default, f32(2, 3), [1, 1]),
    op_case(aten.repeat.default, f32(2, 3), [0, 1]),
    op_case(aten.tile.default, bools(2, 3), [2]),
    op_case(aten.tile.default, f32(2, 3), [2, 2, 2]),
    op_case(aten.repeat_interleave.self_int, f32(2, 3, 2), 2, 1),
    op_case(aten.repeat_interleave.self_int, f32(2, 3), 7, -1),
    op_case(aten.repeat_interleave.self_int, integers(2, 3, dtype=torch.int64), 3),
    op_case(aten.meshgrid.default, [f32(3), f32(2), f32()]),
    op_case(aten.meshgrid.indexing, [f32(3), f32(2)], indexing="xy"),
    op_case(aten.meshgrid.indexing, [f32(3), f32(2), f32(4)], indexing="xy"),
]


@pytest.mark.filterwarnings("ignore:torch.meshgrid")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_repeats_known_at_run_time_are_refused():
    case = op_case(aten.repeat_interleave.self_Tensor, f32(3), torch.tensor([1, 0, 2]), 0)
    with pytest.raises(UnsupportedCaseError, match="depends on data"):
        lowered_alone(case)
