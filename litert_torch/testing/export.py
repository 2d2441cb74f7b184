"""torch.export of functions whose arguments are not all tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree


class _TensorsOnly(torch.nn.Module):
    """Calls a function with some tensors in place of those among its arguments."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        super().__init__()
        self.function = function
        self._leaves = leaves
        self._spec = spec

    def forward(self, *tensors: torch.Tensor) -> Any:
        left = iter(tensors)
        leaves = [next(left) if isinstance(a, torch.Tensor) else a for a in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self.function(*args, **kwargs)


def export_with_tensor_inputs_only(
    model: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: dict[str, Any] | Sequence[Any] | None = None,
) -> torch.export.ExportedProgram:
    """Export `model(*args, **kwargs)` with the tensors as inputs and all else as constants.

    Args:
        model: A module or any function that torch.export can trace.
        args: Positional arguments, nested or not.
        kwargs: Keyword arguments.
        dynamic_shapes: One entry for each tensor, in the order of the flattened arguments.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
    return torch.export.export(
        _TensorsOnly(model, leaves, spec).eval(),
        tensors,
        dynamic_shapes=(tuple(dynamic_shapes),) if dynamic_shapes else None,
    )
