"""Whole numbers near real ones; integers are returned as they are."""

from collections.abc import Callable

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, is_integral

aten = torch.ops.aten


def _of_floats(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def lowering(x: Array) -> Array:
        return x if is_integral(x) else function(x)

    return lowering


def _half_to_even(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


lowers.one_to_one(
    {
        aten.ceil.default: _of_floats(jnp.ceil),
        aten.floor.default: _of_floats(jnp.floor),
        aten.trunc.default: _of_floats(jnp.trunc),
        aten.round.default: _of_floats(_half_to_even),
        aten.frac.default: lambda x: x - jnp.trunc(x),
    }
)


@lowers(aten.round.decimals)
def round_decimals(x: Array, *, decimals: int) -> Array:
    """Rounded to so many digits after the point; before it where negative."""
    if is_integral(x):
        return x
    scale = jnp.asarray(10.0 ** abs(decimals), x.dtype)
    if decimals < 0:
        return _half_to_even(x / scale) * scale
    return _half_to_even(x * scale) / scale
