"""Scales of weights that are integers times a scale already, as those of quantized checkpoints."""

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.quantize.algorithms.mean_square import least_error_scales
from litert_torch.quantize.numerics import Grid, slabs

_SAMPLE = 16  # elements that rule out most scales
_NEAR = 0.02  # of an integer; numbers went through float16


def stored_scales(rows: Array, grid: Grid) -> Array:
    """The largest scale by which a row is integers of `grid`; least squared error where none is.

    The element of largest magnitude is one of the integers, so its scale is the magnitude over a
    number of 1 to the grid's ends. What is found is then fitted to the whole row by least squares.
    """
    scales = np.zeros(len(rows), np.float32)
    for part in slabs(rows.shape):
        scales[part] = _of_slab(np.asarray(rows[part], np.float32), grid)
    left = scales == 0
    if left.any():
        scales[left] = least_error_scales(np.ascontiguousarray(rows[left]), grid)
    return scales


def _of_slab(rows: Array, grid: Grid) -> Array:
    magnitude = np.abs(rows).max(axis=1)
    places = np.argsort(-np.abs(rows[:, : 4 * _SAMPLE]), axis=1)[:, :_SAMPLE]
    sample = np.take_along_axis(rows, places, 1)
    found = np.zeros(len(rows), np.float32)
    open_rows = np.array(magnitude > 0, np.bool_)
    found[~open_rows] = 1
    for k in range(1, max(grid.largest, -grid.smallest) + 1):
        candidates = np.flatnonzero(open_rows)
        if candidates.size == 0:
            break
        scale = magnitude[candidates] / k
        likely = _fits(sample[candidates], scale, grid)
        candidates, scale = candidates[likely], scale[likely]
        whole = _fits(rows[candidates], scale, grid)
        candidates, scale = candidates[whole], scale[whole]
        found[candidates] = _fitted(rows[candidates], scale)
        open_rows[candidates] = False
    return found


def _fits(rows: Array, scale: Array, grid: Grid) -> Array:
    units = rows / scale[:, None]
    integers = np.rint(units)
    near = np.abs(units - integers) < _NEAR
    inside = (integers >= grid.smallest) & (integers <= grid.largest)
    return np.asarray(np.all(near & inside, axis=1))


def _fitted(rows: Array, scale: Array) -> Array:
    integers = np.rint(rows / scale[:, None]).astype(np.float64)
    products = np.einsum("ij,ij->i", rows.astype(np.float64), integers)
    fitted: Array = (products / np.einsum("ij,ij->i", integers, integers)).astype(np.float32)
    return fitted
