"""Convolutions, also transposed ones, over any number of axes; NCHW as PyTorch has them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array
from litert_torch.tpu.lowerings.windows import per_axis

aten = torch.ops.aten

Pads = Sequence[tuple[int, int]]


def _numbers(rank: int) -> lax.ConvDimensionNumbers:
    order = tuple(range(rank))
    return lax.ConvDimensionNumbers(order, order, order)


def _convolved(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    pads: Pads,
    dilation: Sequence[int],
    groups: int,
    input_dilation: Sequence[int] | None = None,
) -> Array:
    """X [N, C, *], or [C, *] without a batch, with weight [O, C/groups, *]."""
    spatial = weight.ndim - 2
    if x.ndim == spatial + 1:
        args = (weight, bias, stride, pads, dilation, groups, input_dilation)
        return _convolved(x[None], *args)[0]
    result = lax.conv_general_dilated(
        x,
        weight,
        window_strides=per_axis(stride, spatial),
        padding=list(pads),
        lhs_dilation=input_dilation,
        rhs_dilation=per_axis(dilation, spatial),
        dimension_numbers=_numbers(x.ndim),
        feature_group_count=groups,
        preferred_element_type=None if x.dtype.kind == "c" else x.dtype,
    )
    return result if bias is None else result + bias.reshape(-1, *[1] * spatial)


def _transposed(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
) -> Array:
    """X with weight [C, O/groups, *]: a convolution of the input spread out, the filter flipped."""
    spatial = weight.ndim - 2
    stride, padding, output_padding, dilation = (
        per_axis(v, spatial) for v in (stride, padding, output_padding, dilation)
    )
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    pads = [(r - p, r - p + o) for r, p, o in zip(reach, padding, output_padding, strict=True)]
    channels_in, channels_out, *kernel = weight.shape
    grouped = weight.reshape(groups, channels_in // groups, channels_out, *kernel)
    filters = jnp.swapaxes(grouped, 1, 2).reshape(
        groups * channels_out, channels_in // groups, *kernel
    )
    flipped = jnp.flip(filters, range(2, weight.ndim))
    return _convolved(x, flipped, bias, [1] * spatial, pads, dilation, groups, stride)


@lowers(aten.convolution.default)
def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Array:
    """The form in Core ATen, of any number of axes."""
    if transposed:
        return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation)
    pads = [(p, p) for p in per_axis(padding, weight.ndim - 2)]
    return _convolved(x, weight, bias, stride, pads, dilation, groups)


def _conv(spatial: int) -> Callable[..., Array]:
    ones, zeros = [1] * spatial, [0] * spatial

    def lowering(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = ones,
        padding: Any = zeros,
        dilation: Any = ones,
        groups: int = 1,
    ) -> Array:
        pads = [(p, p) for p in per_axis(padding, spatial)]
        return _convolved(x, weight, bias, stride, pads, dilation, groups)

    return lowering


def _conv_padded(spatial: int) -> Callable[..., Array]:
    """`padding` is 'valid' or 'same'; 'same' puts the odd one at the end."""
    ones = [1] * spatial

    def lowering(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = ones,
        padding: str = "valid",
        dilation: Any = ones,
        groups: int = 1,
    ) -> Array:
        pads = [(0, 0)] * spatial
        if padding == "same":
            steps = zip(per_axis(dilation, spatial), weight.shape[2:], strict=True)
            total = [d * (k - 1) for d, k in steps]
            pads = [(t // 2, t - t // 2) for t in total]
        return _convolved(x, weight, bias, stride, pads, dilation, groups)

    return lowering


def _conv_transpose(spatial: int) -> Callable[..., Array]:
    ones, zeros = [1] * spatial, [0] * spatial

    def lowering(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = ones,
        padding: Any = zeros,
        output_padding: Any = zeros,
        groups: int = 1,
        dilation: Any = ones,
    ) -> Array:
        return _transposed(x, weight, bias, stride, padding, output_padding, groups, dilation)

    return lowering


lowers.one_to_one(
    {
        aten.conv1d.default: _conv(1),
        aten.conv2d.default: _conv(2),
        aten.conv3d.default: _conv(3),
        aten.conv1d.padding: _conv_padded(1),
        aten.conv2d.padding: _conv_padded(2),
        aten.conv3d.padding: _conv_padded(3),
        aten.conv_transpose1d.default: _conv_transpose(1),
        aten.conv_transpose2d.input: _conv_transpose(2),
        aten.conv_transpose3d.input: _conv_transpose(3),
    }
)
