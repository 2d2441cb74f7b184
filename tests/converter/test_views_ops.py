import pytest
import torch

from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, bools, f32, integers, lowered_alone, op_case

aten = torch.ops.aten

CASES = [
    op_case(aten.view.default, f32(2, 3, 5), [5, -1]),
    op_case(aten.view.default, integers(4, 3, dtype=torch.int64), [2, 6]),
    op_case(aten.view.default, f32(1), []),
    op_case(aten._unsafe_view.default, f32(6, 5), [2, 3, 5]),
    op_case(aten.reshape.default, bools(3, 4), [-1]),
    op_case(aten.view_as.default, f32(2, 6), f32(3, 4)),
    op_case(aten.reshape_as.default, f32(2, 6), f32(4, 3)),
    op_case(aten.flatten.using_ints, f32(2, 3, 4, 5), 1, -2),
    op_case(aten.flatten.using_ints, f32(2, 3)),
    op_case(aten.ravel.default, f32(3, 2)),
    op_case(aten.unflatten.int, f32(2, 12), -1, [3, -1]),
    op_case(aten.squeeze.default, f32(1, 3, 1, 2)),
    op_case(aten.squeeze.dim, f32(1, 3, 1, 2), -2),
    op_case(aten.squeeze.dim, f32(1, 3, 1, 2), 1),
    op_case(aten.squeeze.dims, f32(1, 3, 1, 1), [0, -1, 1]),
    op_case(aten.unsqueeze.default, f32(3, 2), -1),
    op_case(aten.unsqueeze.default, integers(3, 2), 0),
    op_case(aten.expand.default, f32(3, 1, 2), [4, -1, 5, 2]),
    op_case(aten.expand.default, bools(1, 3), [2, 3]),
    op_case(aten.expand.default, f32(3), [1, 1, 3]),
    op_case(aten.expand_as.default, integers(3, 1, dtype=torch.int64), f32(2, 3, 4)),
    op_case(aten.broadcast_to.default, f32(2, 1), [3, 2, 2]),
    op_case(aten.permute.default, f32(2, 3, 4), [2, 0, -2]),
    op_case(aten.permute.default, bools(2, 3, 4, 5), [0, 2, 3, 1]),
    op_case(aten.permute.default, f32(2, 3, 2, 4, 3, 2), [0, 1, 3, 2, 4, 5]),
    op_case(aten.permute.default, f32(2, 1, 2, 2, 3, 2, 2, 3), [0, 1, 3, 4, 2, 6, 7, 5]),
    op_case(aten.transpose.int, f32(2, 3, 4), 0, -1),
    op_case(aten.transpose.int, integers(2, 3, dtype=torch.int8), 1, 0),
    op_case(aten.view.dtype, f32(2, 3), torch.int32),
    op_case(aten.view.dtype, integers(2, 3) * 99999999, torch.float32),
    op_case(aten.view.dtype, integers(2, 3, dtype=torch.int8), torch.uint8),
    op_case(aten.swapdims.default, f32(2, 3, 4), 1, 2),
    op_case(aten.swapaxes.default, f32(2, 3, 4), -3, 1),
    op_case(aten.t.default, f32(2, 3)),
    op_case(aten.t.default, f32(3)),
    op_case(aten.numpy_T.default, f32(2, 3, 4)),
    op_case(aten.mT.default, f32(2, 3, 4)),
    op_case(aten.movedim.int, f32(2, 3, 4, 5), 1, -1),
    op_case(aten.movedim.intlist, f32(2, 3, 4, 5), [0, -1], [2, 0]),
    op_case(aten.moveaxis.int, f32(2, 3, 4), -1, 0),
]


@pytest.mark.filterwarnings("ignore:The use of `x.T`")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_bytes_of_another_width_are_refused():
    with pytest.raises(UnsupportedCaseError, match="reads the bytes"):
        lowered_alone(op_case(aten.view.dtype, f32(2, 4), torch.int64))


def test_more_runs_of_axes_than_a_transpose_takes_are_refused():
    with pytest.raises(UnsupportedCaseError, match="in two steps"):
        lowered_alone(op_case(aten.permute.default, f32(*[2] * 7), [6, 5, 4, 3, 2, 1, 0]))
