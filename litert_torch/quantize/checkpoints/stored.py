"""A matrix as its checkpoint stores it: integers, scales and zero points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType
from litert_torch.quantize.numerics import grid_of
from litert_torch.quantize.schemes import BLOCKS, Weights, int4, int8


@dataclass(frozen=True)
class StoredWeight:
    """A weight [rows, columns] of a linear layer; real = (integer - zero point) * scale + offset.

    Attributes:
        shape: Rows are output channels.
        bits: 4 or 8.
        read: Gives the integers, [rows, columns].
        scales: float32 [rows, groups]: columns / groups neighbours in a row share one.
        zero_points: Integers [rows, groups].
        offsets: float32 [rows, groups] that are added; None is 0.
        order: The group of each column, where they are no neighbours; else None.
    """

    shape: tuple[int, int]
    bits: int
    read: Callable[[], Array]
    scales: Array
    zero_points: Array
    offsets: Array | None = None
    order: Array | None = None

    @property
    def group(self) -> int:
        """Columns that share a scale."""
        return self.shape[1] // self.scales.shape[1]

    def real(self) -> Array:
        """The numbers that it stands for, float32 [rows, columns]."""
        integers = self.read().astype(np.float32)
        numbers = (integers - self._wide(self.zero_points)) * self._wide(self.scales)
        if self.offsets is not None:
            numbers = numbers + self._wide(self.offsets)
        found: Array = numbers.astype(np.float32)
        return found

    def _wide(self, of_groups: Array) -> Array:
        values = np.asarray(of_groups, np.float32)
        if self.order is not None:
            return values[:, self.order]
        return np.repeat(values, self.group, axis=1)

    def scheme(self) -> tuple[Weights, str]:
        """How LiteRT stores it, and why not with the same integers; empty where it does."""
        if self.bits == 8:
            return int8(), self._grouped() or self._why_not(block=None)
        block = max((b for b in BLOCKS if self.group % b == 0), default=None)
        if block is None:
            weights = int4(32) if self.shape[1] % 32 == 0 else int4()
            return weights, f"LiteRT has no groups of {self.group}"
        if self.scales.shape[1] == 1 and not self._why_not(block=None):
            return int4(), ""
        return int4(block), self._why_not(block=block)

    def _grouped(self) -> str:
        return f"LiteRT has no groups of 8-bit weights, as of {self.group}" * (
            self.scales.shape[1] > 1
        )

    def _why_not(self, block: int | None) -> str:
        """Why its integers are none that a kernel takes; empty where they may be."""
        if self.order is not None:
            return "its groups are not of neighbouring columns"
        if self.offsets is not None:
            return "it has a least value for each group, for which LiteRT has no place"
        grid = grid_of(DType.INT4 if self.bits == 4 else DType.INT8, blocks=block is not None)
        middle = 1 << (self.bits - 1)
        if (np.asarray(self.scales) < 0).any():
            share = float(np.mean(np.asarray(self.scales) < 0))
            return f"{share:.0%} of its groups have a negative scale, which LiteRT does not take"
        zeros = np.asarray(self.zero_points)
        if (zeros != zeros.flat[0]).any() or int(zeros.flat[0]) not in (0, middle):
            return "it has zero points, which LiteRT's kernels do not take for weights"
        if (
            block is None
            and self.read().astype(np.int16).min() - int(zeros.flat[0]) < grid.smallest
        ):
            return f"it has {grid.smallest - 1}, which kernels without blocks do not take"
        return ""


def unpacked(words: Array, bits: int, axis: int) -> Array:
    """int32 words as the unsigned integers in them, the lowest bits first, along `axis`."""
    per_word = 32 // bits
    unsigned = np.moveaxis(np.ascontiguousarray(words).view(np.uint32), axis, -1)
    shifts = np.arange(per_word, dtype=np.uint32) * np.uint32(bits)
    lanes = (unsigned[..., None] >> shifts) & np.uint32((1 << bits) - 1)
    flat = lanes.astype(np.uint8).reshape(*unsigned.shape[:-1], -1)
    return np.moveaxis(flat, -1, axis)
