"""Sizes of windows that slide over axes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from litert_torch.tpu.lowerings.promotion import Array


def per_axis(value: Sequence[int] | int, count: int) -> tuple[int, ...]:
    """One number for each axis, where one may be given for all."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * count if len(values) == 1 else values


@dataclass(frozen=True)
class Windows:
    """Windows over the last axes of a tensor; one number an axis.

    Attributes:
        kernel: The window's size.
        stride: Its steps.
        padding: What is added on either side.
        dilation: The steps between its elements.
        extra: What `ceil_mode` adds at the end, beyond the padding.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]

    @property
    def axes(self) -> int:
        """How many axes the windows slide over."""
        return len(self.kernel)

    @property
    def pads(self) -> list[tuple[int, int]]:
        """What is added before and after each axis."""
        return [(p, p + e) for p, e in zip(self.padding, self.extra, strict=True)]

    def reduce(self, x: Array, start: Any, function: Callable[[Any, Any], Any]) -> Array:
        """The windows of x reduced by a `lax` function, `start` where nothing is."""
        ones = (1,) * (x.ndim - self.axes)
        none = [(0, 0)] * (x.ndim - self.axes)
        return lax.reduce_window(
            x,
            jnp.asarray(start, x.dtype),
            function,
            (*ones, *self.kernel),
            (*ones, *self.stride),
            [*none, *self.pads],
            window_dilation=(*ones, *self.dilation),
        )


def windows(
    sizes: Sequence[Any],
    kernel: Any,
    stride: Any,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Windows:
    """As the arguments of PyTorch's pooling ops say, for an input with these sizes."""
    count = len(sizes)
    kernel, padding, dilation = (per_axis(v, count) for v in (kernel, padding, dilation))
    stride = kernel if not isinstance(stride, int) and not len(stride) else per_axis(stride, count)
    each = zip(sizes, kernel, stride, padding, dilation, strict=True)
    extra = tuple(_extra(*one) if ceil_mode else 0 for one in each)
    return Windows(kernel, stride, padding, dilation, extra)


def _extra(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """What the last window of `ceil_mode`, which begins inside, has beyond the padding."""
    left = size + 2 * padding - dilation * (kernel - 1) - 1
    count = -(-left // stride) + 1
    if (count - 1) * stride >= size + padding:
        count -= 1
    return max(0, (count - 1) * stride - left)
