import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.op_case import assert_matches_torch, bools, f32, graph_of, integers, op_case

aten = torch.ops.aten
END = 2**63 - 1

CASES = [
    op_case(aten.slice.Tensor, f32(4, 5), 0, 1, 3),
    op_case(aten.slice.Tensor, f32(4, 5), 1, -3, END),
    op_case(aten.slice.Tensor, f32(4, 7), 1, 1, -1, 2),
    op_case(aten.slice.Tensor, f32(4, 7), -1, None, None, 3),
    op_case(aten.slice.Tensor, bools(4, 5, 3), 1, -100, 2),
    op_case(aten.slice.Tensor, integers(9, dtype=torch.int64), 0, 6, 100),
    op_case(aten.slice.Tensor, f32(4, 3), 0, 3, 1),
    op_case(aten.slice.Tensor, f32(2, 3, 4, 2, 3), 2, 1, 4, 2),
    op_case(aten.select.int, f32(4, 5, 3), 1, -1),
    op_case(aten.select.int, f32(4, 5, 3), -1, 2),
    op_case(aten.select.int, integers(4), 0, 1),
    op_case(aten.narrow.default, f32(4, 6), 1, 2, 3),
    op_case(aten.narrow.default, f32(4, 6), -2, -3, 2),
    op_case(aten.narrow.Tensor, f32(4, 6), 1, torch.tensor(2), 3),
    op_case(aten.narrow.Tensor, f32(4, 6), 1, torch.tensor(-4), 3),
    op_case(aten.split.Tensor, f32(7, 2), 3),
    op_case(aten.split.Tensor, f32(2, 8), 4, 1),
    op_case(aten.split.sizes, f32(2, 7), [1, 4, 2], -1),
    op_case(aten.split_with_sizes.default, f32(6, 2), [2, 0, 4]),
    op_case(aten.split_with_sizes.default, integers(5, 2), [2, 3]),
    op_case(aten.chunk.default, f32(7, 2), 3),
    op_case(aten.chunk.default, f32(2, 10), 5, 1),
    op_case(aten.chunk.default, f32(3, 2), 5),
    op_case(aten.tensor_split.sections, f32(2, 7), 3, 1),
    op_case(aten.tensor_split.indices, f32(7, 2), [2, -1]),
    op_case(aten.unbind.int, f32(3, 4), 0),
    op_case(aten.unbind.int, bools(2, 6, 2), -2),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_equal_parts_are_one_split():
    graph = graph_of(op_case(aten.chunk.default, f32(2, 9), 3, 1))
    assert [op.kind for op in graph.ops] == ["SPLIT"]


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 4), st.integers(0, 2))
def test_any_slice(start, end, step, dim):
    assert_matches_torch(op_case(aten.slice.Tensor, f32(3, 5, 4), dim, start, end, step))
