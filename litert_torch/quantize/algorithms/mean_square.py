"""Scales that leave the least squared error, found by trying."""

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.quantize.algorithms.min_max import covering
from litert_torch.quantize.numerics import Grid, slabs

_SMALLEST_SHARE = {8: 0.8, 4: 0.5, 2: 0.2}  # by bits
_STEPS = 24


def least_error_scales(rows: Array, grid: Grid) -> Array:
    """For each row, the share of its covering scale that leaves the least squared error.

    Shares are tried on a grid: the error is no smooth function of the scale. The covering scale
    is among them, so the result is never worse than min-max.
    """
    scales = covering(rows, grid)
    for part in slabs(rows.shape):
        scales[part] = _best(rows[part], scales[part], grid)
    return scales


def _best(rows: Array, covering_scales: Array, grid: Grid) -> Array:
    best = covering_scales.copy()
    least = np.full(len(rows), np.inf, np.float32)
    for share in np.linspace(1, _SMALLEST_SHARE[grid.bits], _STEPS, dtype=np.float32):
        scales = covering_scales * share
        units = rows / scales[:, None]
        units -= np.clip(np.rint(units), grid.smallest, grid.largest)
        error = np.einsum("ij,ij->i", units, units) * np.square(scales)
        better = error < least
        best[better], least[better] = scales[better], error[better]
    return best
