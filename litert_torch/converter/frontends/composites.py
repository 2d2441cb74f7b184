"""Composite ops whose own code looks at values, while torch.export traces.

Their result's shape does not depend on these values, so that they are traced by
`own_decompositions`, or by a shape alone, in place of PyTorch's code; they stay one op in the
program.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C import DispatchKey
from torch._ops import OpOverload

from litert_torch.converter import own_decompositions

aten = torch.ops.aten


def _ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> torch.Tensor:
    """A tensor of the loss's shape, for log_probs [T, N, C] or [T, C]."""
    return log_probs.new_empty(log_probs.shape[1:-1] if reduction == 0 else ())


_COMPOSITES: dict[OpOverload[Any, Any], Any] = {
    **{
        op: own_decompositions.of(op)
        for op in (aten.corrcoef.default, aten.cov.default, aten.narrow.Tensor)
    },
    aten.ctc_loss.IntList: _ctc_loss,
    aten.ctc_loss.Tensor: _ctc_loss,
}
_KEY = DispatchKey.CompositeImplicitAutograd


@contextmanager
def traceable_composites() -> Iterator[None]:
    """Inside the block, tracing these ops does not read tensors; eager runs as ever."""
    for op, traced in _COMPOSITES.items():
        op.py_kernels[_KEY] = traced
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op in _COMPOSITES:
            op.py_kernels.pop(_KEY, None)
            op._dispatch_cache.clear()
