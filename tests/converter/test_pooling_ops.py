"""Pools: padding of every kind, ceil_mode, dilation, divisors, sizes that do not divide."""

import math

import pytest
import torch

from tests.op_case import assert_matches_torch, f32, integers, op_case

aten = torch.ops.aten
max1d, max2d, max3d = aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default
avg1d, avg2d, avg3d = aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default
negative = f32(2, 3, 7, 10).abs().neg()
x = f32(2, 3, 7, 10)
video = f32(1, 3, 4, 5, 7)

CASES = [
    op_case(max1d, f32(2, 3, 11), [3]),
    op_case(max1d, f32(3, 11), [3], [2], [1], [1], True),
    op_case(max1d, f32(2, 3, 11), [2], [2], [1], [3]),
    op_case(max2d, x, [2, 2]),
    op_case(max2d, negative, [3, 3], [2, 2], [1, 1]),
    op_case(max2d, negative, [3, 3], [1, 1], [1, 1]),
    op_case(max2d, negative, [3, 2], [2, 3], [1, 0], [1, 1], True),
    op_case(max2d, negative, [2, 2], [3, 3]),
    op_case(max2d, negative[0], [3, 4], [2, 2], [0, 2], [1, 1], True),
    op_case(max2d, negative, [3, 2], [1, 2], [1, 1], [2, 3]),
    op_case(max2d, integers(1, 3, 7, 10, dtype=torch.int64), [3, 3], [2, 2], [1, 1]),
    op_case(max3d, video, [2, 2, 2]),
    op_case(max3d, video.abs().neg(), [3, 2, 3], [2, 1, 2], [1, 0, 1], [1, 1, 1], True),
    op_case(max3d, video[0], [2, 2, 2], [1, 1, 1], [0, 1, 0], [2, 1, 2]),
    op_case(aten.max_pool1d_with_indices.default, f32(2, 3, 11), [3], [2], [1]),
    op_case(aten.max_pool2d_with_indices.default, negative, [3, 2], [2, 3], [1, 0], [1, 1], True),
    op_case(aten.max_pool2d_with_indices.default, x.round(), [3, 3], [1, 1], [1, 1], [2, 1]),
    op_case(aten.max_pool2d_with_indices.default, torch.full((1, 2, 4, 5), -math.inf), 3, 2, 1),
    op_case(aten.max_pool2d_with_indices.default, x, [1, 1]),
    op_case(aten.max_pool3d_with_indices.default, video, [2, 2, 3], [1, 2, 2], [1, 0, 1]),
    op_case(avg1d, f32(2, 3, 11), [3]),
    op_case(avg1d, f32(3, 11), [3], [2], [1], True, False),
    op_case(avg2d, x, [2, 2]),
    op_case(avg2d, x, [3, 3], [2, 2], [1, 1]),
    op_case(avg2d, x, [3, 3], [2, 2], [1, 1], False, False),
    op_case(avg2d, x, [3, 3], [1, 1], [1, 1], False, False),
    op_case(avg2d, x, [3, 4], [2, 3], [1, 2], True),
    op_case(avg2d, x, [3, 4], [2, 3], [1, 2], True, False),
    op_case(avg2d, x[0], [3, 2], [2, 2], [1, 0], False, True, 5),
    op_case(avg2d, x, [2, 2], [3, 3]),
    op_case(avg3d, video, [2, 2, 2]),
    op_case(avg3d, video, [2, 3, 3], [2, 2, 2], [1, 1, 0], True, False),
    op_case(avg3d, video[0], [2, 3, 3], [1, 2, 2], [1, 0, 1], True, True, 7),
    op_case(aten.adaptive_avg_pool1d.default, f32(2, 3, 7), [3]),
    op_case(aten.adaptive_avg_pool1d.default, f32(3, 8), [4]),
    op_case(aten.adaptive_avg_pool2d.default, x, [1, 1]),
    op_case(aten.adaptive_avg_pool2d.default, x[0], [7, 5]),
    op_case(aten.adaptive_avg_pool2d.default, x, [3, 4]),
    op_case(aten.adaptive_avg_pool2d.default, x, [7, 1]),
    op_case(aten.adaptive_avg_pool2d.default, x, [14, 4]),
    op_case(aten._adaptive_avg_pool2d.default, x, [3, 5]),
    op_case(aten.adaptive_avg_pool3d.default, video, [2, 3, 1]),
    op_case(aten._adaptive_avg_pool3d.default, video, [1, 1, 1]),
    op_case(aten.adaptive_max_pool1d.default, f32(2, 3, 7), [3]),
    op_case(aten.adaptive_max_pool2d.default, x, [3, 4]),
    op_case(aten.adaptive_max_pool2d.default, x[0], [7, 2]),
    op_case(aten.adaptive_max_pool2d.default, negative, [1, 1]),
    op_case(aten.adaptive_max_pool3d.default, video, [2, 3, 4]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)
