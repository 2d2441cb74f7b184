"""GPTQ: each column's rounding error is made up for by the columns not yet rounded."""

from __future__ import annotations

import numpy as np

from litert_torch.converter.constants import Array, combined_key
from litert_torch.quantize.numerics import Grid

_DAMPING = 0.01  # of the mean diagonal, as in the paper
_BATCH = 128  # columns whose updates of the rest are applied at once


def second_moment_key(second_moment: Array | None) -> bytes | None:
    """Equal for equal moments."""
    return None if second_moment is None else combined_key(second_moment.tobytes())


def with_compensation(w: Array, scales: Array, grid: Grid, second_moment: Array) -> Array:
    """Integers near w / scales whose products with the inputs are near w's.

    (Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
    Transformers", algorithm 1, with columns in order of their inputs' energy.)

    Args:
        w: float32 [N, K].
        scales: [N, K / block], or [N, 1], or [1, 1].
        grid: The integers to choose from.
        second_moment: Sum of x x^T over the inputs, [K, K].

    Returns:
        int8 [N, K].
    """
    columns = w.shape[1]
    moment = second_moment.astype(np.float64)
    order = np.argsort(-np.diag(moment), kind="stable")
    factor = _inverse_factor(moment[np.ix_(order, order)])
    block = columns // scales.shape[1]
    wide = np.repeat(np.broadcast_to(scales, (len(w), scales.shape[1])), block, axis=1)[:, order]
    left = w[:, order].astype(np.float32)
    integers = np.empty(w.shape, np.int8)
    for start in range(0, columns, _BATCH):
        end = min(start + _BATCH, columns)
        integers[:, order[start:end]] = _round_batch(left, wide, factor, grid, start, end)
    return integers


def _round_batch(
    left: Array, scales: Array, factor: Array, grid: Grid, start: int, end: int
) -> Array:
    """Round columns start..end of `left` in turn; what they miss goes to those on their right."""
    integers = np.empty((len(left), end - start), np.int8)
    errors = np.empty((len(left), end - start), np.float32)
    for j in range(start, end):
        column, scale = left[:, j], scales[:, j]
        integer = np.clip(np.rint(column / scale), grid.smallest, grid.largest)
        error = (column - integer * scale) / factor[j, j]
        left[:, j + 1 : end] -= np.outer(error, factor[j, j + 1 : end])
        integers[:, j - start], errors[:, j - start] = integer, error
    left[:, end:] -= errors @ factor[start:end, end:]
    return integers


def _inverse_factor(moment: Array) -> Array:
    """Upper Cholesky factor of the damped moment's inverse; inputs never seen count as noise."""
    diagonal = np.diag(moment).copy()
    mean = float(diagonal.mean()) or 1.0
    damped = moment + np.diag(np.where(diagonal == 0, mean, 0) + _DAMPING * mean)
    lower = np.linalg.cholesky(np.linalg.inv(damped))
    return np.ascontiguousarray(lower.T.astype(np.float32))
