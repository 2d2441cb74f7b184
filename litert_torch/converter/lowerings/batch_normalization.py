"""Batch normalization by stored statistics: MUL and ADD, for a pass to fuse."""

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


@lowers(aten.batch_norm.default)
def batch_norm(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    """Of x [N, C, ...]; the batch's own statistics where `training`, or where none are stored."""
    if training or running_mean is None or running_var is None:
        return by_own_statistics(g, x, weight, bias, eps)
    return by_statistics(g, x, weight, bias, running_mean, running_var, eps)


@lowers(aten._native_batch_norm_legit_no_training.default)
def native_batch_norm_no_training(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> list[Value]:
    """The result and two empty tensors."""
    y = by_statistics(g, x, weight, bias, running_mean, running_var, eps)
    return [y, _empty(), _empty()]


@lowers(aten.native_batch_norm.default)
def native_batch_norm(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Value]:
    """The result, and each channel's mean and 1 / deviation in training, else two empty tensors."""
    if training:
        y, mean, scale = _by_batch(g, x, weight, bias, eps)
        return [y, *(tfl.reshape(g, v, (x.shape[1],)) for v in (mean, scale))]
    y = _evaluated(g, x, weight, bias, running_mean, running_var, training, eps)
    return [y, _empty(), _empty()]


@lowers(aten.cudnn_batch_norm.default)
def cudnn_batch_norm(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    exponential_average_factor: float,
    epsilon: float,
) -> list[Value]:
    """The result and three empty tensors."""
    y = _evaluated(g, x, weight, bias, running_mean, running_var, training, epsilon)
    return [y, _empty(), _empty(), const(np.zeros(0, np.uint8))]


@lowers(aten._batch_norm_no_update.default)
def batch_norm_no_update(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    momentum: float,
    eps: float,
) -> list[Value]:
    """The result and three empty tensors."""
    y = _evaluated(g, x, weight, bias, running_mean, running_var, False, eps)
    return [y, _empty(), _empty(), const(np.zeros(0, np.uint8))]


def _evaluated(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    training: bool,
    eps: float,
) -> Value:
    if training or mean is None or variance is None:
        raise UnsupportedCaseError(
            "batch normalization that updates its statistics: call .eval() on the module first"
        )
    return by_statistics(g, x, weight, bias, mean, variance, eps)


def _empty() -> Value:
    return const(np.zeros(0, np.float32))


def by_statistics(
    g: Graph,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    eps: float,
) -> Value:
    """x * scale + shift with one of each for a channel of x [N, C, ...]."""
    given = [v for v in (weight, bias, mean, variance) if v is not None]
    if all(v.const is not None for v in given):
        scale, shift = _folded(weight, bias, mean, variance, eps)
    else:
        scale = tfl.rsqrt(g, tfl.add(g, variance, const(eps, DType.FLOAT32)))
        scale = scale if weight is None else tfl.mul(g, scale, weight)
        shift = tfl.mul(g, mean, scale)
        shift = tfl.neg(g, shift) if bias is None else tfl.sub(g, bias, shift)
    y = tfl.mul(g, x, over_channels(g, scale, x.rank))
    return tfl.add(g, y, over_channels(g, shift, x.rank))


def over_channels(g: Graph, v: Value, rank: int) -> Value:
    """A vector [C] as [1, C, 1, ...] of `rank` axes."""
    return tfl.reshape(g, v, (1, *v.shape, *(1,) * (rank - 2)))


def _folded(
    weight: Value | None, bias: Value | None, mean: Value, variance: Value, eps: float
) -> tuple[Value, Value]:
    """Scale and shift by constants, computed in float64 when they are written."""
    w, b = (None if v is None else v.const for v in (weight, bias))

    def scale(variance: Array, weight: Array | float = 1.0) -> Array:
        return weight / np.sqrt(variance.astype(np.float64) + eps)

    def shift(mean: Array, variance: Array, *affine: Array) -> Array:
        factor = scale(variance, *affine[: w is not None])
        return (0.0 if b is None else affine[-1]) - mean * factor

    weights = [] if w is None else [w]
    biases = [] if b is None else [b]
    key = (eps, w is None, b is None)
    scales = _known(variance).derive(("batch norm scale", *key), scale, *weights)
    shifts = _known(mean).derive(
        ("batch norm shift", *key), shift, _known(variance), *weights, *biases
    )
    return const(scales), const(shifts)


def _known(v: Value) -> Constant:
    assert v.const is not None
    return v.const


def by_own_statistics(
    g: Graph, x: Value, weight: Value | None, bias: Value | None, eps: float
) -> Value:
    """Mean and variance of each channel over the batch and the spatial axes."""
    return _by_batch(g, x, weight, bias, eps)[0]


def _by_batch(
    g: Graph, x: Value, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    """The result; means and factors of the channels as [1, C, 1, ...]."""
    axes = [0, *range(2, x.rank)]
    mean = tfl.mean(g, x, axes, True)
    centred = tfl.sub(g, x, mean)
    variance = tfl.mean(g, tfl.square(g, centred), axes, True)
    scale = tfl.rsqrt(g, tfl.add(g, variance, const(eps, DType.FLOAT32)))
    y = tfl.mul(g, centred, scale)
    y = y if weight is None else tfl.mul(g, y, over_channels(g, weight, x.rank))
    y = y if bias is None else tfl.add(g, y, over_channels(g, bias, x.rank))
    return y, mean, scale
