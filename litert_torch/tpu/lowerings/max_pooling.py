"""Maxima over windows, with the places they come from."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT32, INT64, Array, is_integral
from litert_torch.tpu.lowerings.windows import Windows, windows

aten = torch.ops.aten


def _least(x: Array) -> Any:
    return jnp.iinfo(x.dtype).min if is_integral(x) else -jnp.inf


def _maxima(x: Array, w: Windows) -> Array:
    return w.reduce(x, _least(x), lax.max)


def _with_places(x: Array, w: Windows) -> tuple[Array, Array]:
    """(maxima, int64 places in the flattened last axes): the first of equals, the last NaN."""
    spatial = x.shape[x.ndim - w.axes :]
    count = 1
    for s in spatial:
        count *= s
    places = jnp.broadcast_to(lax.iota(INT32, count).reshape(spatial), x.shape)

    def later(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        (va, pa), (vb, pb) = a, b
        second = (vb > va) | ((vb == va) & (pb < pa)) | ((vb != vb) & ~((va != va) & (pa > pb)))
        return lax.select(second, vb, va), lax.select(second, pb, pa)

    ones, none = (1,) * (x.ndim - w.axes), [(0, 0)] * (x.ndim - w.axes)
    values, found = lax.reduce_window(
        (x, places),
        (jnp.asarray(_least(x), x.dtype), jnp.asarray(count, INT32)),
        later,
        (*ones, *w.kernel),
        (*ones, *w.stride),
        [*none, *w.pads],
        window_dilation=(*ones, *w.dilation),
    )
    return values, found.astype(INT64)


def _of(x: Array, axes: int, arguments: tuple[Any, ...]) -> Windows:
    return windows(x.shape[x.ndim - axes :], *arguments)


def _pool(axes: int, reduce: Callable[[Array, Windows], Any]) -> Callable[..., Any]:
    empty, zeros, ones = list[int](), [0] * axes, [1] * axes

    def lowering(
        x: Array,
        kernel_size: Any,
        stride: Any = empty,
        padding: Any = zeros,
        dilation: Any = ones,
        ceil_mode: bool = False,
    ) -> Any:
        return reduce(x, _of(x, axes, (kernel_size, stride, padding, dilation, ceil_mode)))

    return lowering


lowers.one_to_one(
    {
        aten.max_pool1d.default: _pool(1, _maxima),
        aten.max_pool2d.default: _pool(2, _maxima),
        aten.max_pool3d.default: _pool(3, _maxima),
        aten.max_pool1d_with_indices.default: _pool(1, _with_places),
        aten.max_pool2d_with_indices.default: _pool(2, _with_places),
        aten.max_pool3d_with_indices.default: _pool(3, _with_places),
    }
)
