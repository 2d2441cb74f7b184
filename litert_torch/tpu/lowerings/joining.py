"""Tensors put together."""

from collections.abc import Sequence

import jax.numpy as jnp
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, promoted

aten = torch.ops.aten


@lowers(aten.cat.default)
def cat(tensors: Sequence[Array], dim: int = 0) -> Array:
    """One after another along an axis; an empty vector fits anything."""
    arrays = promoted(*tensors)
    kept = [a for a in arrays if not (a.ndim == 1 and _is_empty(a))] or arrays[:1]
    return jnp.concatenate(kept, axis=dim)


def _is_empty(x: Array) -> bool:
    return isinstance(x.shape[0], int) and x.shape[0] == 0


@lowers(aten.stack.default)
def stack(tensors: Sequence[Array], dim: int = 0) -> Array:
    """Side by side along a new axis."""
    return jnp.stack(promoted(*tensors), axis=dim)
