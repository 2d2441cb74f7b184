"""torch.fft: PyTorch's three primitives; all of torch.fft is made of them by its decompositions."""

import math
from collections.abc import Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.complex_values import ComplexValue
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers_complex
from litert_torch.converter.lowerings.dft import Parts, Transform, transformed
from litert_torch.converter.lowerings.indices import transposed_from_last, transposed_to_last
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.views import transposed

aten = torch.ops.aten

_EXPONENTS = (0.0, -0.5, -1.0)
"""Of the number of elements transformed, for each of ATen's normalization modes."""


def _scale(normalization: int, sizes: Sequence[Size]) -> float:
    return float(math.prod(dims.static(sizes)) ** _EXPONENTS[normalization])


def along(g: Graph, x: Parts, axis: int, transform: Transform) -> Parts:
    """x transformed along `axis`."""
    rank = x[0].rank
    axis %= rank

    def moved(v: Value | None, perm: list[int]) -> Value | None:
        return None if v is None else transposed(g, v, perm)

    to_last, from_last = transposed_to_last(rank, axis), transposed_from_last(rank, axis)
    real, imag = (moved(v, to_last) for v in x)
    assert real is not None
    real, imag = (moved(v, from_last) for v in transformed(g, (real, imag), transform))
    assert real is not None
    return real, imag


def _of_axes(g: Graph, x: Parts, axes: Sequence[int], sign: int, scale: float) -> Parts:
    """All of `axes` transformed; the scale goes into the first matrix."""
    for axis in axes:
        size = int(x[0].shape[axis])
        x = along(g, x, axis, Transform(size, size, sign, scale))
        scale = 1.0
    return x


def _complex(x: Parts) -> ComplexValue:
    real, imag = x
    assert imag is not None
    return ComplexValue(real, imag)


@lowers_complex(aten._fft_r2c.default)
def fft_r2c(
    g: Graph, x: Value, dim: Sequence[int], normalization: int, onesided: bool
) -> ComplexValue:
    """Of real numbers, forward; onesided, the first half of the results along the last of `dim`."""
    x = as_float(g, x)
    size = int(x.shape[dim[-1]])
    results = size // 2 + 1 if onesided else size
    scale = _scale(normalization, [x.shape[d] for d in dim])
    y = along(g, (x, None), dim[-1], Transform(size, results, -1, scale))
    return _complex(_of_axes(g, y, dim[:-1], -1, 1.0))


@lowers_complex(aten._fft_c2c.default)
def fft_c2c(
    g: Graph, x: ComplexValue, dim: Sequence[int], normalization: int, forward: bool
) -> ComplexValue:
    """Of complex numbers, forward or inverse."""
    if not dim:
        return x
    scale = _scale(normalization, [x.shape[d] for d in dim])
    return _complex(_of_axes(g, (x.real, x.imag), dim, -1 if forward else 1, scale))


@lowers_complex(aten._fft_c2r.default)
def fft_c2r(
    g: Graph, x: ComplexValue, dim: Sequence[int], normalization: int, last_dim_size: Size
) -> Value:
    """Inverse, of the first half of a spectrum along the last of `dim`: real numbers."""
    size = int(last_dim_size)
    sizes = [*(x.shape[d] for d in dim[:-1]), size]
    y = _of_axes(g, (x.real, x.imag), dim[:-1], 1, 1.0)
    axis = dim[-1] % x.rank
    whole = tuple(_as_whole(g, v, axis, size) for v in y if v is not None)
    transform = Transform(size, size, 1, _scale(normalization, sizes), real_only=True)
    return along(g, (whole[0], whole[1]), axis, transform)[0]


def _as_whole(g: Graph, half: Value, axis: int, size: int) -> Value:
    """A half spectrum as one of `size` elements with the same real inverse.

    What stands for two elements counts twice; the mirrored rest is zero.
    """
    kept = size // 2 + 1
    cut = tfl.slice(g, half, [0] * half.rank, (*half.shape[:axis], kept, *half.shape[axis + 1 :]))
    counts = [1.0 if k in (0, size - k) else 2.0 for k in range(kept)]
    column = (kept, *[1] * (half.rank - axis - 1))
    weights = tfl.reshape(g, const(counts, DType.FLOAT32), column)
    counted = tfl.mul(g, cut, weights)
    pads = [(0, size - kept if a == axis else 0) for a in range(half.rank)]
    return tfl.pad(g, counted, pads)
