"""Scales that let the largest few elements saturate."""

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.quantize.numerics import Grid, covering_scales

KEPT = 99.9
"""Percent of a row's elements that do not saturate."""


def percentile_scales(rows: Array, grid: Grid) -> Array:
    """Scales that cover all but the largest magnitudes of each row."""
    limit = np.percentile(np.abs(rows), KEPT, axis=1)
    limit = np.where(limit > 0, limit, np.abs(rows).max(axis=1))
    return covering_scales(-limit, limit, grid)
