"""Channel-last inputs and outputs around a channel-first module."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from litert_torch.errors import InvalidInputError


class ChannelLastIO(nn.Module):
    """`wrapped`, with the named inputs and outputs in (N, ..., C) instead of (N, C, ...).

    Attributes:
        wrapped: The module inside.
    """

    def __init__(self, wrapped: nn.Module, args: Sequence[int], outputs: Sequence[int]) -> None:
        super().__init__()
        self.wrapped = wrapped
        self._args = tuple(args)
        self._outputs = tuple(outputs)
        self.training = wrapped.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What `wrapped` returns, with the chosen tensors re-laid out."""
        given = _each(list(args), self._args, _to_channel_first, "positional input")
        results = self.wrapped(*given, **kwargs)
        if not isinstance(results, (list, tuple)):
            return _each([results], self._outputs, _to_channel_last, "output")[0]
        changed = _each(list(results), self._outputs, _to_channel_last, "output")
        if hasattr(results, "_make"):  # a named tuple
            return results._make(changed)
        return type(results)(changed)


def to_channel_last_io(
    module: nn.Module, args: Sequence[int] | None = None, outputs: Sequence[int] | None = None
) -> nn.Module:
    """A module that computes as `module` does, with channel-last inputs and outputs.

    Cameras and image decoders give (N, H, W, C), the layout that LiteRT computes in. With it at the
    border too, the converted file holds no transposes for these tensors.

    Args:
        module: A module of channel-first tensors, as PyTorch has them.
        args: Indices of the positional inputs that become (N, ..., C); rank 3 or more.
        outputs: Indices of the outputs (0 where there is one) that become (N, ..., C).

    Raises:
        InvalidInputError: when the module is called and an index is out of range, or names
            something that is not a tensor of rank 3 or more (also a ValueError).
    """
    return ChannelLastIO(module, args or (), outputs or ())


def _each(values: list[Any], indices: Sequence[int], change: Any, what: str) -> list[Any]:
    for i in indices:
        if not -len(values) <= i < len(values):
            raise InvalidInputError(
                f"to_channel_last_io: there is no {what} {i}; there are {len(values)}"
            )
        x = values[i]
        if not isinstance(x, torch.Tensor) or x.ndim < 3:
            found = f"rank {x.ndim}" if isinstance(x, torch.Tensor) else type(x).__name__
            raise InvalidInputError(
                f"to_channel_last_io: {what} {i} must be a tensor of rank 3 or more, not {found}"
            )
        values[i] = change(x)
    return values


def _to_channel_first(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, x.ndim - 1, *range(1, x.ndim - 1))


def _to_channel_last(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, *range(2, x.ndim), 1)
