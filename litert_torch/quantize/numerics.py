"""Scales, zero points and integers: real = scale * (integer - zero point).

Weights are seen as rows, one a scale: the slices along the channel axis, the blocks of the last
axis, or the whole tensor as one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType

_SLAB = 1 << 22  # elements worked on at a time: what is temporary stays small and in cache

SMALLEST_SCALE = 1e-30
"""Below it, products of scales leave float32's normal range."""


@dataclass(frozen=True)
class Layout:
    """Which elements of a weight share a scale.

    Attributes:
        axis: A scale for each slice along this axis; None for one scale in all.
        block: A scale for each run of this many elements of the last axis.
    """

    axis: int | None = 0
    block: int | None = None

    def rows(self, w: Array) -> Array:
        """`w` as [scales, elements a scale]."""
        if self.block is not None:
            return w.reshape(-1, self.block)
        if self.axis is None:
            return w.reshape(1, -1)
        return np.moveaxis(w, self.axis, 0).reshape(w.shape[self.axis], -1)

    def restored(self, rows: Array, shape: tuple[int, ...]) -> Array:
        """The inverse of `rows` for a weight of `shape`."""
        if self.block is not None or self.axis is None:
            return rows.reshape(shape)
        others = tuple(s for i, s in enumerate(shape) if i != self.axis)
        return np.moveaxis(rows.reshape(shape[self.axis], *others), 0, self.axis)

    def scale_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the scales of a weight of `shape`."""
        if self.block is not None:
            return (*shape[:-1], shape[-1] // self.block)
        return (1,) if self.axis is None else (shape[self.axis],)


@dataclass(frozen=True)
class Grid:
    """The integers that weights may be."""

    smallest: int
    largest: int

    @property
    def bits(self) -> int:
        """Bits of an integer."""
        return int(self.largest - self.smallest).bit_length()


def grid_of(dtype: DType, *, blocks: bool = False) -> Grid:
    """The integers that LiteRT's kernels take as weights of `dtype`.

    int8 leaves out -128, as the LiteRT quantization specification demands; so must int4 with -8,
    unless it is in blocks: the hybrid kernel without XNNPACK multiplies it wrongly (SQNR of 10 dB
    in place of 24). int2 has so few values that none is given away.
    """
    largest = (1 << (dtype.bits - 1)) - 1
    is_whole = blocks or dtype == DType.INT2
    return Grid(-largest - 1 if is_whole else -largest, largest)


def activation_limits(dtype: DType) -> tuple[int, int]:
    """The integers that activations may be; int16 is symmetric by the LiteRT specification."""
    if dtype == DType.UINT8:
        return 0, 255
    top = (1 << (dtype.bits - 1)) - 1
    return (-top if dtype == DType.INT16 else -top - 1), top


def covering_scales(low: Array, high: Array, grid: Grid) -> Array:
    """Scales without zero point by which low..high just fits the integers of `grid`.

    Args:
        low: The lowest element of each row.
        high: The highest.
        grid: The integers.

    Returns:
        float32 max(high / largest, low / smallest); 1 for rows of zeros only.
    """
    low, high = np.minimum(low, 0).astype(np.float64), np.maximum(high, 0).astype(np.float64)
    scales = np.maximum(high / grid.largest, low / grid.smallest)
    return np.where(scales > 0, np.maximum(scales, SMALLEST_SCALE), 1).astype(np.float32)


def rounded(rows: Array, scales: Array, grid: Grid) -> Array:
    """Rows as the nearest integers in units of their scale, halves to even, saturated; int8."""
    integers = np.empty(rows.shape, np.int8)
    for part in slabs(rows.shape):
        units = rows[part] / scales[part, None]
        integers[part] = np.clip(np.rint(units), grid.smallest, grid.largest)
    return integers


def slabs(shape: tuple[int, ...]) -> Iterator[slice]:
    """Ranges of rows of a matrix that are small together."""
    count, width = shape
    step = max(1, _SLAB // max(1, width))
    yield from (slice(i, i + step) for i in range(0, count, step))


def affine(low: float, high: float, dtype: DType) -> tuple[np.float32, int]:
    """Scale and zero point of an activation whose values lie in low..high.

    The range is widened to hold 0, which must be an integer exactly: padding is zeros. int16 has
    zero point 0. (Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
    Integer-Arithmetic-Only Inference", section 3.)
    """
    smallest, largest = activation_limits(dtype)
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if dtype == DType.INT16:
        scale = np.float32(max(-low, high) / largest)
        return (scale if scale > SMALLEST_SCALE else np.float32(1)), 0
    scale = np.float32((high - low) / (largest - smallest))
    if scale <= SMALLEST_SCALE:
        return np.float32(1), 0 if smallest < 0 else smallest
    zero_point = smallest - low / float(scale)
    return scale, int(np.clip(np.rint(zero_point), smallest, largest))


def as_integers(x: Array, scale: float, zero_point: int, dtype: DType) -> Array:
    """An activation or a constant operand as integers of `dtype`, as QUANTIZE gives them."""
    smallest, largest = activation_limits(dtype)
    units = np.rint(x.astype(np.float64) / float(scale)) + zero_point
    return np.clip(units, smallest, largest).astype(dtype.numpy)


def sqnr(signal: Array, approximation: Array) -> float:
    """Signal to quantization noise in dB: 10 log10(sum s^2 / sum (s - a)^2); inf where equal."""
    s = signal.astype(np.float64).reshape(-1)
    noise = float(np.sum(np.square(s - approximation.astype(np.float64).reshape(-1))))
    power = float(np.sum(np.square(s)))
    if noise == 0:
        return float("inf")
    return float(10 * np.log10(power / noise)) if power > 0 else float("-inf")


def cosine(a: Array, b: Array) -> float:
    """Cosine of the angle between two tensors seen as vectors; 1 where both are zero."""
    x, y = a.astype(np.float64).reshape(-1), b.astype(np.float64).reshape(-1)
    norms = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / norms if norms > 0 else float(not (x.any() or y.any()))
