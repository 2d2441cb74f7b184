"""Interpolation: F.interpolate and nn.Upsample in every mode.

RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR where their coordinates are PyTorch's. Otherwise each
axis by itself: nearest by GATHER at the indices, linear maps by the matrix that PyTorch's own op
gives (`resampling.py`). PyTorch uses a scale factor it was given instead of the ratio of the sizes,
even where the size was rounded: then only the second form is exact.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Dim, Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.channel_last import (
    as_image,
    from_image,
    on_channel_last,
    require_float,
)
from litert_torch.converter.lowerings.resampling import resampled
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

Factors = Sequence[float | None]

_NEAREST = aten.upsample_nearest1d.default
_NEAREST_EXACT = aten._upsample_nearest_exact1d.default


def _target(
    x: Value,
    output_size: Sequence[Size] | None,
    scale_factors: Sequence[float] | None,
    spatial: int,
) -> tuple[tuple[Size, ...], Factors]:
    """The new spatial sizes, and the scale factor of each axis where one was given."""
    if output_size is not None:
        return tuple(output_size), [None] * spatial
    factors = list(scale_factors or [])
    return tuple(map(_scaled, x.shape[2:], factors)), factors


def _scaled(size: Size, factor: float) -> Size:
    if isinstance(size, int):
        return int(size * factor)
    if factor == int(factor):
        return size * int(factor)
    raise UnsupportedCaseError(
        f"resizing a dynamic size by {factor}: give a whole factor, or drop it from dynamic_shapes"
    )


# -- nearest ---------------------------------------------------------------------------------------


@lowers(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec, aten.upsample_nearest3d.vec)
def upsample_nearest_vec(
    g: Graph,
    x: Value,
    output_size: Sequence[Size] | None,
    scale_factors: Sequence[float] | None,
) -> Value:
    """Elements at floor(i * size_in / size_out)."""
    return _nearest(g, x, *_target(x, output_size, scale_factors, x.rank - 2), _NEAREST)


@lowers(
    aten._upsample_nearest_exact1d.vec,
    aten._upsample_nearest_exact2d.vec,
    aten._upsample_nearest_exact3d.vec,
)
def upsample_nearest_exact_vec(
    g: Graph,
    x: Value,
    output_size: Sequence[Size] | None,
    scale_factors: Sequence[float] | None,
) -> Value:
    """Elements at floor((i + 0.5) * size_in / size_out)."""
    return _nearest(g, x, *_target(x, output_size, scale_factors, x.rank - 2), _NEAREST_EXACT)


def _register_nearest(ops: Sequence[Any], op: Any) -> None:
    """The overloads with one argument for each scale."""

    @lowers(ops[0])
    def nearest1d(
        g: Graph, x: Value, output_size: Sequence[Size], scales: float | None = None
    ) -> Value:
        return _nearest(g, x, output_size, [scales], op)

    @lowers(ops[1])
    def nearest2d(
        g: Graph,
        x: Value,
        output_size: Sequence[Size],
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Value:
        return _nearest(g, x, output_size, [scales_h, scales_w], op)

    @lowers(ops[2])
    def nearest3d(
        g: Graph,
        x: Value,
        output_size: Sequence[Size],
        scales_d: float | None = None,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Value:
        return _nearest(g, x, output_size, [scales_d, scales_h, scales_w], op)


_register_nearest(
    [
        aten.upsample_nearest1d.default,
        aten.upsample_nearest2d.default,
        aten.upsample_nearest3d.default,
    ],
    _NEAREST,
)
_register_nearest(
    [
        aten._upsample_nearest_exact1d.default,
        aten._upsample_nearest_exact2d.default,
        aten._upsample_nearest_exact3d.default,
    ],
    _NEAREST_EXACT,
)


def _nearest(g: Graph, x: Value, size: Sequence[Size], factors: Factors, op: Any) -> Value:
    """Of x [N, C, *spatial]: nearest elements, axis by axis where RESIZE would pick others."""
    axes = list(zip(x.shape[2:], size, factors, strict=True))
    if len(axes) <= 2 and x.dtype.is_float and all(_is_resize(*axis, op) for axis in axes):
        return _resize_nearest(g, x, size, half_pixel_centers=op is _NEAREST_EXACT)
    for axis, (before, after, factor) in enumerate(axes, start=2):
        if before == after and factor is None:
            continue
        places = _nearest_indices(int(before), int(after), factor, op)
        x = tfl.gather(g, x, tfl.const(places), axis=axis)
    return x


def _resize_nearest(g: Graph, x: Value, size: Sequence[Size], *, half_pixel_centers: bool) -> Value:
    def resized(rows: Value) -> Value:
        image = as_image(g, rows)
        target = (1, *size) if rows.rank == 3 else tuple(size)
        y = tfl.resize_nearest_neighbor(g, image, target, half_pixel_centers=half_pixel_centers)
        return from_image(g, y, rows.rank)

    return on_channel_last(g, x, x.rank - 2, resized)


def _nearest_indices(size: int, new: int, factor: float | None, op: Any) -> Array:
    """Where PyTorch takes each element from: int32 [new]."""
    places = torch.arange(size, dtype=torch.float32).reshape(1, 1, size)
    return op(places, [new], factor).reshape(new).numpy().astype(np.int32)


def _is_resize(size: Size, new: Size, factor: float | None, op: Any) -> bool:
    """Whether RESIZE_NEAREST_NEIGHBOR takes the elements that PyTorch takes."""
    if isinstance(size, Dim) or isinstance(new, Dim):
        return factor is None or factor == int(factor)
    offset = np.float32(0.5 if op is _NEAREST_EXACT else 0)
    ratio = np.float32(size) / np.float32(new)
    places = np.floor((np.arange(new, dtype=np.float32) + offset) * ratio).astype(np.int32)
    return np.array_equal(np.minimum(places, size - 1), _nearest_indices(size, new, factor, op))


# -- linear ----------------------------------------------------------------------------------------


@lowers(aten.upsample_linear1d.vec)
def upsample_linear1d_vec(
    g: Graph,
    x: Value,
    output_size: Sequence[Size] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> Value:
    """Of x [N, C, L]."""
    return _linear(g, x, *_target(x, output_size, scale_factors, 1), align_corners)


@lowers(aten.upsample_linear1d.default)
def upsample_linear1d(
    g: Graph,
    x: Value,
    output_size: Sequence[Size],
    align_corners: bool,
    scales: float | None = None,
) -> Value:
    """Of x [N, C, L]."""
    return _linear(g, x, output_size, [scales], align_corners)


@lowers(aten.upsample_bilinear2d.vec)
def upsample_bilinear2d_vec(
    g: Graph,
    x: Value,
    output_size: Sequence[Size] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> Value:
    """Of x [N, C, H, W]."""
    return _bilinear(g, x, *_target(x, output_size, scale_factors, 2), align_corners)


@lowers(aten.upsample_bilinear2d.default)
def upsample_bilinear2d(
    g: Graph,
    x: Value,
    output_size: Sequence[Size],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Of x [N, C, H, W]."""
    return _bilinear(g, x, output_size, [scales_h, scales_w], align_corners)


@lowers(aten.upsample_trilinear3d.vec)
def upsample_trilinear3d_vec(
    g: Graph,
    x: Value,
    output_size: Sequence[Size] | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> Value:
    """Of x [N, C, D, H, W]."""
    return _linear(g, x, *_target(x, output_size, scale_factors, 3), align_corners)


@lowers(aten.upsample_trilinear3d.default)
def upsample_trilinear3d(
    g: Graph,
    x: Value,
    output_size: Sequence[Size],
    align_corners: bool,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Value:
    """Of x [N, C, D, H, W]."""
    return _linear(g, x, output_size, [scales_d, scales_h, scales_w], align_corners)


def _bilinear(
    g: Graph, x: Value, size: Sequence[Size], factors: Factors, align_corners: bool
) -> Value:
    require_float(x, "bilinear resizing")
    axes = list(zip(x.shape[2:], size, factors, strict=True))
    if not (align_corners or all(_is_ratio(*axis) for axis in axes)):
        return _linear(g, x, size, factors, align_corners)

    def resized(rows: Value) -> Value:
        return tfl.resize_bilinear(
            g, rows, size, align_corners=align_corners, half_pixel_centers=not align_corners
        )

    return on_channel_last(g, x, 2, resized)


def _is_ratio(size: Size, new: Size, factor: float | None) -> bool:
    """Whether the ratio of the sizes is the scale that PyTorch uses."""
    if factor is None:
        return True
    if isinstance(size, int) and isinstance(new, int):
        return size * factor == new
    return factor == int(factor)


def _linear(
    g: Graph, x: Value, size: Sequence[Size], factors: Factors, align_corners: bool
) -> Value:
    """Of x [N, C, *spatial], each axis by PyTorch's linear interpolation along it."""
    require_float(x, "linear resizing")
    op = aten.upsample_linear1d.default
    return _by_axis(g, x, size, factors, op, lambda new, f: [[new], align_corners, f], image=False)


# -- cubic and antialiased -------------------------------------------------------------------------


def _register_filtered(packet: Any) -> None:
    """Both overloads of a two-dimensional op that is separable and linear."""
    op = packet.default

    def resize(
        g: Graph, x: Value, size: Sequence[Size], factors: Factors, align_corners: bool
    ) -> Value:
        require_float(x, "resizing")
        args = _column_arguments(align_corners)
        return _by_axis(g, x, size, factors, op, args, image=True)

    @lowers(packet.vec)
    def vec(
        g: Graph,
        x: Value,
        output_size: Sequence[Size] | None,
        align_corners: bool,
        scale_factors: Sequence[float] | None,
    ) -> Value:
        return resize(g, x, *_target(x, output_size, scale_factors, 2), align_corners)

    @lowers(packet.default)
    def default(
        g: Graph,
        x: Value,
        output_size: Sequence[Size],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Value:
        return resize(g, x, output_size, [scales_h, scales_w], align_corners)


def _column_arguments(align_corners: bool) -> Callable[[int, float | None], list[Any]]:
    """The op's arguments on an image of two columns."""
    return lambda new, factor: [[new, 2], align_corners, factor, None]


for _packet in (
    aten.upsample_bicubic2d,
    aten._upsample_bilinear2d_aa,
    aten._upsample_bicubic2d_aa,
    getattr(aten, "_upsample_lanczos2d_aa", None),
):
    if _packet is not None:
        _register_filtered(_packet)


def _by_axis(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    factors: Factors,
    op: Any,
    arguments: Callable[[int, float | None], list[Any]],
    *,
    image: bool,
) -> Value:
    axes = reversed(list(enumerate(zip(x.shape[2:], size, factors, strict=True), start=2)))
    for axis, (before, after, factor) in axes:
        if before == after and factor in (None, 1):
            continue
        (new,) = dims.static([after])
        x = resampled(g, x, axis, new, op, arguments(new, factor), image=image)
    return x
