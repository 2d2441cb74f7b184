"""Ops rewritten as simpler ops where PyTorch's own rewriting needs values, or there is none.

Each is what eager computes, without the checks of values that keep PyTorch's from being traced.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.nn import functional


def cov(
    x: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Covariances [N, N] of N variables with M observations: x [N, M], [M] or a number."""
    rows = x.reshape(1, -1) if x.dim() < 2 else x
    weights = _product(fweights, aweights)
    total: Any = rows.shape[1] if weights is None else weights.sum()
    mean = (rows if weights is None else rows * weights).sum(1) / total
    centred = rows - mean.unsqueeze(1)
    right = centred if weights is None else centred * weights
    if weights is None or aweights is None or correction == 0:
        degrees = total - correction
    else:
        degrees = total - correction * (weights * aweights).sum() / total
    if not isinstance(degrees, Tensor):
        degrees = torch.full((), float(max(degrees, 0)))
    return (centred @ right.mT / degrees.clamp(min=0)).squeeze()


def _product(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else b
    return a * b


def corrcoef(x: Tensor) -> Tensor:
    """Correlations of variables, as `cov` takes them; within -1 and 1."""
    c = cov(x)
    if c.dim() == 0:
        return c / c
    deviation = c.diagonal().sqrt()
    return (c / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1, 1)


def narrow(x: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    """`length` slices from a position that the model computes; from the end where negative."""
    begin = torch.where(start < 0, start + x.shape[dim], start)
    return x.index_select(dim, begin + torch.arange(length))


def linear_cross_entropy(
    x: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    *rest: Any,
) -> tuple[Tensor, ...]:
    """The loss, and three empty tensors for the gradients that a model does not need."""
    logits = functional.linear(x, linear_weight, linear_bias)
    loss = functional.cross_entropy(
        logits,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    return loss, x.new_empty(0, 0), x.new_empty(0, 0), x.new_empty(0)


def linear_cross_entropies(
    x: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    *rest: Any,
) -> Tensor:
    """The loss of each sample."""
    return linear_cross_entropy(
        x, linear_weight, target, linear_bias, weight, "none", ignore_index, 0.0
    )[0]


_BY_NAME: dict[str, Callable[..., Any]] = {
    "aten::corrcoef": corrcoef,
    "aten::cov": cov,
    "aten::narrow.Tensor": narrow,
    "torch_nn::_linear_cross_entropy_batch_chunked": linear_cross_entropy,
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction": linear_cross_entropies,
}
"""By name: some are of libraries that may not be imported."""


def of(op: OpOverload[Any, Any]) -> Callable[..., Any] | None:
    """The function for `op`, or None."""
    return _BY_NAME.get(str(op.name()))  # type: ignore[no-untyped-call]
