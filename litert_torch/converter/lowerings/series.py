"""Sums of Chebyshev series, by which functions without a LiteRT op are approximated."""

from collections.abc import Callable, Sequence

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.converter.lowerings.promotion import as_float

Function = Callable[[Graph, Value], Value]


def chebyshev_sum(g: Graph, y: Value, coefficients: Sequence[float]) -> Value:
    """coefficients[k] * T_k(y) summed by Clenshaw's recurrence; y of any shape in [-1, 1]."""
    twice = tfl.mul(g, y, f32(2.0))
    *lower, highest = coefficients
    last, before = tfl.add(g, tfl.mul(g, y, f32(0.0)), f32(highest)), None
    for k in range(len(lower) - 1, -1, -1):
        step = tfl.mul(g, twice if k else y, last)
        total = tfl.add(g, step, f32(lower[k]))
        last, before = total if before is None else tfl.sub(g, total, before), last
    return last


def linear(g: Graph, x: Value, scale: float, offset: float) -> Value:
    """x * scale + offset."""
    return tfl.add(g, tfl.mul(g, x, f32(scale)), f32(offset))


def reciprocal(g: Graph, x: Value, numerator: float = 1.0) -> Value:
    """Numerator / x."""
    return tfl.div(g, f32(numerator), x)


def floats(function: Function) -> Function:
    """`function` as a lowering, which gets integers as float32."""

    def lowering(g: Graph, x: Value) -> Value:
        return function(g, as_float(g, x))

    return lowering
