"""Rounding to whole numbers; integers are whole already."""

from collections.abc import Callable

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers

aten = torch.ops.aten


def _rounding(emit: Callable[[Graph, Value], Value]) -> Callable[[Graph, Value], Value]:
    def lowering(g: Graph, x: Value) -> Value:
        return emit(g, x) if x.dtype.is_float else x

    return lowering


def truncated(g: Graph, x: Value) -> Value:
    """A float32 rounded towards zero: delegates take each of these ops, and CAST not."""
    above, below = tfl.relu(g, x), tfl.minimum(g, const(0.0, x.dtype), x)
    return tfl.add(g, tfl.floor(g, above), tfl.ceil(g, below))


lowers.one_to_one(
    {
        aten.ceil.default: _rounding(tfl.ceil),
        aten.fix.default: _rounding(truncated),
        aten.floor.default: _rounding(tfl.floor),
        aten.round.default: _rounding(tfl.round),
        aten.trunc.default: _rounding(truncated),
    }
)


@lowers(aten.frac.default)
def frac(g: Graph, x: Value) -> Value:
    """What truncation drops."""
    return tfl.sub(g, x, truncated(g, x))


@lowers(aten.round.decimals)
def round_decimals(g: Graph, x: Value, decimals: int) -> Value:
    """Rounded half to even at a decimal place."""
    unit = const(10.0 ** abs(decimals), x.dtype)
    if decimals < 0:
        return tfl.mul(g, tfl.round(g, tfl.div(g, x, unit)), unit)
    return tfl.div(g, tfl.round(g, tfl.mul(g, x, unit)), unit)
