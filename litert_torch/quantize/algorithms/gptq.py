"""GPTQ: each column's rounding error is made up for by the columns not yet rounded."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from litert_torch.converter.constants import Array, combined_key
from litert_torch.quantize.numerics import Grid
from litert_torch.quantize.windows import Window

_DAMPING = 0.01  # of the mean diagonal, as in the paper
_BATCH = 128  # columns whose updates of the rest are applied at once

LARGEST = 2560
"""Columns up to which GPTQ is a matter of seconds: its time grows with their third power."""


@dataclass(eq=False)
class SecondMoment:
    """How the numbers that weights are multiplied by vary together.

    Attributes:
        total: Sum of x x^T over the rows seen, float32 [groups, columns, columns].
        count: Rows seen.
    """

    total: Array
    count: int = 0

    @classmethod
    def of(cls, window: Window, channels: int) -> SecondMoment:
        """Nothing seen yet."""
        columns = window.columns(channels)
        return cls(np.zeros((window.groups, columns, columns), np.float32))

    def see(self, rows: Array) -> None:
        """Take in rows [groups, rows, columns]."""
        self.total += rows.transpose(0, 2, 1) @ rows
        self.count += rows.shape[1]

    @functools.cached_property
    def key(self) -> bytes:
        """Equal for equal moments."""
        return combined_key(self.total.tobytes(), self.count)


def with_compensation(w: Array, scales: Array, grid: Grid, second_moment: SecondMoment) -> Array:
    """Integers near w / scales whose products with the inputs are near w's.

    (Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
    Transformers", algorithm 1, with columns in order of their inputs' energy.)

    Args:
        w: float32 [N, K]; N is a multiple of the moment's groups, each of which has its own rows.
        scales: [N, K / block], or [N, 1], or [1, 1].
        grid: The integers to choose from.
        second_moment: Of what is multiplied by w.

    Returns:
        int8 [N, K].
    """
    groups, columns = second_moment.total.shape[:2]
    moment = second_moment.total.astype(np.float64)
    order = np.argsort(-np.diagonal(moment, axis1=1, axis2=2), axis=1, kind="stable")
    moment = np.take_along_axis(moment, order[:, :, None], 1)
    factor = _inverse_factor(np.take_along_axis(moment, order[:, None], 2), second_moment.count)
    block = columns // scales.shape[1]
    wide = np.repeat(np.broadcast_to(scales, (len(w), scales.shape[1])), block, axis=1)
    places = np.broadcast_to(order[:, None], (groups, len(w) // groups, columns))
    left = np.take_along_axis(w.reshape(places.shape).astype(np.float32), places, 2)
    wide = np.take_along_axis(wide.reshape(places.shape), places, 2)
    integers = np.empty(places.shape, np.int8)
    for start in range(0, columns, _BATCH):
        end = min(start + _BATCH, columns)
        rounded = _round_batch(left, wide, factor, grid, start, end)
        np.put_along_axis(integers, places[:, :, start:end], rounded, 2)
    return integers.reshape(w.shape)


def _round_batch(
    left: Array, scales: Array, factor: Array, grid: Grid, start: int, end: int
) -> Array:
    """Round columns start..end of `left` in turn; what they miss goes to those on their right."""
    integers = np.empty((*left.shape[:2], end - start), np.int8)
    errors = np.empty(integers.shape, np.float32)
    for j in range(start, end):
        column, scale = left[:, :, j], scales[:, :, j]
        integer = np.clip(np.rint(column / scale), grid.smallest, grid.largest)
        error = (column - integer * scale) / factor[:, None, j, j]
        left[:, :, j + 1 : end] -= error[:, :, None] * factor[:, None, j, j + 1 : end]
        integers[:, :, j - start], errors[:, :, j - start] = integer, error
    left[:, :, end:] -= errors @ factor[:, start:end, end:]
    return integers


def _inverse_factor(moment: Array, count: int) -> Array:
    """Upper Cholesky factor of each damped moment's inverse; inputs never seen count as noise."""
    columns = moment.shape[-1]
    diagonal = np.diagonal(moment, axis1=1, axis2=2)
    mean = diagonal.mean(axis=1, keepdims=True)
    mean = np.where(mean > 0, mean, 1)
    damped = moment.copy()
    each = np.arange(columns)
    damped[:, each, each] += np.where(diagonal == 0, mean, 0) + _DAMPING * mean
    # H = V V^T with V upper: then H^-1 = U^T U with U = V^-1, upper, too
    backwards = np.linalg.cholesky(damped[:, ::-1, ::-1])[:, ::-1, ::-1]
    return np.ascontiguousarray(np.linalg.inv(backwards).astype(np.float32))
