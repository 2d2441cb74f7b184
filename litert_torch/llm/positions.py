"""What models compute in Python from the number of tokens seen, done by tensors instead.

That number is known at run time only. Most models add it to positions; some make a range, a mask
of ones or a slice from it, which would fix it when the model is traced.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class RunTimePositions(TorchFunctionMode):
    """Within the block, `start` may be where a range or a slice of `tokens` positions begins.

    Args:
        start: Tokens seen before, an int64 scalar: the very tensor that the cache gives the model.
        tokens: How many tokens the model reads now.
        length: How many the cache holds: as long is a mask of ones for all seen and read.
    """

    def __init__(self, start: torch.Tensor, tokens: int, length: int | None) -> None:
        super().__init__()
        self.start, self.tokens, self.length = start, tokens, length

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Replace what would read `start`'s value."""
        kwargs = kwargs or {}
        if func is torch.arange and len(args) >= 2 and args[0] is self.start:
            return self._range().to(kwargs.get("dtype") or torch.int64)
        if func is torch.ones and self.length is not None:
            args = tuple(self._sizes(a) for a in args)
        if func is torch.Tensor.__getitem__:
            return self._item(*args)
        return func(*args, **kwargs)

    def _range(self) -> torch.Tensor:
        return self.start + torch.arange(self.tokens)

    def _sizes(self, sizes: Any) -> Any:
        if isinstance(sizes, torch.Tensor) and sizes.ndim == 0:
            return self.length
        return tuple(map(self._sizes, sizes)) if isinstance(sizes, (tuple, list)) else sizes

    def _item(self, x: torch.Tensor, index: Any) -> torch.Tensor:
        parts = index if isinstance(index, tuple) else (index,)
        at = [isinstance(p, slice) and p.start is self.start for p in parts]
        if sum(at) != 1 or any(p is Ellipsis or p is None for p in parts):
            return x[index]
        axis = at.index(True)
        rest = tuple(slice(None) if own else p for own, p in zip(at, parts, strict=True))
        return x.index_select(axis, self._range())[rest]
