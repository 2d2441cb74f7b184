"""Discrete Fourier transforms along the last axis, by constant matrices.

XNNPACK runs them, GPUs and NPUs take them, any length does, and they are exact to float32
rounding; LiteRT's own RFFT2D is none of this (CPU only, powers of two, complex64 tensors between).
A long transform of n = rows * columns elements is one over the rows, a turn of each element, and
one over the columns (Cooley and Tukey, 1965); its matrices have rows**2 and columns**2 elements.
"""

import math
from dataclasses import dataclass

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dims import numel
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const

DENSE_UP_TO = 128  # elements; below, one matrix is faster than the steps around two
_WORTH_SPLITTING = 8  # a factor this small leaves a matrix almost as large

Parts = tuple[Value, Value | None]
"""Real and imaginary part; None is zero, or not wanted."""


@dataclass(frozen=True)
class Transform:
    """y[k] = scale * sum over j < size of x[j] exp(sign * 2 pi i j k / size), for k < results.

    Attributes:
        size: Number of elements that are transformed.
        results: How many of the results are wanted, from the first.
        sign: -1 forward, +1 inverse.
        scale: A factor.
        real_only: Whether only the real part of the results is wanted.
    """

    size: int
    results: int
    sign: int = -1
    scale: float = 1.0
    real_only: bool = False

    def basis(self) -> Array:
        """exp(...) as float64 [results, size, (cos, sin)]."""
        turns = np.arange(self.results)[:, None] * np.arange(self.size)[None] % self.size
        angles = self.sign * 2 * np.pi / self.size * turns
        return self.scale * np.stack([np.cos(angles), np.sin(angles)], -1)


def transformed(g: Graph, x: Parts, transform: Transform) -> Parts:
    """x [..., size] transformed along the last axis: [..., results]."""
    rows = _rows(transform)
    if rows is None:
        return _by_one_matrix(g, x, transform)
    return _by_two_steps(g, x, transform, rows)


def _rows(transform: Transform) -> int | None:
    """The smaller factor of a size that is worth splitting."""
    if transform.size <= DENSE_UP_TO:
        return None
    for rows in range(math.isqrt(transform.size), _WORTH_SPLITTING - 1, -1):
        if transform.size % rows == 0:
            return rows
    return None


def _by_one_matrix(g: Graph, x: Parts, transform: Transform) -> Parts:
    """FULLY_CONNECTED of both parts side by side with [[C, -S], [S, C]]."""
    real, imag = x
    both = real if imag is None else tfl.concatenation(g, [real, imag], axis=-1)
    weights = const(_matrix(transform, imag is not None))
    lead = both.shape[:-1]
    flat = tfl.reshape(g, both, (numel(lead), both.shape[-1]))
    y = tfl.fully_connected(g, flat, weights, None)
    y = tfl.reshape(g, y, (*lead, weights.shape[0]))
    if transform.real_only:
        return y, None
    return _half(g, y, 0, transform.results), _half(g, y, 1, transform.results)


def _half(g: Graph, y: Value, i: int, size: int) -> Value:
    return tfl.slice(g, y, [0] * (y.rank - 1) + [i * size], (*y.shape[:-1], size))


def _matrix(transform: Transform, of_complex: bool) -> Constant:
    """Computed when it is read: that of a long transform of prime length is large."""

    def read() -> Array:
        cos, sin = np.moveaxis(transform.basis(), -1, 0)
        blocks = [[cos, -sin], [sin, cos]]
        wanted = [row[: 1 + of_complex] for row in blocks[: 2 - transform.real_only]]
        return np.block(wanted)

    rows = transform.results * (2 - transform.real_only)
    shape = (rows, transform.size * (1 + of_complex))
    return Constant(shape, DType.FLOAT32, ("dft", transform, of_complex), read)


def _by_two_steps(g: Graph, x: Parts, transform: Transform, rows: int) -> Parts:
    """Element columns*r + c of x; result k + rows*l, of k < rows and l < columns."""
    columns = transform.size // rows
    lead = x[0].shape[:-1]
    batch = numel(lead)

    def to_rows(v: Value) -> Value:
        grid = tfl.reshape(g, v, (batch, rows, columns))
        return tfl.transpose(g, grid, (0, 2, 1))

    real, imag = x
    first = Transform(rows, rows, transform.sign)
    turned = _turned(
        g,
        _by_one_matrix(g, (to_rows(real), None if imag is None else to_rows(imag)), first),
        transform,
        rows,
    )
    groups = -(-transform.results // rows)
    second = Transform(columns, groups, transform.sign, transform.scale, transform.real_only)
    across = [tfl.transpose(g, v, (0, 2, 1)) for v in turned]
    y = _by_one_matrix(g, (across[0], across[1]), second)

    def to_results(v: Value) -> Value:
        line = tfl.reshape(g, tfl.transpose(g, v, (0, 2, 1)), (batch, groups * rows))
        wanted = tfl.slice(g, line, (0, 0), (batch, transform.results))
        return tfl.reshape(g, wanted, (*lead, transform.results))

    return to_results(y[0]), None if y[1] is None else to_results(y[1])


def _turned(g: Graph, x: Parts, transform: Transform, rows: int) -> tuple[Value, Value]:
    """x [B, columns, rows] times exp(sign * 2 pi i * column * row / size)."""
    columns = transform.size // rows
    turns = np.arange(columns)[:, None] * np.arange(rows)[None]
    angles = transform.sign * 2 * np.pi / transform.size * turns
    cos, sin = (const(f(angles)[None], DType.FLOAT32) for f in (np.cos, np.sin))
    real, imag = x
    assert imag is not None
    return (
        tfl.sub(g, tfl.mul(g, real, cos), tfl.mul(g, imag, sin)),
        tfl.add(g, tfl.mul(g, real, sin), tfl.mul(g, imag, cos)),
    )
