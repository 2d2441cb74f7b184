"""Ops of object detectors in a form that a file can hold: with results of fixed size.

torchvision's `nms` gives as many boxes as the data decides, which no file can express.
"""

import torch

from litert_torch.converter.fixed_size_nms import fixed_size_nms


def nms(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    iou_threshold: float,
    max_output_size: int,
    score_threshold: float = float("-inf"),
) -> tuple[torch.Tensor, torch.Tensor]:
    """The boxes that torchvision.ops.nms keeps, padded to a fixed number.

        indices, count = litert_torch.detection.nms(boxes, scores, 0.5, max_output_size=100)
        is_box = torch.arange(100) < count
        boxes = torch.where(is_box[:, None], boxes[indices], 0)

    Args:
        boxes: float [N, 4], two opposite corners each.
        scores: float [N].
        iou_threshold: Boxes that overlap a better one by more are dropped.
        max_output_size: How many boxes the result has room for.
        score_threshold: Boxes with this score or less are dropped.

    Returns:
        int64 [max_output_size] indices of boxes, best first, then zeros; and an int64 scalar, how
        many of them are boxes.
    """
    indices, count = fixed_size_nms(boxes, scores, iou_threshold, max_output_size, score_threshold)
    return indices, count


__all__ = ["nms"]
