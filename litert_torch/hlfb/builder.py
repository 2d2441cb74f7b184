"""Marks the tensors where a composite begins and ends."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

import torch

from litert_torch.converter import composites
from litert_torch.errors import InvalidInputError

Attribute = int | float | bool | str | Sequence[int] | Sequence[float] | Sequence[bool]


@torch._dynamo.assume_constant_result  # type: ignore[untyped-decorator]
def _unique() -> str:
    return uuid.uuid4().hex


@torch._dynamo.assume_constant_result  # type: ignore[untyped-decorator]
def _encoded(attr: dict[str, Attribute] | None) -> str:
    for key, value in (attr or {}).items():
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        kinds = {type(item) for item in items}
        if not isinstance(key, str) or len(kinds) > 1 or not kinds <= {int, float, bool, str}:
            raise InvalidInputError(
                f"composite attribute {key!r} must be a str, int, float or bool, "
                f"or a list of one of these, not {value!r}"
            )
    return json.dumps(attr or {})


class StableHLOCompositeBuilder:
    """One composite: call `mark_inputs` once, compute, call `mark_outputs` once.

    Args:
        name: What delegates know the op by, as "odml.rms_norm".
        attr: Attributes for the delegate.

    Raises:
        InvalidInputError: an attribute is of another type than listed (also a ValueError).
    """

    def __init__(self, name: str, attr: dict[str, Attribute] | None = None) -> None:
        self.name = name
        self.attr = attr
        self.id = _unique()
        self._attributes = _encoded(attr)

    def mark_inputs(self, *tensors: torch.Tensor) -> Any:
        """The tensors to compute with in place of those given: one, or a tuple of them.

        The composite may read nothing else that depends on the model's inputs.
        """
        return self._mark(tensors, is_input=True)

    def mark_outputs(self, *tensors: torch.Tensor) -> Any:
        """The tensors to go on with in place of those given: one, or a tuple of them."""
        return self._mark(tensors, is_input=False)

    def _mark(self, tensors: tuple[torch.Tensor, ...], *, is_input: bool) -> Any:
        for x in tensors:
            if not isinstance(x, torch.Tensor):
                raise InvalidInputError(f"only tensors can be marked, not {type(x).__name__}")
        marked = [
            composites.mark_tensor(x, self.name, i, self.id, is_input, self._attributes)
            for i, x in enumerate(tensors)
        ]
        return marked[0] if len(marked) == 1 else tuple(marked)
