"""Interpolation: odd sizes, ratios that are not whole, scale factors other than the ratio."""

import pytest
import torch
import torch.nn.functional as F

from tests.op_case import assert_matches_torch, f32, integers, op_case

aten = torch.ops.aten
bilinear = aten.upsample_bilinear2d.vec
nearest = aten.upsample_nearest2d.vec
exact = aten._upsample_nearest_exact2d.vec
bicubic = aten.upsample_bicubic2d.vec
x = f32(2, 3, 11, 13)
video = f32(1, 2, 3, 5, 4)

CASES = [
    op_case(bilinear, x, [22, 39], False, None),
    op_case(bilinear, x, [7, 5], False, None),
    op_case(bilinear, x, [17, 20], False, None),
    op_case(bilinear, x, [17, 20], True, None),
    op_case(bilinear, x, [7, 5], True, None),
    op_case(bilinear, x, [1, 1], True, None),
    op_case(bilinear, x, [1, 1], False, None),
    op_case(bilinear, x, [11, 20], False, None),
    op_case(bilinear, f32(1, 3, 1, 1), [5, 4], False, None),
    op_case(bilinear, f32(1, 3, 1, 1), [5, 4], True, None),
    op_case(bilinear, x, None, False, [2.0, 2.0]),
    op_case(bilinear, x, None, True, [2.0, 3.0]),
    op_case(bilinear, x, None, False, [1.5, 0.7]),
    op_case(bilinear, x, None, False, [1.3, 1.0]),
    op_case(aten.upsample_bilinear2d.default, x, [16, 9], False, 1.5, 0.7),
    op_case(aten.upsample_bilinear2d.default, x, [16, 9], False),
    op_case(aten.upsample_linear1d.vec, f32(2, 3, 7), [12], False, None),
    op_case(aten.upsample_linear1d.vec, f32(2, 3, 7), None, False, [1.6]),
    op_case(aten.upsample_linear1d.default, f32(2, 3, 7), [4], True),
    op_case(aten.upsample_trilinear3d.vec, video, [5, 3, 8], False, None),
    op_case(aten.upsample_trilinear3d.vec, video, None, True, [2.0, 2.0, 2.0]),
    op_case(aten.upsample_trilinear3d.default, video, [4, 7, 6], False, 1.5, 1.5, 1.5),
    op_case(nearest, x, [22, 26], None),
    op_case(nearest, x, [7, 20], None),
    op_case(nearest, x, None, [2.0, 2.0]),
    op_case(nearest, x, None, [1.5, 0.7]),
    op_case(nearest, integers(1, 3, 5, 4, low=0, dtype=torch.uint8), None, [2.0, 3.0]),
    op_case(aten.upsample_nearest2d.default, x, [15, 9], 1.4, 0.7),
    op_case(aten.upsample_nearest1d.vec, f32(2, 3, 7), [12], None),
    op_case(aten.upsample_nearest1d.default, f32(2, 3, 7), [11], 1.6),
    op_case(aten.upsample_nearest3d.vec, video, None, [2.0, 2.0, 1.5]),
    op_case(aten.upsample_nearest3d.default, video, [2, 7, 4]),
    op_case(exact, x, [7, 20], None),
    op_case(exact, x, None, [2.0, 2.0]),
    op_case(exact, x, None, [1.5, 0.7]),
    op_case(aten._upsample_nearest_exact1d.vec, f32(2, 3, 7), [12], None),
    op_case(aten._upsample_nearest_exact3d.vec, video, [5, 3, 8], None),
    op_case(aten._upsample_nearest_exact2d.default, x, [15, 9], 1.4, 0.7),
    op_case(bicubic, x, [14, 9], False, None),
    op_case(bicubic, x, [14, 19], True, None),
    op_case(bicubic, x, None, False, [1.5, 0.7]),
    op_case(aten.upsample_bicubic2d.default, x, [22, 26], False),
    op_case(aten._upsample_bilinear2d_aa.vec, x, [6, 5], False, None),
    op_case(aten._upsample_bilinear2d_aa.default, x, [16, 20], True),
    op_case(aten._upsample_bicubic2d_aa.vec, x, [6, 20], False, None),
    op_case(aten._upsample_bicubic2d_aa.vec, x, None, False, [0.6, 0.7]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


# Every pair of sizes up to here: rounding of coordinates must be PyTorch's.
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("op", [nearest, exact], ids=["nearest", "exact"])
def test_nearest_takes_the_elements_that_torch_takes(op, size):
    for new in (1, 2, 3, 5, 9, 14, 20):
        assert_matches_torch(op_case(op, f32(1, 2, size, size + 1), [new, new + 2], None))


def test_interpolate_through_torch_export():
    def resized(x):
        return F.interpolate(x, scale_factor=(1.5, 0.7), mode="bilinear")

    assert_matches_torch(op_case(resized, x), export=True)
