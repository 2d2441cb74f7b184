"""Maximum pooling over windows of one size at places that random numbers choose."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.elementwise import f32

aten = torch.ops.aten


@lowers(aten.fractional_max_pool2d.default)
def fractional_max_pool2d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    random_samples: Value,
) -> list[Value]:
    """Of x [N, C, H, W] or [C, H, W]; samples [N, C, 2] are for W, then H."""
    order = [1, 0]
    return _pooled(g, x, kernel_size, output_size, random_samples, order)


@lowers(aten.fractional_max_pool3d.default)
def fractional_max_pool3d(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    random_samples: Value,
) -> list[Value]:
    """Of x [N, C, D, H, W] or [C, D, H, W]; samples [N, C, 3] are for D, H, W."""
    return _pooled(g, x, kernel_size, output_size, random_samples, [0, 1, 2])


def _pooled(
    g: Graph,
    x: Value,
    kernel_size: Sequence[int],
    output_size: Sequence[int],
    samples: Value,
    order: Sequence[int],
) -> list[Value]:
    """Maxima, and their int64 positions in the flattened spatial axes."""
    count = len(order)
    kernel = [int(k) for k in (*kernel_size, *kernel_size)][:count]
    out = [int(o) for o in (*output_size, *output_size)][:count]
    leading, spatial = x.shape[:-count], dims.static(x.shape[-count:])
    planes = int(dims.numel(leading))
    drawn = tfl.reshape(g, samples, (planes, count))
    y = tfl.reshape(g, x, (planes, *spatial))
    positions: Value = const(0, DType.INT32)
    for axis in range(count):
        sample = tfl.slice(g, drawn, [0, order[axis]], (planes, 1))
        places = _places(g, sample, spatial[axis], kernel[axis], out[axis])
        y = _gathered(g, y, places, axis + 1)
        shape = [1] * (2 * count)
        shape[2 * axis : 2 * axis + 2] = [out[axis], kernel[axis]]
        step = const(math.prod(spatial[axis + 1 :]), DType.INT32)
        own = tfl.reshape(g, tfl.mul(g, places, step), (planes, *shape))
        positions = tfl.add(g, positions, own)
    windows = [n for pair in zip(out, kernel, strict=True) for n in pair]
    perm = [0, *range(1, 2 * count, 2), *range(2, 2 * count + 1, 2)]
    flat = (planes * math.prod(out), math.prod(kernel))
    y, positions = (
        tfl.reshape(g, tfl.transpose(g, tfl.reshape(g, v, (planes, *windows)), perm), flat)
        for v in (y, positions)
    )
    first = tfl.reshape(g, tfl.arg_max(g, y, 1), (flat[0], 1))
    where = tfl.gather(g, positions, first, axis=1, batch_dims=1)
    found = (tfl.reduce_max(g, y, [1], False), tfl.cast(g, where, DType.INT64))
    return [tfl.reshape(g, v, (*leading, *out)) for v in found]


def _places(g: Graph, sample: Value, size: int, kernel: int, out: int) -> Value:
    """The elements of each window along an axis, as int32 [planes, out * kernel].

    Window i of all but the last begins at int((i + sample) * a) - int(sample * a), where a is the
    average step; the last ends with the axis.
    """
    inside = const(np.tile(np.arange(kernel), out)[None], DType.INT32)
    last = const(np.repeat(np.arange(out) == out - 1, kernel)[None], DType.BOOL)
    planes = sample.shape[0]
    if out == 1:
        return tfl.broadcast_to(
            g, const(np.arange(size - kernel, size)[None], DType.INT32), (planes, kernel)
        )
    alpha = f32((size - kernel) / (out - 1))
    index = const(np.repeat(np.arange(out), kernel)[None], DType.FLOAT32)
    begin, offset = (
        tfl.cast(g, tfl.mul(g, v, alpha), DType.INT32) for v in (tfl.add(g, sample, index), sample)
    )
    begin = tfl.select_v2(g, last, const(size - kernel, DType.INT32), tfl.sub(g, begin, offset))
    return tfl.add(g, begin, inside)


def _gathered(g: Graph, x: Value, places: Value, axis: int) -> Value:
    """Elements of x [planes, ...] along `axis`, each plane's own."""
    perm = [0, axis, *(a for a in range(1, x.rank) if a != axis)]
    back = [perm.index(a) for a in range(x.rank)]
    picked = tfl.gather(g, tfl.transpose(g, x, perm), places, axis=1, batch_dims=1)
    return tfl.transpose(g, picked, back)
