"""Sizes that are only known when the model runs.

A shape is a tuple of `int` and `Dim`. A `Dim` is a sympy expression over the named dynamic sizes
of the model's inputs ("batch", "2*seq + 1"). Arithmetic on it stays symbolic; using it where
only a number will do raises `UnsupportedCaseError`, so that a lowering that has not
thought about dynamic sizes fails loudly and is never right for one size only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from litert_torch.errors import UnsupportedCaseError

if TYPE_CHECKING:
    import sympy


class Dim:
    """A symbolic size; equal to another when their expressions are."""

    __slots__ = ("expr",)

    def __init__(self, expr: sympy.Expr) -> None:
        self.expr = expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and bool(self.expr == other.expr)

    def __hash__(self) -> int:
        return hash(self.expr)

    def __repr__(self) -> str:
        return str(self.expr)

    def __int__(self) -> int:
        raise UnsupportedCaseError(
            f"needs a fixed size, but a dimension is dynamic ({self.expr}); "
            "drop it from dynamic_shapes"
        )

    __index__ = __int__
    __bool__ = __int__

    def _compare(self, other: object) -> Any:
        return self.__int__()

    __lt__ = __le__ = __gt__ = __ge__ = _compare

    def __add__(self, other: Size) -> Size:
        return size(self.expr + _expr(other))

    def __sub__(self, other: Size) -> Size:
        return size(self.expr - _expr(other))

    def __rsub__(self, other: Size) -> Size:
        return size(_expr(other) - self.expr)

    def __mul__(self, other: Size) -> Size:
        return size(self.expr * _expr(other))

    def __floordiv__(self, other: Size) -> Size:
        import sympy

        return size(sympy.floor(self.expr / _expr(other)))

    def __mod__(self, other: Size) -> Size:
        import sympy

        return size(sympy.Mod(self.expr, _expr(other)))

    def __neg__(self) -> Size:
        return size(-self.expr)

    __radd__ = __add__
    __rmul__ = __mul__


Size: TypeAlias = int | Dim
Shape: TypeAlias = tuple[Size, ...]


def size(expr: Any) -> Size:
    """A Dim, or an int where the expression is a number."""
    if isinstance(expr, int):
        return expr
    return int(expr) if expr.is_Integer else Dim(expr)


def _expr(value: Size) -> Any:
    return value.expr if isinstance(value, Dim) else value


def is_static(shape: Iterable[Size]) -> bool:
    """Whether every size is a number."""
    return all(isinstance(s, int) for s in shape)


def static(shape: Iterable[Size]) -> tuple[int, ...]:
    """The shape as numbers; raises UnsupportedCaseError where one is dynamic."""
    return tuple(int(s) for s in shape)


def smallest(value: Size, bounds: Mapping[Any, int]) -> int:
    """What a tensor has until its model is resized: symbols are at their bounds, or else 1."""
    if isinstance(value, int):
        return value
    found = value.expr.subs({s: bounds.get(s, 1) for s in value.expr.free_symbols})
    return max(1, int(found)) if found.is_Integer else 1


def numel(shape: Sequence[Size]) -> Size:
    """Number of elements."""
    return math.prod(shape)


def broadcast(*shapes: Sequence[Size]) -> Shape:
    """The shape that numpy-style broadcasting gives; UnsupportedCaseError if there is none."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(_broadcast_size(sizes) for sizes in zip(*padded, strict=True))


def _broadcast_size(sizes: tuple[Size, ...]) -> Size:
    wide = {s for s in sizes if s != 1}
    if len(wide) > 1:
        raise UnsupportedCaseError(f"sizes {sorted(map(str, wide))} do not broadcast")
    return wide.pop() if wide else 1


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are equal; expressions are where they have a value in common.

    Two forms of one size may be equal only for the sizes that the model accepts, which is more than
    sympy can tell. Sizes that differ whatever the symbols are, as 1 and s, are different.
    """
    return len(a) == len(b) and all(map(_may_be_equal, a, b))


_TRIALS = (10007, 5040, 720720)  # for the first symbol: odd, even, divisible by every small number


def _may_be_equal(x: Size, y: Size) -> bool:
    if x == y or (isinstance(x, int) and isinstance(y, int)):
        return x == y
    difference = _expr(x) - _expr(y)
    symbols = sorted(difference.free_symbols, key=str)
    for trial in _TRIALS:
        at = difference.subs({s: trial * (i + 1) for i, s in enumerate(symbols)})
        if at == 0 or not at.is_number:
            return True
    return False
