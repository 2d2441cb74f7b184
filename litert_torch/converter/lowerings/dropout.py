"""Dropout: nothing in evaluation, which is what modules are converted in; else random zeros."""

from collections.abc import Sequence

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.random_numbers import kept

aten = torch.ops.aten

_SELU_LIMIT = -1.7580993408473766  # what SELU gives far below 0


def dropped(g: Graph, x: Value, mask: Value, p: float) -> Value:
    """x where the float mask is 1, scaled to keep its expected value."""
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return tfl.mul(g, tfl.mul(g, x, mask), const(scale, x.dtype))


@lowers(aten.dropout.default)
def dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """x; in training, each element 0 with probability p."""
    if not train or p == 0:
        return x
    return dropped(g, x, kept(g, x.shape, 1 - p), p)


@lowers(aten.feature_dropout.default)
def feature_dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """x [N, C, ...]; in training, each channel 0 with probability p."""
    if not train or p == 0:
        return x
    shape = (*x.shape[:2], *[1] * (x.rank - 2))
    return dropped(g, x, kept(g, shape, 1 - p), p)


@lowers(aten.native_dropout.default)
def native_dropout(g: Graph, x: Value, p: float, train: bool | None) -> list[Value]:
    """x and what is kept of it."""
    if train is False or p == 0:
        return [x, filled(g, x.shape, True, DType.BOOL)]
    mask = kept(g, x.shape, 1 - p)
    return [dropped(g, x, mask, p), tfl.cast(g, mask, DType.BOOL)]


@lowers(aten.alpha_dropout.default)
def alpha_dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """x; in training, elements at SELU's limit with probability p, then scaled to keep moments."""
    return _alpha_dropped(g, x, x.shape, p) if train and p > 0 else x


@lowers(aten.feature_alpha_dropout.default)
def feature_alpha_dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """As alpha dropout, of whole channels of x [N, C, ...]."""
    shape = (*x.shape[:2], *[1] * (x.rank - 2))
    return _alpha_dropped(g, x, shape, p) if train and p > 0 else x


def _alpha_dropped(g: Graph, x: Value, shape: Sequence[Size], p: float) -> Value:
    if p == 1:
        return filled(g, x.shape, 0.0, x.dtype)
    scale = ((_SELU_LIMIT**2 * p + 1) * (1 - p)) ** -0.5
    mask = kept(g, shape, 1 - p)
    lost = tfl.sub(g, mask, const(1.0, x.dtype))  # 0 where kept, else -1
    value = tfl.sub(g, tfl.mul(g, x, mask), tfl.mul(g, lost, const(_SELU_LIMIT, x.dtype)))
    scaled = tfl.mul(g, value, const(scale, x.dtype))
    return tfl.add(g, scaled, const(-scale * _SELU_LIMIT * p, x.dtype))
