"""Pooling to a given size: windows differ by one where the sizes do not divide."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import INT64, Array, as_dtype, wide
from litert_torch.tpu.lowerings.windows import per_axis

aten = torch.ops.aten


def _bounds(size: int, result: int) -> tuple[Any, Any]:
    """Where each window begins and ends."""
    i = np.arange(result)
    return i * size // result, -(-(i + 1) * size // result)


def _averaged(x: Array, axis: int, result: int) -> Array:
    """Means along one axis, as a product with a matrix; as one mean where there is one window."""
    if isinstance(result, int) and result == 1:
        return jnp.mean(x, axis, keepdims=True)
    size = x.shape[axis]
    if size % result == 0:
        parts = x.reshape(*x.shape[:axis], result, size // result, *x.shape[axis + 1 :])
        return jnp.mean(parts, axis + 1)
    start, end = _bounds(size, result)
    at = np.arange(size)
    inside = (at >= start[:, None]) & (at < end[:, None])
    shares = (inside / (end - start)[:, None]).astype(x.dtype)
    numbers = (((axis,), (1,)), ((), ()))
    product = lax.dot_general(x, jnp.asarray(shares), numbers, precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(product, -1, axis)


def adaptive_average(x: Array, output_size: Any, axes: int) -> Array:
    """The means over the windows of the last axes."""
    result, first = wide(x), x.ndim - axes
    for i, size in enumerate(per_axis(output_size, axes)):
        result = _averaged(result, first + i, size)
    return as_dtype(result, x.dtype)


def _average(axes: int) -> Callable[[Array, Any], Array]:
    def lowering(x: Array, output_size: Any) -> Array:
        return adaptive_average(x, output_size, axes)

    return lowering


lowers.one_to_one(
    {
        aten.adaptive_avg_pool1d.default: _average(1),
        aten.adaptive_avg_pool2d.default: _average(2),
        aten._adaptive_avg_pool2d.default: _average(2),
        aten.adaptive_avg_pool3d.default: _average(3),
        aten._adaptive_avg_pool3d.default: _average(3),
    }
)


def _windowed(x: Array, axis: int, result: int, beyond: Any) -> Array:
    """[..., size, ...] to [..., result, longest window, ...]."""
    start, end = _bounds(x.shape[axis], result)
    longest = int((end - start).max()) if result else 0
    places = start[:, None] + np.arange(longest)
    taken = jnp.take(x, np.minimum(places, x.shape[axis] - 1).astype(np.int32), axis=axis)
    inside = (places < end[:, None]).reshape(result, longest, *[1] * (x.ndim - axis - 1))
    return jnp.where(inside, taken, jnp.asarray(beyond, x.dtype))


def _maximum(x: Array, sizes: Sequence[int]) -> tuple[Array, Array]:
    """(maxima, int64 places in the flattened last axes)."""
    axes, rank = len(sizes), x.ndim
    first = rank - axes
    count = int(np.prod(x.shape[first:]))
    spatial = np.arange(count, dtype=np.int32).reshape(x.shape[first:])
    places = jnp.broadcast_to(jnp.asarray(spatial), x.shape)
    values = x
    for i, size in enumerate(sizes):  # each makes its axis two: windows, and elements of one
        axis = first + 2 * i
        values, places = _windowed(values, axis, size, -jnp.inf), _windowed(places, axis, size, 0)
    pooled = range(first, first + 2 * axes)
    order = (*range(first), *pooled[::2], *pooled[1::2])
    flat = [jnp.transpose(t, order).reshape(*x.shape[:first], *sizes, -1) for t in (values, places)]
    best = lax.argmax(flat[0], flat[0].ndim - 1, jnp.int32)[..., None]
    chosen = [jnp.take_along_axis(t, best, axis=-1)[..., 0] for t in flat]
    return chosen[0], chosen[1].astype(INT64)


def _maximum_op(axes: int) -> Callable[[Array, Any], tuple[Array, Array]]:
    def lowering(x: Array, output_size: Any) -> tuple[Array, Array]:
        return _maximum(x, per_axis(output_size, axes))

    return lowering


lowers.one_to_one(
    {
        aten.adaptive_max_pool1d.default: _maximum_op(1),
        aten.adaptive_max_pool2d.default: _maximum_op(2),
        aten.adaptive_max_pool3d.default: _maximum_op(3),
    }
)
