import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.op_case import assert_matches_torch, bools, f32, integers, op_case

aten = torch.ops.aten

CASES = [
    op_case(aten.constant_pad_nd.default, f32(2, 3), [1, 2]),
    op_case(aten.constant_pad_nd.default, f32(2, 3, 4), [0, 0, 2, 1], -1.5),
    op_case(aten.constant_pad_nd.default, f32(4, 5), [-1, 2, 1, -2], 3.0),
    op_case(aten.constant_pad_nd.default, integers(4, 5, dtype=torch.int64), [1, 0], 7),
    op_case(aten.constant_pad_nd.default, bools(4, 5), [1, 0, 0, 2], True),
    op_case(aten.constant_pad_nd.default, f32(1, 2, 2, 3, 2, 2), [1, 0, 0, 1]),
    op_case(aten.constant_pad_nd.default, f32(3), [0, 0]),
    op_case(aten.pad.default, f32(2, 3, 4, 5), [1, 2, 3, 0]),
    op_case(aten.pad.default, f32(2, 3), [1, 2], "constant", float("-inf")),
    op_case(aten.pad.default, f32(1, 2, 4, 5), [1, 2, 3, 0], "reflect"),
    op_case(aten.pad.default, f32(1, 2, 4, 5), [1, 2, 3, 0], "replicate"),
    op_case(aten.pad.default, f32(1, 2, 4, 5), [1, 2, 3, 0], "circular"),
    op_case(aten.pad.default, f32(1, 2, 4, 5), [1, -2, 3, -1], "circular"),
    op_case(aten._pad_circular.default, f32(1, 2, 5), [5, 2]),
    op_case(aten.reflection_pad1d.default, f32(2, 5), [3, 1]),
    op_case(aten.reflection_pad2d.default, f32(2, 3, 4), [0, 2, 1, 0]),
    op_case(aten.reflection_pad3d.default, f32(1, 2, 3, 4, 3), [1, 2, 3, 0, 1, 2]),
    op_case(aten.reflection_pad2d.default, f32(2, 3, 6), [-2, 2, 1, -1]),
    op_case(aten.replication_pad1d.default, f32(2, 3, 5), [3, 7]),
    op_case(aten.replication_pad2d.default, f32(2, 3, 4), [-1, 2, 1, 0]),
    op_case(aten.replication_pad3d.default, f32(1, 2, 3, 4, 3), [1, 1, 2, 0, 0, 2]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


amounts = st.lists(st.integers(-2, 3), min_size=4, max_size=4)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(amounts, st.sampled_from(["constant", "reflect", "replicate", "circular"]))
def test_any_padding(pad, mode):
    assert_matches_torch(op_case(aten.pad.default, f32(1, 2, 5, 6), pad, mode))
