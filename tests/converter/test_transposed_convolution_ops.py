"""Transposed convolutions: strides, crops, output padding, groups, dilation."""

import pytest
import torch

from tests.op_case import assert_matches_torch, f32, op_case

aten = torch.ops.aten
deconv1d = aten.conv_transpose1d.default
deconv2d = aten.conv_transpose2d.input
deconv3d = aten.conv_transpose3d.input


def w(*shape):
    return f32(*shape).flip(0) * 0.3


CASES = [
    op_case(deconv1d, f32(2, 3, 5), w(3, 4, 4), f32(4), [2], [1]),
    op_case(deconv1d, f32(3, 5), w(3, 4, 5), None, [3], [1], [2]),
    op_case(deconv1d, f32(2, 6, 5), w(6, 1, 3), f32(6), [2], [1], [1], 6),
    op_case(deconv1d, f32(2, 3, 5), w(3, 4, 3), f32(4), [1], [1]),
    op_case(deconv2d, f32(2, 3, 5, 7), w(3, 4, 3, 3), f32(4)),
    op_case(deconv2d, f32(2, 3, 5, 7), w(3, 4, 2, 2), f32(4), [2, 2]),
    op_case(deconv2d, f32(2, 3, 5, 7), w(3, 4, 4, 4), f32(4), [2, 2], [1, 1]),
    op_case(deconv2d, f32(2, 3, 5, 7), w(3, 4, 3, 3), f32(4), [2, 2], [1, 1], [1, 1]),
    op_case(deconv2d, f32(1, 3, 5, 7), w(3, 4, 3, 3), None, [2, 2], [1, 1], [0, 1]),
    op_case(deconv2d, f32(1, 3, 5, 7), w(3, 4, 3, 3), f32(4), [2, 3], [0, 0], [1, 2]),
    op_case(deconv2d, f32(1, 3, 5, 7), w(3, 4, 1, 2), f32(4), [3, 3], [0, 0], [1, 2]),
    op_case(deconv2d, f32(3, 5, 7), w(3, 4, 3, 2), f32(4), [1, 1], [1, 0]),
    op_case(deconv2d, f32(1, 3, 5, 7), w(3, 4, 2, 3), f32(4), [1, 1], [1, 2]),
    op_case(deconv2d, f32(1, 3, 5, 7), w(3, 4, 2, 2), f32(4), [1, 1], [2, 2]),
    op_case(deconv2d, f32(1, 3, 5, 7), w(3, 4, 3, 2), f32(4), [2, 1], [1, 0], [1, 0], 1, [2, 3]),
    op_case(deconv2d, f32(1, 6, 3, 11), w(6, 2, 1, 7), f32(4), [1, 3], [0, 3], [0, 0], 2),
    op_case(deconv2d, f32(1, 8, 3, 7), w(8, 1, 5, 4), f32(8), [3, 2], [1, 1], [0, 0], 8),
    op_case(deconv2d, f32(2, 8, 3, 7), w(8, 2, 3, 2), f32(16), [2, 2], [1, 1], [1, 0], 8),
    op_case(deconv2d, f32(2, 12, 3, 4), w(12, 3, 3, 2), None, [2, 2], [2, 0], [1, 1], 6, [2, 1]),
    op_case(deconv2d, f32(2, 6, 3, 4), w(6, 2, 3, 2), None, [1, 1], [1, 0], [0, 0], 2),
    op_case(deconv3d, f32(1, 3, 2, 3, 4), w(3, 4, 2, 3, 3), None, [2, 2, 1], [0, 1, 1], [1, 1, 0]),
    op_case(deconv3d, f32(4, 2, 3, 4), w(4, 2, 2, 3, 3), None, [1, 2, 2], [1, 0, 1], [0, 1, 0], 2),
    op_case(
        aten.convolution.default,
        f32(2, 3, 5, 7),
        w(3, 4, 3, 3),
        f32(4),
        [2, 2],
        [1, 1],
        [1, 1],
        True,
        [1, 1],
        1,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)
