"""The range of an activation, from the batches that calibration runs."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType
from litert_torch.quantize.numerics import activation_limits, affine

_BINS = 2048
_KEPT = 0.9999
_MEMORY = 0.9
_WIDEST = 1e30
"""Beyond it, as between the numbers of a mask, there is no histogram: the range is all there is."""


class Observer(Protocol):
    """Sees a tensor once a batch, and then tells its range."""

    def see(self, x: Array) -> None:
        """Take in one batch's values."""

    def range(self, dtype: DType) -> tuple[float, float]:
        """The lowest and highest value that integers of `dtype` should stand for."""


class MinMax:
    """Covers all that was seen."""

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def see(self, x: Array) -> None:
        """Take in one batch's values."""
        self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))

    def range(self, dtype: DType) -> tuple[float, float]:
        """All that was seen."""
        return self.low, self.high


class MovingAverage:
    """Averages the batches' ranges; the later count more."""

    def __init__(self) -> None:
        self.ends: Array | None = None

    def see(self, x: Array) -> None:
        """Take in one batch's values."""
        ends = np.array([x.min(), x.max()], np.float64)
        self.ends = ends if self.ends is None else _MEMORY * self.ends + (1 - _MEMORY) * ends

    def range(self, dtype: DType) -> tuple[float, float]:
        """The averages of the batches' lowest and highest values."""
        assert self.ends is not None
        return float(self.ends[0]), float(self.ends[1])


class Histogram:
    """Counts of values in equal bins, which widen as the range grows."""

    def __init__(self) -> None:
        self.counts = np.zeros(_BINS)
        self.low, self.high = np.inf, -np.inf

    def see(self, x: Array) -> None:
        """Take in one batch's values."""
        low, high = min(self.low, float(x.min())), max(self.high, float(x.max()))
        high = max(high, low + 0.01 * max(abs(low), abs(high), 1e-9))  # float32 has bins in it
        if high - low > _WIDEST:
            self.low, self.high = low, high
            return
        if (low, high) != (self.low, self.high):
            old = self.counts
            self.counts = np.zeros(_BINS)
            if old.any():
                self.counts += np.histogram(self.centers, _BINS, (low, high), weights=old)[0]
            self.low, self.high = low, high
        self.counts += np.histogram(x, _BINS, (low, high))[0]

    @property
    def centers(self) -> Array:
        """The middle of each bin."""
        width = (self.high - self.low) / _BINS
        return self.low + (np.arange(_BINS) + 0.5) * width


class Percentile(Histogram):
    """Leaves out the outermost values, as many as are rare."""

    def range(self, dtype: DType) -> tuple[float, float]:
        """What is left without (1 - 0.9999) / 2 of the values at each end."""
        if self.high - self.low > _WIDEST:
            return self.low, self.high
        share = np.cumsum(self.counts) / self.counts.sum()
        first = int(np.searchsorted(share, (1 - _KEPT) / 2))
        last = int(np.searchsorted(share, (1 + _KEPT) / 2))
        width = (self.high - self.low) / _BINS
        return self.low + first * width, self.low + (min(last, _BINS - 1) + 1) * width


class LeastError(Histogram):
    """The range by which integers are nearest to the values seen, by squared error."""

    def range(self, dtype: DType) -> tuple[float, float]:
        """The best of ranges shrunk at both ends alike, and at either."""
        if self.high - self.low > _WIDEST:
            return self.low, self.high
        shares = np.linspace(1, 0.5, 41)
        tried = [(self.low * s, self.high * s) for s in shares]
        tried += [(self.low * s, self.high) for s in shares[1:]]
        tried += [(self.low, self.high * s) for s in shares[1:]]
        errors = [self._error(low, high, dtype) for low, high in tried]
        return tried[int(np.argmin(errors))]

    def _error(self, low: float, high: float, dtype: DType) -> float:
        smallest, largest = activation_limits(dtype)
        scale, zero_point = affine(low, high, dtype)
        integers = np.clip(np.rint(self.centers / scale) + zero_point, smallest, largest)
        errors = (integers - zero_point) * float(scale) - self.centers
        # values within a bin are spread, which hides rounding finer than a bin
        return float(self.counts @ (np.square(errors) + float(scale) ** 2 / 12))


OBSERVERS: dict[str, type[MinMax] | type[MovingAverage] | type[Percentile] | type[LeastError]] = {
    "min_max": MinMax,
    "moving_average": MovingAverage,
    "percentile": Percentile,
    "mse": LeastError,
}
