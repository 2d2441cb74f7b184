"""Distances between the rows of matrices."""

from typing import Any

import numpy as np
import torch

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array
from litert_torch.tpu.lowerings.reduction import vector_norm

aten = torch.ops.aten


def _distances(a: Array, b: Array, p: float) -> Array:
    return vector_norm(a - b, p, [-1])


@lowers(aten._cdist_forward.default)
def cdist_forward(x1: Array, x2: Array, p: float, compute_mode: Any) -> Array:
    """[..., N, D] and [..., M, D] to the distances [..., N, M]."""
    return cdist(x1, x2, p)


@lowers(aten.cdist.default)
def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: Any = None) -> Array:
    """[..., N, D] and [..., M, D] to the distances [..., N, M]."""
    return _distances(x1[..., :, None, :], x2[..., None, :, :], p)


@lowers(aten._pdist_forward.default, aten.pdist.default)
def pdist(x: Array, p: float = 2.0) -> Array:
    """The distances of each row to those after it."""
    first, second = np.triu_indices(x.shape[0], 1)
    return _distances(x[first.astype(np.int32)], x[second.astype(np.int32)], p)
