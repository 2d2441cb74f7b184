"""Layer, RMS, group and instance normalization, in the ops that every accelerator has.

The forms are SUB, SQUARE, MEAN, RSQRT, MUL, ADD. Group statistics are means of channel statistics,
so that the large tensors keep their shape and layout; only [N, 1, 1, C] is reshaped.
"""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.batch_normalization import by_statistics
from litert_torch.converter.lowerings.channel_last import to_channel_first, to_channel_last
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


@lowers(aten.layer_norm.default)
def layer_norm(
    g: Graph,
    x: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Value:
    """Over the last axes of x, as many as `normalized_shape` has."""
    return native_layer_norm(g, x, normalized_shape, weight, bias, eps)[0]


@lowers(aten.native_layer_norm.default)
def native_layer_norm(
    g: Graph,
    x: Value,
    normalized_shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> list[Value]:
    """The result, the means, and 1 / sqrt(variance + eps)."""
    axes = _last_axes(normalized_shape)
    mean = tfl.mean(g, x, axes, True)
    centred = tfl.sub(g, x, mean)
    scale = _reciprocal_root(g, tfl.mean(g, tfl.square(g, centred), axes, True), eps)
    y = _affine(g, tfl.mul(g, centred, scale), weight, bias)
    return [y, mean, scale]


@lowers(aten.rms_norm.default)
def rms_norm(
    g: Graph,
    x: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    """x / sqrt(mean(x²) + eps) over the last axes of x."""
    return fused_rms_norm(g, x, normalized_shape, weight, eps)[0]


@lowers(aten._fused_rms_norm.default)
def fused_rms_norm(
    g: Graph, x: Value, normalized_shape: Sequence[int], weight: Value | None, eps: float | None
) -> list[Value]:
    """The result, and 1 / sqrt(mean(x²) + eps)."""
    axes = _last_axes(normalized_shape)
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    scale = _reciprocal_root(g, tfl.mean(g, tfl.square(g, x), axes, True), eps)
    return [_affine(g, tfl.mul(g, x, scale), weight, None), scale]


def _last_axes(normalized_shape: Sequence[int]) -> list[int]:
    return list(range(-len(normalized_shape), 0))


def _reciprocal_root(g: Graph, variance: Value, eps: float) -> Value:
    return tfl.rsqrt(g, tfl.add(g, variance, const(eps, DType.FLOAT32)))


def _affine(g: Graph, x: Value, weight: Value | None, bias: Value | None) -> Value:
    x = x if weight is None else tfl.mul(g, x, weight)
    return x if bias is None else tfl.add(g, x, bias)


@lowers(aten.group_norm.default)
def group_norm(
    g: Graph,
    x: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Value:
    """Over each of `num_groups` groups of channels of x [N, C, *spatial]."""
    return _grouped(g, x, num_groups, weight, bias, eps)[0]


@lowers(aten.native_group_norm.default)
def native_group_norm(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    N: Size,  # noqa: N803
    C: Size,  # noqa: N803
    HxW: Size,  # noqa: N803
    group: int,
    eps: float,
) -> list[Value]:
    """The result, then means and 1 / sqrt(variance + eps) as [N, group]."""
    return _grouped(g, x, group, weight, bias, eps)


@lowers(aten.instance_norm.default)
def instance_norm(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    """Over the spatial axes of x [N, C, *spatial], or by stored statistics."""
    if use_input_stats:
        return _grouped(g, x, int(x.shape[1]), weight, bias, eps)[0]
    if running_mean is None or running_var is None:
        raise UnsupportedCaseError("instance_norm without input statistics needs running ones")
    return by_statistics(g, x, weight, bias, running_mean, running_var, eps)


def _grouped(
    g: Graph, x: Value, groups: int, weight: Value | None, bias: Value | None, eps: float
) -> list[Value]:
    rows = to_channel_last(g, x)
    centred, mean = _centred(g, rows, groups)
    scale = _reciprocal_root(g, _group_mean(g, tfl.square(g, centred), groups), eps)
    factor = _per_channel(g, scale, rows, weight)
    y = tfl.mul(g, centred, factor)
    y = y if bias is None else tfl.add(g, y, bias)
    per_group = (x.shape[0], groups)
    return [to_channel_first(g, y), *(tfl.reshape(g, v, per_group) for v in (mean, scale))]


def _centred(g: Graph, x: Value, groups: int) -> tuple[Value, Value]:
    mean = _group_mean(g, x, groups)
    return tfl.sub(g, x, _per_channel(g, mean, x, None)), mean


def _group_mean(g: Graph, x: Value, groups: int) -> Value:
    """Means of x [N, *spatial, C] over space and each group of channels: [N, groups, 1]."""
    n, c = x.shape[0], x.shape[-1]
    per_channel = tfl.mean(g, x, list(range(1, x.rank - 1)), True) if x.rank > 2 else x
    grouped = tfl.reshape(g, per_channel, (n, groups, int(c) // groups))
    return grouped if groups == c else tfl.mean(g, grouped, [2], True)


def _per_channel(g: Graph, v: Value, x: Value, weight: Value | None) -> Value:
    """[N, groups, 1] as [N, 1, ..., C], times a weight [C]."""
    groups, c = int(v.shape[1]), int(x.shape[-1])
    if groups != c:
        v = tfl.mul(g, v, const(np.ones((1, 1, c // groups), np.float32)))
    v = tfl.reshape(g, v, (x.shape[0], *(1,) * (x.rank - 2), c))
    return v if weight is None else tfl.mul(g, v, weight)
