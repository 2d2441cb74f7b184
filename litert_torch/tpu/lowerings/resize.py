"""Images resized: each axis by itself, as a product with a matrix of weights or by taking rows."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import FLOAT32, INT32, Array, as_dtype, is_integral, wide

aten = torch.ops.aten

Weighting = Callable[[Array], Array]  # of the distance from a result's place, in elements


def _scale(size: Any, result: Any, align_corners: bool, scale: float | None) -> Any:
    """Input elements to one of the result."""
    if align_corners:
        return (size - 1) / (result - 1) if result > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else size / result


def _number(value: Any) -> Array:
    return (
        as_dtype(jnp.asarray(value), FLOAT32)
        if not isinstance(value, float)
        else (jnp.asarray(value, FLOAT32))
    )


def _places(result: Any, scale: Any, align_corners: bool) -> Array:
    """Where in the input each element of the result lies."""
    index = lax.iota(FLOAT32, result)
    return index * _number(scale) if align_corners else (index + 0.5) * _number(scale) - 0.5


def triangle(distance: Array) -> Array:
    """Weights of linear interpolation."""
    return jnp.maximum(1 - jnp.abs(distance), 0)


def cubic(a: float) -> Weighting:
    """Weights of cubic interpolation with the parameter `a`."""

    def weights(distance: Array) -> Array:
        d = jnp.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return jnp.where(d <= 1, near, jnp.where(d < 2, far, 0))

    return weights


def _matrix(size: Any, places: Array, reach: int, weighting: Weighting) -> Array:
    """[result, size]: the weights around each place; what is outside counts for the border."""
    first = jnp.floor(places) - (reach - 1)
    matrix = jnp.zeros((places.shape[0], size), FLOAT32)
    columns = lax.iota(INT32, size)
    for k in range(2 * reach):
        at = first + k
        inside = jnp.clip(at, 0, size - 1).astype(INT32)
        weight = weighting(places - at)
        matrix = matrix + jnp.where(columns == inside[:, None], weight[:, None], 0)
    return matrix


def _antialiased(size: Any, result: Any, scale: Any, reach: int, weighting: Weighting) -> Array:
    """[result, size]: the weights widened where the image shrinks, and of sum 1."""
    spread = max(float(scale), 1.0)
    support = reach * spread
    centre = (lax.iota(FLOAT32, result) + 0.5) * _number(scale)
    low = jnp.maximum(jnp.floor(centre - support + 0.5), 0)
    high = jnp.minimum(jnp.floor(centre + support + 0.5), size)
    columns = lax.iota(FLOAT32, size)
    inside = (columns >= low[:, None]) & (columns < high[:, None])
    weights = jnp.where(inside, weighting((columns + 0.5 - centre[:, None]) / spread), 0)
    return weights / jnp.sum(weights, 1, keepdims=True)


def _along(x: Array, axis: int, matrix: Array) -> Array:
    numbers = (((axis,), (1,)), ((), ()))
    product = lax.dot_general(x, matrix.astype(x.dtype), numbers, precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(product, -1, axis)


def _interpolated(
    x: Array,
    sizes: Sequence[Any],
    scales: Sequence[float | None],
    align_corners: bool,
    kind: str,
    antialias: bool = False,
) -> Array:
    """X [N, C, *] with its last axes resized."""
    reach = 2 if kind == "cubic" else 1
    result = x.astype(FLOAT32) if is_integral(x) else wide(x)
    for i, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis = x.ndim - len(sizes) + i
        have = x.shape[axis]
        step = _scale(have, size, align_corners, scale)
        if antialias:
            weighting = cubic(-0.5) if kind == "cubic" else triangle
            matrix = _antialiased(have, size, step, reach, weighting)
        else:
            places = _places(size, step, align_corners)
            if kind == "linear":
                places = jnp.clip(places, 0, have - 1)
            weighting = cubic(-0.75) if kind == "cubic" else triangle
            matrix = _matrix(have, places, reach, weighting)
        result = _along(result, axis, matrix)
    return as_dtype(jnp.clip(jnp.round(result), 0, 255) if is_integral(x) else result, x.dtype)


def _sizes(x: Array, output_size: Any, factors: Sequence[float] | None, axes: int) -> list[Any]:
    if output_size is not None:
        return list(output_size)
    assert factors is not None
    have = x.shape[x.ndim - axes :]
    return [math.floor(n * f) for n, f in zip(have, factors, strict=True)]


def _nearest(x: Array, sizes: Sequence[Any], scales: Sequence[float | None], exact: bool) -> Array:
    for i, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis = x.ndim - len(sizes) + i
        have = x.shape[axis]
        if isinstance(have, int) and isinstance(size, int) and have == size and scale is None:
            continue
        step = _number(_scale(have, size, False, scale))
        index = lax.iota(FLOAT32, size) + (0.5 if exact else 0)
        places = jnp.clip(jnp.floor(index * step).astype(INT32), 0, have - 1)
        x = jnp.take(x, places, axis=axis, mode="clip")
    return x


def _register_nearest(name: str, axes: int, exact: bool) -> None:
    packet = getattr(aten, name)

    @lowers(packet.vec)
    def vec(x: Array, output_size: Any, scale_factors: Sequence[float] | None) -> Array:
        scales: Sequence[float | None] = scale_factors or [None] * axes
        return _nearest(x, _sizes(x, output_size, scale_factors, axes), scales, exact)

    if axes == 1:

        @lowers(packet.default)
        def default(x: Array, output_size: Any, scales: float | None = None) -> Array:
            return _nearest(x, output_size, [scales], exact)

    elif axes == 2:

        @lowers(packet.default)
        def default2(
            x: Array, output_size: Any, scales_h: float | None = None, scales_w: float | None = None
        ) -> Array:
            return _nearest(x, output_size, [scales_h, scales_w], exact)

    else:

        @lowers(packet.default)
        def default3(
            x: Array,
            output_size: Any,
            scales_d: float | None = None,
            scales_h: float | None = None,
            scales_w: float | None = None,
        ) -> Array:
            return _nearest(x, output_size, [scales_d, scales_h, scales_w], exact)


for _axes in (1, 2, 3):
    _register_nearest(f"upsample_nearest{_axes}d", _axes, exact=False)
    _register_nearest(f"_upsample_nearest_exact{_axes}d", _axes, exact=True)


def _register_interpolation(name: str, axes: int, kind: str, antialias: bool = False) -> None:
    packet = getattr(aten, name)

    @lowers(packet.vec)
    def vec(
        x: Array, output_size: Any, align_corners: bool, scale_factors: Sequence[float] | None
    ) -> Array:
        sizes = _sizes(x, output_size, scale_factors, axes)
        scales: Sequence[float | None] = scale_factors or [None] * axes
        return _interpolated(x, sizes, scales, align_corners, kind, antialias)

    if axes == 1:

        @lowers(packet.default)
        def default(
            x: Array, output_size: Any, align_corners: bool, scales: float | None = None
        ) -> Array:
            return _interpolated(x, output_size, [scales], align_corners, kind, antialias)

    elif axes == 2:

        @lowers(packet.default)
        def default2(
            x: Array,
            output_size: Any,
            align_corners: bool,
            scales_h: float | None = None,
            scales_w: float | None = None,
        ) -> Array:
            scales = [scales_h, scales_w]
            return _interpolated(x, output_size, scales, align_corners, kind, antialias)

    else:

        @lowers(packet.default)
        def default3(
            x: Array,
            output_size: Any,
            align_corners: bool,
            scales_d: float | None = None,
            scales_h: float | None = None,
            scales_w: float | None = None,
        ) -> Array:
            scales = [scales_d, scales_h, scales_w]
            return _interpolated(x, output_size, scales, align_corners, kind, antialias)


_register_interpolation("upsample_linear1d", 1, "linear")
_register_interpolation("upsample_bilinear2d", 2, "linear")
_register_interpolation("upsample_trilinear3d", 3, "linear")
_register_interpolation("upsample_bicubic2d", 2, "cubic")
_register_interpolation("_upsample_bilinear2d_aa", 2, "linear", antialias=True)
_register_interpolation("_upsample_bicubic2d_aa", 2, "cubic", antialias=True)
