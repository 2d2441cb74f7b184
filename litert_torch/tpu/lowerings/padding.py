"""Elements added at the ends of axes, or taken away."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype

aten = torch.ops.aten


def pairs(pad: Sequence[Any], rank: int) -> list[tuple[Any, Any]]:
    """(before, after) for each axis, of PyTorch's list from the last axis on."""
    given = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (rank - len(given)) + given[::-1]


@lowers(aten.constant_pad_nd.default)
def constant_pad(x: Array, pad: Sequence[Any], value: Any = 0) -> Array:
    """One value around x; negative amounts take elements away."""
    amounts = pairs(pad, x.ndim)
    if all(isinstance(n, int) for two in amounts for n in two):
        return lax.pad(x, as_dtype(value, x.dtype), [(a, b, 0) for a, b in amounts])
    return jnp.pad(x, amounts, constant_values=as_dtype(value, x.dtype))


def _from_inside(mode: str) -> Callable[[Array, Sequence[Any]], Array]:
    def lowering(x: Array, padding: Sequence[Any]) -> Array:
        amounts = pairs(padding, x.ndim)
        added = jnp.pad(x, [(max(a, 0), max(b, 0)) for a, b in amounts], mode=mode)
        return lax.pad(
            added, jnp.zeros((), x.dtype), [(min(a, 0), min(b, 0), 0) for a, b in amounts]
        )

    return lowering


_reflected, _repeated = _from_inside("reflect"), _from_inside("edge")

lowers.one_to_one(
    {
        aten.reflection_pad1d.default: _reflected,
        aten.reflection_pad2d.default: _reflected,
        aten.reflection_pad3d.default: _reflected,
        aten.replication_pad1d.default: _repeated,
        aten.replication_pad2d.default: _repeated,
        aten.replication_pad3d.default: _repeated,
    }
)
