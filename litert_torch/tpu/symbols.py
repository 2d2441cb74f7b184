"""PyTorch's symbolic sizes as those of `jax.export`."""

from collections.abc import Mapping
from typing import Any

import torch
from jax.core import max_dim, min_dim
from jax.export import is_symbolic_dim
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from litert_torch.errors import UnsupportedCaseError

Symbols = Mapping[Any, Any]
"""A sympy symbol to a jax symbolic dimension, or to an array for a value read by `.item()`."""


class _OnDimensions(PythonReferenceAnalysis):
    """Evaluates torch's size expressions on symbolic dimensions."""

    @staticmethod
    def maximum(a: Any, b: Any) -> Any:
        return max_dim(a, b) if is_symbolic_dim(a) or is_symbolic_dim(b) else max(a, b)

    @staticmethod
    def minimum(a: Any, b: Any) -> Any:
        return min_dim(a, b) if is_symbolic_dim(a) or is_symbolic_dim(b) else min(a, b)


def to_dimension(size: Any, symbols: Symbols) -> Any:
    """A SymInt, SymFloat or SymBool as a number, a symbolic dimension or an array.

    Anything else is returned as it is.
    """
    if not isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return size
    return evaluate(size.node.expr, symbols)


def evaluate(expression: Any, symbols: Symbols) -> Any:
    """A sympy expression over `symbols`.

    Raises:
        UnsupportedCaseError: a symbol comes from the data.
    """
    unknown = expression.free_symbols - symbols.keys()
    if unknown:
        raise UnsupportedCaseError(
            f"the size {expression} depends on the data ({', '.join(map(str, unknown))}); "
            "XLA needs sizes that follow from those of the inputs"
        )
    return sympy_interp(_OnDimensions, dict(symbols), expression)


def shape_of(fake: torch.Tensor, symbols: Symbols) -> tuple[Any, ...]:
    """The shape of a fake tensor, with jax's symbolic dimensions."""
    return tuple(to_dimension(s, symbols) for s in fake.shape)
