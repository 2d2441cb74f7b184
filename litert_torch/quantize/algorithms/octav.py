"""Clipping by OCTAV: the range that balances rounding error and clipping error."""

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.quantize.algorithms.min_max import covering
from litert_torch.quantize.numerics import Grid, covering_scales, slabs

_ITERATIONS = 12


def octav_scales(rows: Array, grid: Grid) -> Array:
    """Scales by the fixed point of the derivative of the expected squared error.

    s <- sum(|x|, |x| > s) / (4^-bits / 3 * count(0 < |x| <= s) + count(|x| > s))

    (Sakr et al. 2022, "Optimal Clipping and Magnitude-aware Differentiation for Improved
    Quantization-aware Training", equation 6.) Rows of zeros have scale 1.
    """
    scales = covering(rows, grid)
    for part in slabs(rows.shape):
        magnitude = np.abs(rows[part])
        limit = _fixed_point(magnitude, grid.bits)
        found = covering_scales(np.zeros_like(limit), limit, grid)
        scales[part] = np.where(limit > 0, np.minimum(found, scales[part]), scales[part])
    return scales


def _fixed_point(magnitude: Array, bits: int) -> Array:
    count = np.maximum(np.count_nonzero(magnitude, axis=1), 1)
    limit = magnitude.sum(axis=1) / count
    for _ in range(_ITERATIONS):
        above = magnitude > limit[:, None]
        clipped = above.sum(axis=1)
        rounding = 4.0**-bits / 3 * (count - clipped)
        limit = np.where(above, magnitude, 0).sum(axis=1) / np.maximum(rounding + clipped, 1e-30)
    return np.asarray(limit)
