"""Means over windows."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype, is_integral, wide
from litert_torch.tpu.lowerings.windows import Windows, windows

aten = torch.ops.aten


def average(x: Array, w: Windows, count_include_pad: bool, divisor: int | None) -> Array:
    """The means of windows; the sums over `divisor` if one is given."""
    total = w.reduce(wide(x), 0, lax.add)
    if divisor is None and count_include_pad and not any(w.extra):
        divisor = 1
        for k in w.kernel:
            divisor *= k
    count = (
        as_dtype(divisor, total.dtype) if divisor is not None else _counts(x, w, count_include_pad)
    )
    if is_integral(x):
        return lax.div(total, jnp.broadcast_to(count.astype(total.dtype), total.shape))
    return as_dtype(total / count, x.dtype)


def _counts(x: Array, w: Windows, count_include_pad: bool) -> Array:
    """How many elements each window has, with the padding or without; never beyond it."""
    sizes = x.shape[x.ndim - w.axes :]
    if count_include_pad:
        inside = jnp.ones([s + 2 * p for s, p in zip(sizes, w.padding, strict=True)], jnp.float32)
        bare = Windows(w.kernel, w.stride, (0,) * w.axes, w.dilation, w.extra)
        return bare.reduce(inside, 0, lax.add)
    return w.reduce(jnp.ones(sizes, jnp.float32), 0, lax.add)


@lowers(aten.avg_pool1d.default)
def avg_pool1d(
    x: Array,
    kernel_size: Any,
    stride: Any = [],  # the schema's default
    padding: Any = [0],
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Means over windows of the last axis."""
    w = windows(x.shape[-1:], kernel_size, stride, padding, 1, ceil_mode)
    return average(x, w, count_include_pad, None)


def _pool(axes: int) -> Callable[..., Array]:
    empty, zeros = list[int](), [0] * axes

    def lowering(
        x: Array,
        kernel_size: Any,
        stride: Any = empty,
        padding: Any = zeros,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        w = windows(x.shape[x.ndim - axes :], kernel_size, stride, padding, 1, ceil_mode)
        return average(x, w, count_include_pad, divisor_override)

    return lowering


lowers.one_to_one({aten.avg_pool2d.default: _pool(2), aten.avg_pool3d.default: _pool(3)})
