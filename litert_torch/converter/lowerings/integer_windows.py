"""Convolutions and average pools of integers, which LiteRT has no kernels for.

What each place of the filter sees is multiplied and summed exactly, one place after another. That
is slow and large; it is meant for the small filters that integer tensors meet.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Shape
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings.channel_last import Pair, padded
from litert_torch.converter.lowerings.division import div_mode
from litert_torch.converter.lowerings.kernel_dtypes import widened
from litert_torch.converter.lowerings.pooling_windows import Axis
from litert_torch.errors import UnsupportedCaseError

_MOST_PRODUCTS = 1 << 24


def convolve_integers(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[Pair],
    groups: int,
) -> Value:
    """Of x [N, *spatial, C] with weight [O, C/groups, *kernel]; wraps around as PyTorch does."""
    dtype = x.dtype
    x = padded(g, widened(g, x), pads)
    out, per_group, *kernel = dims.static(weight.shape)
    filters = tfl.reshape(
        g, widened(g, weight), (groups, out // groups, per_group, int(np.prod(kernel)))
    )
    total: Value | None = None
    for k, seen in enumerate(_seen(g, x, 1, kernel, stride, dilation)):
        rows = int(dims.numel(seen.shape[:-1]))
        if rows * out * per_group > _MOST_PRODUCTS:
            raise UnsupportedCaseError(f"a convolution of {x.type} is too large: use float32")
        left = tfl.reshape(g, seen, (rows, groups, 1, per_group))
        place = tfl.slice(g, filters, (0, 0, 0, k), (*filters.shape[:-1], 1))
        place = tfl.reshape(g, place, (1, *filters.shape[:-1]))
        term = tfl.sum(g, tfl.mul(g, left, place), [-1], False)
        term = tfl.reshape(g, term, (*seen.shape[:-1], out))
        total = term if total is None else tfl.add(g, total, term)
    assert total is not None
    if bias is not None:
        total = tfl.add(g, total, widened(g, bias))
    return tfl.cast(g, total, dtype)


def average_integers(
    g: Graph, x: Value, axes: Sequence[Axis], include_pad: bool, divisor: int | None
) -> Value:
    """Means of windows over the last axes of x, rounded towards zero."""
    wide, lead = widened(g, x), x.rank - len(axes)
    rows = tfl.pad(g, wide, [*[(0, 0)] * lead, *(a.pads for a in axes)])
    kernel, stride = [a.kernel for a in axes], [a.stride for a in axes]
    total: Value | None = None
    for seen in _seen(g, rows, lead, kernel, stride, [1] * len(axes)):
        term = tfl.slice(g, seen, [0] * x.rank, (*x.shape[:lead], *(a.out for a in axes)))
        total = term if total is None else tfl.add(g, total, term)
    assert total is not None
    if divisor is not None:
        return tfl.cast(g, div_mode(g, total, const(divisor, wide.dtype), "trunc"), x.dtype)
    counts = np.ones(())
    for a in axes:
        counts = counts[..., None] * (a.counts_with_padding if include_pad else a.counts)
    mean = div_mode(g, total, const(counts.astype(np.int64), wide.dtype), "trunc")
    return tfl.cast(g, mean, x.dtype)


def _seen(
    g: Graph,
    x: Value,
    first: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Iterator[Value]:
    """What each place of the kernel sees of x, whose spatial axes begin at `first`."""
    sizes = dims.static(x.shape[first : first + len(kernel)])
    spans = list(zip(sizes, kernel, stride, dilation, strict=True))
    out = [(size - d * (k - 1) - 1) // s + 1 for size, k, s, d in spans]
    lead: Shape = x.shape[:first]
    rest: Shape = x.shape[first + len(kernel) :]
    for place in np.ndindex(*kernel):
        start = [int(p) * d for p, d in zip(place, dilation, strict=True)]
        end = [b + (o - 1) * s + 1 for b, o, s in zip(start, out, stride, strict=True)]
        yield tfl.strided_slice(
            g,
            x,
            (*[0] * first, *start, *[0] * len(rest)),
            (*lead, *end, *rest),
            (*[1] * first, *stride, *[1] * len(rest)),
        )
