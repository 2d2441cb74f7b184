"""Values of images between their pixels, for grid_sample, roi_align, deformable convolutions.

Channels are last while elements are read, so that a GATHER copies whole pixels.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const

FLOAT32 = DType.FLOAT32


@dataclass(frozen=True, eq=False)
class Tap:
    """One of the pixels along an axis that a point is interpolated from.

    Attributes:
        index: Float32 whole numbers within the axis, of a shape that broadcasts to the points'.
        weight: Float32 of the same shape; None for 1.
    """

    index: Value
    weight: Value | None = None


def number(value: float) -> Value:
    """A float32 scalar."""
    return const(value, FLOAT32)


def clipped(g: Graph, x: Value, low: float, high: float) -> Value:
    """x within bounds."""
    return tfl.minimum(g, tfl.maximum(g, x, number(low)), number(high))


def shifted(g: Graph, x: Value, offset: float) -> Value:
    """x plus a number."""
    return x if offset == 0 else tfl.add(g, x, number(offset))


def linear_taps(g: Graph, position: Value, last: float) -> list[Tap]:
    """The pixels on both sides of positions within [0, last]."""
    below = tfl.floor(g, position)
    fraction = tfl.sub(g, position, below)
    above = tfl.minimum(g, shifted(g, below, 1), number(last))
    return [Tap(below, tfl.sub(g, number(1), fraction)), Tap(above, fraction)]


def pixels_by_row(g: Graph, x: Value) -> Value:
    """Images [N, C, *sizes] as [N, pixels, C]."""
    flat = tfl.reshape(g, x, (x.shape[0], x.shape[1], dims.numel(x.shape[2:])))
    return tfl.transpose(g, flat, (0, 2, 1))


def interpolated(
    g: Graph,
    pixels: Value,
    sizes: Sequence[int],
    taps: Sequence[Sequence[Tap]],
    *,
    batched: bool = True,
) -> Value:
    """Sums over all combinations of the axes' taps of pixel times weights.

    Args:
        g: The graph.
        pixels: [N, prod(sizes), C], or [pixels, C] where not `batched`.
        sizes: Of the images' axes.
        taps: Of each axis, for points [N, ...].
        batched: Whether the points of each n lie in image n.
    """
    strides = [dims.static([dims.numel(sizes[a + 1 :])])[0] for a in range(len(sizes))]
    scaled = [
        [Tap(_times(g, t.index, stride), t.weight) for t in axis]
        for axis, stride in zip(taps, strides, strict=True)
    ]
    total = None
    for corner in itertools.product(*scaled):
        index = corner[0].index
        for tap in corner[1:]:
            index = tfl.add(g, index, tap.index)
        places = tfl.cast(g, index, DType.INT32)
        part = tfl.gather(g, pixels, places, axis=int(batched), batch_dims=int(batched))
        weight = _product(g, [t.weight for t in corner if t.weight is not None])
        if weight is not None:
            part = tfl.mul(g, part, tfl.expand_dims(g, weight, -1))
        total = part if total is None else tfl.add(g, total, part)
    assert total is not None
    return total


def _times(g: Graph, index: Value, stride: int) -> Value:
    return index if stride == 1 else tfl.mul(g, index, number(stride))


def _product(g: Graph, weights: Sequence[Value]) -> Value | None:
    result = None
    for w in weights:
        result = w if result is None else tfl.mul(g, result, w)
    return result
