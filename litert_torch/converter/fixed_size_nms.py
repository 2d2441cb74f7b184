"""Non-maximum suppression with a result of fixed size, as a PyTorch op that LiteRT has too."""

from typing import Any

import torch

_library: Any = torch.library.Library("litert_torch", "FRAGMENT")  # type: ignore[no-untyped-call]
_library.define(
    "fixed_size_nms(Tensor boxes, Tensor scores, float iou_threshold, int max_output_size, "
    "float score_threshold) -> (Tensor, Tensor)"
)


def _overlaps(boxes: torch.Tensor) -> torch.Tensor:
    """Intersection over union of all pairs of boxes [N, 4]: [N, N]."""
    low = torch.minimum(boxes[:, :2], boxes[:, 2:])
    high = torch.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(1)
    shared = torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)
    intersection = shared.clamp(min=0).prod(2)
    union = area[:, None] + area - intersection
    return torch.where(union > 0, intersection / union, torch.zeros_like(union))


def _run(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    iou_threshold: float,
    max_output_size: int,
    score_threshold: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    overlaps = _overlaps(boxes)
    kept: list[int] = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if len(kept) == max_output_size or scores[i] <= score_threshold:
            break
        if not (overlaps[i, kept] > iou_threshold).any():
            kept.append(i)
    indices = torch.zeros(max_output_size, dtype=torch.int64)
    indices[: len(kept)] = torch.tensor(kept, dtype=torch.int64)
    return indices.to(boxes.device), torch.tensor(len(kept), device=boxes.device)


def _shapes(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    iou_threshold: float,
    max_output_size: int,
    score_threshold: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    indices = boxes.new_empty((max_output_size,), dtype=torch.int64)
    return indices, boxes.new_empty((), dtype=torch.int64)


_library.impl("fixed_size_nms", _run, "CompositeExplicitAutograd")
_library.impl("fixed_size_nms", _shapes, "Meta")

fixed_size_nms = torch.ops.litert_torch.fixed_size_nms.default
