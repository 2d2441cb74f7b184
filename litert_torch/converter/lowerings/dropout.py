"""Dropout: nothing in evaluation, which is what modules are converted in; else random zeros."""

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.random_numbers import kept
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


def _dropped(g: Graph, x: Value, mask: Value, p: float) -> Value:
    """X where the float mask is 1, scaled to keep its expected value."""
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return tfl.mul(g, tfl.mul(g, x, mask), const(scale, x.dtype))


@lowers(aten.dropout.default)
def dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """X; in training, each element 0 with probability p."""
    if not train or p == 0:
        return x
    return _dropped(g, x, kept(g, x.shape, 1 - p), p)


@lowers(aten.feature_dropout.default)
def feature_dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """X [N, C, ...]; in training, each channel 0 with probability p."""
    if not train or p == 0:
        return x
    shape = (*x.shape[:2], *[1] * (x.rank - 2))
    return _dropped(g, x, kept(g, shape, 1 - p), p)


@lowers(aten.native_dropout.default)
def native_dropout(g: Graph, x: Value, p: float, train: bool | None) -> list[Value]:
    """X and what is kept of it."""
    if train is False or p == 0:
        return [x, filled(g, x.shape, True, DType.BOOL)]
    mask = kept(g, x.shape, 1 - p)
    return [_dropped(g, x, mask, p), tfl.cast(g, mask, DType.BOOL)]


@lowers(aten.alpha_dropout.default, aten.feature_alpha_dropout.default)
def alpha_dropout(g: Graph, x: Value, p: float, train: bool) -> Value:
    """X; refused in training."""
    if train and p > 0:
        raise UnsupportedCaseError("alpha dropout in training: call model.eval() before converting")
    return x
