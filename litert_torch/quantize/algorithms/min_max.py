"""Scales that cover every element."""

from litert_torch.converter.constants import Array
from litert_torch.quantize.numerics import Grid, covering_scales


def covering(rows: Array, grid: Grid) -> Array:
    """The smallest scales by which no element saturates."""
    return covering_scales(rows.min(axis=1), rows.max(axis=1), grid)
