"""Convolutions of one to three axes, in all the ways that padding can be said."""

import pytest
import torch

from tests.op_case import assert_matches_torch, f32, op_case

aten = torch.ops.aten


def w(*shape):
    return f32(*shape).flip(0) * 0.3


def convolution(x, weight, stride, padding, dilation, groups=1, bias=None):
    args = (stride, padding, dilation, False, [0] * len(stride), groups)
    return op_case(aten.convolution.default, x, weight, bias, *args)


CASES = [
    op_case(aten.conv1d.default, f32(2, 3, 11), w(5, 3, 4), f32(5)),
    op_case(aten.conv1d.default, f32(2, 3, 11), w(5, 3, 3), None, [2], [2], [2]),
    op_case(aten.conv1d.default, f32(3, 11), w(4, 3, 3), f32(4), [1], [1]),
    op_case(aten.conv1d.default, f32(2, 6, 9), w(6, 1, 3), f32(6), [1], [1], [1], 6),
    op_case(aten.conv1d.padding, f32(2, 3, 11), w(5, 3, 4), f32(5), [1], "same"),
    op_case(aten.conv1d.padding, f32(2, 3, 11), w(5, 3, 4), f32(5), [3], "valid"),
    op_case(aten.conv2d.default, f32(2, 3, 7, 9), w(5, 3, 3, 3), f32(5)),
    op_case(aten.conv2d.default, f32(2, 3, 7, 9), w(5, 3, 1, 1), f32(5)),
    op_case(aten.conv2d.default, f32(2, 3, 7, 9), w(5, 3, 3, 3), f32(5), [1, 1], [1, 1]),
    op_case(aten.conv2d.default, f32(1, 3, 8, 10), w(5, 3, 3, 3), None, [2, 2], [1, 1]),
    op_case(aten.conv2d.default, f32(1, 3, 7, 9), w(5, 3, 3, 3), None, [2, 2], [1, 1]),
    op_case(aten.conv2d.default, f32(1, 4, 9, 8), w(8, 2, 3, 3), f32(8), [1, 2], [2, 0], [3, 1], 2),
    op_case(aten.conv2d.default, f32(3, 7, 9), w(5, 3, 2, 3), f32(5), [2, 1], [0, 1]),
    op_case(
        aten.conv2d.default, f32(1, 4, 9, 8), w(12, 1, 3, 3), f32(12), [1, 1], [0, 0], [1, 1], 4
    ),
    op_case(aten.conv2d.default, f32(1, 4, 9, 8), w(4, 1, 5, 5), f32(4), [2, 2], [2, 2], [1, 1], 4),
    op_case(aten.conv2d.default, f32(1, 4, 9, 8), w(4, 1, 3, 3), None, [1, 1], [2, 2], [2, 2], 4),
    op_case(aten.conv2d.default, f32(2, 9, 6, 5), w(6, 3, 3, 3), f32(6), [1, 1], [1, 1], [1, 1], 3),
    op_case(aten.conv2d.default, f32(2, 1, 6, 5), w(4, 1, 3, 3), f32(4), [1, 1], [1, 1]),
    op_case(aten.conv2d.padding, f32(1, 4, 9, 8), w(8, 4, 4, 2), f32(8), [1, 1], "same"),
    op_case(aten.conv2d.padding, f32(4, 9, 8), w(8, 4, 4, 2), f32(8), [1, 1], "same", [2, 3]),
    op_case(
        aten.conv2d.padding, f32(1, 4, 9, 8), w(8, 2, 3, 2), f32(8), [2, 1], "valid", [1, 1], 2
    ),
    op_case(
        aten.conv3d.default, f32(1, 4, 4, 5, 6), w(3, 4, 2, 3, 3), f32(3), [1, 2, 1], [0, 1, 1]
    ),
    op_case(
        aten.conv3d.default, f32(4, 4, 5, 6), w(6, 2, 2, 3, 3), None, [1] * 3, [1] * 3, [1, 2, 1], 2
    ),
    op_case(aten.conv3d.padding, f32(2, 3, 4, 5, 6), w(3, 3, 2, 3, 4), f32(3), [1] * 3, "same"),
    op_case(
        aten.conv3d.default,
        f32(1, 4, 9, 5, 6),
        w(8, 1, 3, 3, 2),
        f32(8),
        [2] * 3,
        [1] * 3,
        [1] * 3,
        4,
    ),
    op_case(
        aten.conv3d.default,
        f32(2, 4, 8, 5, 6),
        w(6, 2, 2, 1, 1),
        f32(6),
        [3, 1, 1],
        [0] * 3,
        [2, 1, 1],
        2,
    ),
    op_case(aten.conv3d.default, f32(2, 3, 4, 5, 6), w(4, 3, 1, 3, 3), None, [2, 1, 1], [1, 0, 0]),
    convolution(f32(2, 3, 11), w(5, 3, 4), [2], [1], [1]),
    convolution(f32(2, 4, 7, 9), w(6, 2, 3, 2), [2, 1], [1, 0], [1, 2], groups=2, bias=f32(6)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)
