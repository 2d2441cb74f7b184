"""torchvision's ops, and non-maximum suppression of fixed size."""

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch import detection
from litert_torch.converter.fixed_size_nms import fixed_size_nms
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, f32, op_case

torchvision = pytest.importorskip("torchvision")
ops = torch.ops.torchvision

ROIS = torch.tensor(
    [
        [0.0, 1, 2, 3, 4],
        [1, 0, 0, 13, 15],
        [1, -4, -5, 2, 1],
        [0, 3, 3, 3.2, 3.1],
        [1, 6, 6, 30, 30],
    ]
)


def _boxes(count):
    corner = f32(count, 2) * 3
    return torch.cat([corner, corner + 2 + f32(count, 2).abs()], 1)


def _offsets(groups):
    """Of a 3x2 kernel over 8x9 pixels: padding 1, strides 2 and 1."""
    return f32(2, groups * 12, 4, 10) * 2


def _strengths(groups):
    return f32(2, groups * 6, 4, 10).sigmoid()


def _deformed(groups, offset_groups, use_mask=True):
    mask = _strengths(offset_groups) if use_mask else torch.zeros(2, 1)
    tensors = (f32(2, 6, 8, 9), f32(12, 6 // groups, 3, 2), _offsets(offset_groups), mask, f32(12))
    return op_case(
        ops.deform_conv2d.default, *tensors, 2, 1, 1, 1, 1, 1, groups, offset_groups, use_mask
    )


CASES = [
    *(
        op_case(ops.roi_align.default, f32(2, 3, 8, 9), ROIS, 0.5, 3, 4, ratio, aligned)
        for ratio in (1, 2, 3)
        for aligned in (False, True)
    ),
    _deformed(1, 1),
    _deformed(1, 1, use_mask=False),
    _deformed(3, 1),
    _deformed(2, 3),
    op_case(fixed_size_nms, _boxes(40), f32(40), 0.4, 30, -100.0),
    op_case(fixed_size_nms, _boxes(40), f32(40), 0.4, 7, 0.1),
    op_case(fixed_size_nms, _boxes(5)[:, [2, 3, 0, 1]], f32(5), 0.1, 5, -100.0),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case):
    assert_matches_torch(case)


def test_fixed_size_nms_keeps_what_torchvision_keeps():
    boxes, scores = _boxes(40), f32(40)
    indices, count = detection.nms(boxes, scores, 0.4, 40)
    want = torchvision.ops.nms(boxes, scores, 0.4)
    assert 1 < len(want) < 40
    assert torch.equal(indices[:count], want)
    assert not indices[count:].any()


class Detector(torch.nn.Module):
    """Boxes of fixed number, those that are none set to zero."""

    def forward(self, boxes, scores):
        indices, count = detection.nms(boxes, scores, 0.4, 12)
        is_box = torch.arange(12) < count
        return torch.where(is_box[:, None], boxes[indices], 0.0), scores[indices] * is_box


def test_a_detector_through_torch_export():
    args = (_boxes(10), f32(10))
    got = litert_torch.convert(Detector().eval(), args)(*(a.numpy() for a in args))
    for g, w in zip(got, Detector()(*args), strict=True):
        np.testing.assert_array_equal(g, w.numpy())
    assert not got[0][-1].any()


class Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


REFUSED = [
    (lambda b, s: b[torchvision.ops.nms(b, s, 0.5)], (_boxes(5), f32(5)), "torchvision::nms"),
    (
        lambda x, r: torchvision.ops.roi_pool(x, r, (3, 4)),
        (f32(2, 3, 8, 9), ROIS),
        "torchvision::roi_pool",
    ),
    (
        lambda x, r: torchvision.ops.roi_align(x, r, (3, 4)),
        (f32(2, 3, 8, 9), ROIS),
        "sampling_ratio",
    ),
]


@pytest.mark.parametrize(("function", "args", "named"), REFUSED, ids=[r[2] for r in REFUSED])
def test_results_of_a_size_that_data_decides_are_refused_with_a_way_out(function, args, named):
    with pytest.raises(UnsupportedCaseError, match=named) as caught:
        litert_torch.convert(Calls(function).eval(), args)
    assert "use" in str(caught.value) or "pass" in str(caught.value)
