"""SQuant: rounding by which the errors of a kernel, and of an output channel, sum to about zero.

Neighbouring pixels are much alike and activations are mostly positive, so that what counts in a
convolution is the sum of the errors, more than each one. It takes no data.

(Guo et al. 2022, "SQuant: On-the-Fly Data-Free Quantization via Diagonal Hessian Approximation".)
"""

from __future__ import annotations

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.quantize.numerics import Grid


def balanced(units: Array, kernels: int, grid: Grid) -> Array:
    """Integers near `units`, at most one step from the nearest.

    Args:
        units: Weights in units of their scale, [rows, elements], element (kernel, position) at
            kernel * positions + position.
        kernels: Kernels in a row: input channels, or 1 in a depthwise convolution.
        grid: The integers to choose from.

    Returns:
        int8 [rows, elements]: each kernel's errors, then each row's, sum to within a half, as far
        as the grid allows.
    """
    rows = len(units)
    each = units.reshape(rows * kernels, -1)
    integers = np.clip(np.rint(each), grid.smallest, grid.largest)
    if each.shape[1] > 1:
        integers = _flipped(integers, each, grid)
    errors = integers - each
    if kernels > 1:
        _balance_rows(integers, errors, rows, grid)
    return integers.reshape(units.shape).astype(np.int8)


def _flipped(integers: Array, units: Array, grid: Grid) -> Array:
    """Move the elements that were rounded furthest, as many as a row's errors sum to."""
    errors = integers - units
    total = errors.sum(axis=1, keepdims=True)
    sign = np.sign(total)
    gain = _gain(errors, integers, sign, grid)
    rank = np.argsort(np.argsort(-gain, axis=1, kind="stable"), axis=1)
    moves = (rank < np.rint(np.abs(total))) & np.isfinite(gain)
    return integers - np.where(moves, sign, 0)


def _gain(errors: Array, integers: Array, sign: Array, grid: Grid) -> Array:
    """How far each element was rounded in the direction `sign`; -inf where it cannot go back."""
    moved = integers - sign
    able = (moved >= grid.smallest) & (moved <= grid.largest) & (errors * sign > 0)
    return np.where(able, errors * sign, -np.inf)


def _balance_rows(integers: Array, errors: Array, rows: int, grid: Grid) -> None:
    """Move one element in each of those kernels whose errors sum to most, in place."""
    sums = errors.sum(axis=1).reshape(rows, -1)
    total = sums.sum(axis=1, keepdims=True)
    sign = np.repeat(np.sign(total), sums.shape[1], axis=1).reshape(-1, 1)
    gain = _gain(errors, integers, sign, grid)
    best = gain.argmax(axis=1)
    every = np.arange(len(integers))
    able = np.isfinite(gain[every, best]).reshape(rows, -1)
    excess = np.where(able, sums * np.sign(total), -np.inf)
    rank = np.argsort(np.argsort(-excess, axis=1, kind="stable"), axis=1)
    moves = ((rank < np.rint(np.abs(total))) & (excess > 0)).reshape(-1)
    integers[every[moves], best[moves]] -= sign[moves, 0]
