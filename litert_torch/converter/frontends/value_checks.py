"""Checks of values in a model's code, which torch.export cannot trace and a file does not make.

`if torch.any(x < 0): raise ValueError(...)` and `assert torch.isfinite(x).all()` look at numbers
that tracing does not have. They are passed: the model is converted as for inputs that it accepts.
Any other branch on a tensor's value is refused by torch.export, as it should be.
"""

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch
from torch._subclasses.fake_tensor import FakeTensor


@contextmanager
def passed_value_checks() -> Iterator[None]:
    """Inside the block, a fake tensor's truth is what lets a check that only raises pass."""
    original = torch.Tensor.__bool__

    def truth(tensor: torch.Tensor) -> bool:
        passing = _passing(sys._getframe(1)) if isinstance(tensor, FakeTensor) else None
        return original(tensor) if passing is None else passing

    torch.Tensor.__bool__ = truth  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del torch.Tensor.__bool__


def _passing(frame: FrameType) -> bool | None:
    """The truth with which the check at this line passes; None where there is no check."""
    return _checks(frame.f_code.co_filename).get(frame.f_lineno)


@functools.lru_cache(maxsize=64)
def _checks(path: str) -> dict[int, bool]:
    """For each line of a file that is the test of a check: the truth that passes it."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return {}
    found: dict[int, bool] = {}
    for node in ast.walk(tree):
        passing = _truth_that_passes(node)
        if passing is not None:
            test = node.test  # type: ignore[attr-defined]
            found.update(dict.fromkeys(range(test.lineno, (test.end_lineno or 0) + 1), passing))
    return found


def _truth_that_passes(node: ast.AST) -> bool | None:
    if isinstance(node, ast.Assert):
        passes = True
    elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and not node.orelse:
        passes = False
    else:
        return None
    test = node.test
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, passes = test.operand, not passes
    return None if isinstance(test, (ast.BoolOp, ast.IfExp)) else passes
