import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from hypothesis import given, settings
from hypothesis import strategies as st

import litert_torch
from litert_torch.converter.ir import TensorType
from litert_torch.converter.lowerings.windows import as_strided
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, bools, f32, graph_of, integers, op_case, run

aten = torch.ops.aten

CASES = [
    op_case(aten.pixel_shuffle.default, f32(2, 12, 3, 5), 2),
    op_case(aten.pixel_shuffle.default, f32(1, 9, 2, 3), 3),
    op_case(aten.pixel_shuffle.default, f32(8, 3, 5), 2),
    op_case(aten.pixel_shuffle.default, bools(1, 8, 3, 2), 2),
    op_case(aten.pixel_shuffle.default, integers(1, 8, 3, 2), 2),
    op_case(aten.pixel_unshuffle.default, f32(2, 3, 4, 6), 2),
    op_case(aten.pixel_unshuffle.default, f32(2, 1, 3, 6), 3),
    op_case(aten.pixel_unshuffle.default, integers(2, 2, 4, 6, dtype=torch.int16), 2),
    op_case(aten.channel_shuffle.default, f32(2, 6, 3, 5), 2),
    op_case(aten.native_channel_shuffle.default, f32(2, 6, 3, 5), 3),
    op_case(aten.roll.default, f32(3, 5), [2, -1], [0, 1]),
    op_case(aten.roll.default, f32(3, 5), [7]),
    op_case(aten.roll.default, bools(3, 5), [8], [-1]),
    op_case(aten.flip.default, f32(3, 5, 2), [0, 2]),
    op_case(aten.flip.default, integers(3, 5, 2), [-2, -1]),
    op_case(aten.flip.default, f32(1, 5), [0]),
    op_case(aten.fliplr.default, f32(3, 5, 2)),
    op_case(aten.flipud.default, f32(3, 5)),
    op_case(aten.rot90.default, f32(3, 5)),
    op_case(aten.rot90.default, f32(3, 5, 2), -1, [0, 2]),
    op_case(aten.rot90.default, f32(3, 5, 2), 2, [1, 2]),
    op_case(aten.rot90.default, f32(3, 5, 2), 3, [2, 0]),
    op_case(aten.diagonal.default, f32(3, 5)),
    op_case(aten.diagonal.default, f32(2, 3, 5), 1, -1, 0),
    op_case(aten.diagonal.default, f32(4, 3, 2), -2),
    op_case(aten.diag_embed.default, f32(2, 3)),
    op_case(aten.diag_embed.default, f32(2, 3), 2),
    op_case(aten.diag_embed.default, f32(3), -1),
    op_case(aten.diag_embed.default, integers(2, 3), 1, 0, 2),
    op_case(aten.diag_embed.default, f32(2, 3), 1, -1, 0),
    op_case(aten.diag.default, f32(4), -2),
    op_case(aten.diag.default, f32(4, 3), 1),
    op_case(aten.tril.default, f32(3, 5), 1),
    op_case(aten.tril.default, f32(2, 5, 3), -2),
    op_case(aten.triu.default, f32(2, 5, 3), -1),
    op_case(aten.triu.default, bools(4, 4), 1),
    op_case(aten.triu.default, integers(4, 4, dtype=torch.int8), 0),
    op_case(aten.as_strided.default, f32(4, 5), [3, 2], [5, 2], 1),
    op_case(aten.as_strided.default, f32(12), [5, 4], [2, 1]),
    op_case(aten.unfold.default, f32(2, 7), 1, 3, 2),
    op_case(aten.unfold.default, f32(2, 7, 3), 1, 2, 2),
    op_case(aten.unfold.default, bools(7, 3), 0, 3, 1),
    op_case(aten.unfold.default, f32(2, 8, 9), -1, 4, 4),
    op_case(aten.im2col.default, f32(2, 3, 5, 6), [3, 2], [1, 1], [1, 0], [1, 1]),
    op_case(aten.im2col.default, f32(2, 3, 7, 9), [2, 3], [2, 1], [1, 2], [2, 3]),
    op_case(aten.im2col.default, f32(2, 3, 6, 8), [2, 4], [1, 1], [0, 0], [2, 4]),
    op_case(aten.im2col.default, f32(3, 5, 6), [3, 3], [1, 1], [0, 0], [1, 1]),
    op_case(aten.col2im.default, f32(2, 12, 25), [5, 6], [3, 2], [1, 1], [1, 0], [1, 1]),
    op_case(aten.col2im.default, f32(2, 6, 9), [7, 6], [3, 2], [1, 1], [1, 0], [3, 2]),
    op_case(aten.col2im.default, f32(8, 9), [5, 8], [2, 2], [2, 1], [1, 0], [2, 3]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def test_infinities_outside_the_triangle_go():
    assert_matches_torch(op_case(aten.tril.default, f32(4, 4) / 0, 0))


def test_pixel_shuffle_reorders_the_filters_of_its_convolution():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.PixelShuffle(2)).eval()
    x = f32(1, 3, 6, 5)
    content = litert_torch.convert(model, (x,)).model_content()
    (got,) = run(content, x)
    torch.testing.assert_close(torch.from_numpy(got), model(x).detach(), rtol=1e-4, atol=1e-5)
    kinds = [op["op_name"] for op in Interpreter(model_content=content)._get_ops_details()]
    assert sorted(set(kinds) - {"DELEGATE"}) == ["CONV_2D", "DEPTH_TO_SPACE", "TRANSPOSE"]


def test_strides_of_a_computed_tensor_are_refused():
    graph = graph_of(op_case(aten.as_strided.default, f32(4), [2], [2]))
    computed = graph.emit("RELU", [graph.inputs[0]], TensorType((4,), graph.inputs[0].dtype))
    with pytest.raises(UnsupportedCaseError, match="slicing or unfold"):
        as_strided(graph, computed, [2], [2])


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.permutations(range(5)))
def test_any_permutation(order):
    assert_matches_torch(op_case(aten.permute.default, f32(2, 3, 1, 4, 5), list(order)))
