"""How pooling windows lie over an image, and pools over one to three axes by pools over two."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.litert_ops import SAME, same_padding, window_output
from litert_torch.converter.lowerings.channel_last import Pair, per_axis
from litert_torch.errors import UnsupportedCaseError


@dataclass(frozen=True)
class Axis:
    """How windows lie along one axis; `after` may be less than 0 where elements are left over."""

    size: Size
    out: Size
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    padding: int

    @property
    def pads(self) -> Pair:
        """Elements to add before and after."""
        return self.before, max(self.after, 0)

    @property
    def counts(self) -> Array:
        """Elements of each window inside the axis."""
        start = np.arange(int(self.out)) * self.stride - self.before
        inside = np.minimum(start + self.kernel, int(self.size)) - np.maximum(start, 0)
        return inside.astype(np.float64)

    @property
    def counts_with_padding(self) -> Array:
        """As `counts`, with the padding of `padding` elements on each side counted too."""
        start = np.arange(int(self.out)) * self.stride - self.before
        end = np.minimum(start + self.kernel, int(self.size) + self.padding)
        return (end - start).astype(np.float64)


def axis_of(
    size: Size, kernel: int, stride: int, dilation: int, padding: int, ceil_mode: bool
) -> Axis:
    """One axis of a pool with PyTorch's arguments."""
    reach = dilation * (kernel - 1) + 1
    if not isinstance(size, int):
        if ceil_mode:
            raise UnsupportedCaseError("ceil_mode needs a fixed size: drop it from dynamic_shapes")
        out = (size + (2 * padding - reach)) // stride + 1
        return Axis(size, out, kernel, stride, dilation, padding, padding, padding)
    out = (size + 2 * padding - reach + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:
        out -= 1  # no window starts in the padding after the end
    after = (out - 1) * stride + reach - size - padding
    return Axis(size, out, kernel, stride, dilation, padding, after, padding)


def axes_of(
    sizes: Sequence[Size],
    kernel: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> list[Axis]:
    """The axes of a pool; each argument is one number or one for each axis, no stride is kernel."""
    n = len(sizes)
    kernels = per_axis(kernel, n)
    strides = per_axis(stride, n) if stride or isinstance(stride, int) else kernels
    pads, dilations = per_axis(padding, n), per_axis(dilation, n)
    columns = zip(sizes, kernels, strides, dilations, pads, strict=True)
    return [axis_of(*column, ceil_mode) for column in columns]


def over_images(
    g: Graph,
    x: Value,
    axes: Sequence[Axis],
    pool: Callable[[Graph, Value, Axis, Axis], Value],
) -> Value:
    """`pool` of [N, H, W, C] as a pool of [N, *spatial, C] with one to three axes.

    Over three axes it is a pool over the last two, then one over the first: maxima and means of
    boxes are separable.
    """
    point = axis_of(1, 1, 1, 1, 0, False)
    n, c = x.shape[0], x.shape[-1]
    outs = [a.out for a in axes]
    if len(axes) == 1:
        y = pool(g, tfl.expand_dims(g, x, 1), point, axes[0])
    elif len(axes) == 2:
        y = pool(g, x, *axes)
    else:
        depth, *image = axes
        y = pool(g, tfl.reshape(g, x, (n * depth.size, *(a.size for a in image), c)), *image)
        y = tfl.reshape(g, y, (n, depth.size, outs[1] * outs[2], c))
        y = pool(g, y, depth, axis_of(outs[1] * outs[2], 1, 1, 1, 0, False))
    return tfl.reshape(g, y, (n, *outs, c))


def is_same(a: Axis) -> bool:
    """Whether SAME pads this axis as PyTorch does."""
    if a.stride > 1 and not isinstance(a.size, int):
        return False
    size = a.size if isinstance(a.size, int) else 1
    if isinstance(a.size, int) and window_output(a.size, a.kernel, a.stride, 1, SAME) != a.out:
        return False
    return same_padding(size, a.kernel, a.stride) == (a.before, a.after)
