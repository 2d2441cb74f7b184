"""Ops of torchvision: boxes chosen, regions pooled."""

from typing import NoReturn

import numpy as np

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.fixed_size_nms import fixed_size_nms
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.point_sampling import (
    FLOAT32,
    Tap,
    clipped,
    interpolated,
    linear_taps,
    number,
    pixels_by_row,
    shifted,
)
from litert_torch.errors import UnsupportedCaseError

_MOST_PIXELS = 1 << 24  # indices are computed in float32


@lowers(fixed_size_nms)
def nms_of_fixed_size(
    g: Graph,
    boxes: Value,
    scores: Value,
    iou_threshold: float,
    max_output_size: int,
    score_threshold: float,
) -> list[Value]:
    """NON_MAX_SUPPRESSION_V4."""
    results = tfl.non_max_suppression_v4(
        g,
        boxes,
        scores,
        count=max_output_size,
        iou_threshold=iou_threshold,
        score_threshold=score_threshold,
    )
    return [tfl.cast(g, v, DType.INT64) for v in results]


@lowers.when_loaded("torchvision::nms")
def nms(g: Graph, dets: Value, scores: Value, iou_threshold: float) -> NoReturn:
    """Refused."""
    raise UnsupportedCaseError(
        "torchvision::nms gives as many boxes as the data decides, and a file has fixed sizes: "
        "use litert_torch.detection.nms(boxes, scores, iou_threshold, max_output_size), whose "
        "result is padded, or return boxes and scores and call nms outside the model"
    )


@lowers.when_loaded("torchvision::roi_pool")
def roi_pool(
    g: Graph,
    x: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: Size,
    pooled_width: Size,
) -> NoReturn:
    """Refused."""
    raise UnsupportedCaseError(
        "torchvision::roi_pool takes maxima over as many pixels as the data decides: use "
        "torchvision.ops.roi_align with a sampling_ratio of 1 or more"
    )


@lowers.when_loaded("torchvision::roi_align")
def roi_align(
    g: Graph,
    x: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: Size,
    pooled_width: Size,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    """Means over grids of points in regions [K, 5] of images [N, C, H, W]: [K, C, ph, pw]."""
    if sampling_ratio <= 0:
        raise UnsupportedCaseError(
            "torchvision::roi_align with an adaptive number of points: pass sampling_ratio=2"
        )
    sizes = dims.static((x.shape[0], *x.shape[2:]))
    if dims.numel(sizes) > _MOST_PIXELS:
        raise UnsupportedCaseError("pools from images of more than 2**24 pixels")
    pooled = dims.static((pooled_height, pooled_width))
    column = [tfl.slice(g, rois, (0, i), (rois.shape[0], 1)) for i in range(5)]
    taps = [[Tap(tfl.expand_dims(g, column[0], -1))]]
    for axis, (low, high) in enumerate(((2, 4), (1, 3))):
        ends = [tfl.mul(g, column[i], number(spatial_scale)) for i in (low, high)]
        ends = [shifted(g, v, -0.5 if aligned else 0) for v in ends]
        length = tfl.sub(g, ends[1], ends[0])
        if not aligned:
            length = tfl.maximum(g, length, number(1))
        points = _points(g, ends[0], length, pooled[axis], sampling_ratio)
        taps.append(_taps_of_axis(g, points, sizes[1 + axis], axis))
    pixels = pixels_by_row(g, x)
    flat = tfl.reshape(g, pixels, (dims.numel(sizes), x.shape[1]))
    y = interpolated(g, flat, sizes, taps, batched=False)
    window = (sampling_ratio, sampling_ratio)
    if sampling_ratio > 1:
        y = tfl.average_pool_2d(g, y, kernel=window, stride=window)
    return tfl.transpose(g, y, (0, 3, 1, 2))


def _points(g: Graph, start: Value, length: Value, pooled: int, ratio: int) -> Value:
    """Positions along one axis: [K, pooled * ratio]."""
    steps = (np.arange(pooled * ratio) + 0.5) / (pooled * ratio)
    return tfl.add(g, tfl.mul(g, length, const(steps[None], FLOAT32)), start)


def _taps_of_axis(g: Graph, points: Value, size: int, axis: int) -> list[Tap]:
    """Two pixels for each position; one more than a pixel outside counts as zero."""
    line = tfl.expand_dims(g, points, 2 if axis == 0 else 1)
    inside = tfl.logical_and(
        g, tfl.greater_equal(g, line, number(-1)), tfl.less_equal(g, line, number(size))
    )
    counts = tfl.cast(g, inside, FLOAT32)
    taps = linear_taps(g, clipped(g, line, 0, size - 1), size - 1)
    return [Tap(t.index, tfl.mul(g, t.weight, counts)) for t in taps if t.weight is not None]
