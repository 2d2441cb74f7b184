"""Dropout: nothing in eval mode, random zeros in training."""

from typing import Any

import jax
import jax.numpy as jnp
import torch

from litert_torch.tpu import random_keys
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype

aten = torch.ops.aten


def _dropped(x: Array, p: float, shape: tuple[Any, ...]) -> tuple[Array, Array]:
    """(x with zeros, scaled up, where it was kept), decided for `shape`, which broadcasts."""
    if p == 1:
        return jnp.zeros_like(x), jnp.zeros(shape, bool)
    kept = jax.random.bernoulli(random_keys.take(), 1 - p, shape)
    return jnp.where(kept, x / as_dtype(1 - p, x.dtype), 0).astype(x.dtype), kept


@lowers(aten.dropout.default)
def dropout(x: Array, p: float, train: bool) -> Array:
    """X, in training with zeros at random places."""
    return _dropped(x, p, x.shape)[0] if train and p else x


@lowers(aten.native_dropout.default)
def native_dropout(x: Array, p: float, train: bool | None) -> tuple[Array, Array]:
    """(x, in training with zeros at random places, where it was kept)."""
    if train is False or not p:
        return x, jnp.ones(x.shape, bool)
    return _dropped(x, p, x.shape)


@lowers(aten.feature_dropout.default)
def feature_dropout(x: Array, p: float, train: bool) -> Array:
    """X, in training with random channels of zeros."""
    return _dropped(x, p, x.shape[:2] + (1,) * (x.ndim - 2))[0] if train and p else x


_ALPHA = 1.7580993408473766  # the negative of what selu tends to


def _alpha_dropped(x: Array, p: float, train: bool, shape: tuple[Any, ...]) -> Array:
    if not train or not p:
        return x
    if p == 1:
        return jnp.zeros_like(x)
    scale = 1 / ((_ALPHA**2 * p + 1) * (1 - p)) ** 0.5
    kept = jax.random.bernoulli(random_keys.take(), 1 - p, shape)
    filled = jnp.where(kept, x, -_ALPHA)
    return (filled * scale + _ALPHA * scale * p).astype(x.dtype)


@lowers(aten.alpha_dropout.default)
def alpha_dropout(x: Array, p: float, train: bool) -> Array:
    """Dropout that keeps mean and variance, for selu."""
    return _alpha_dropped(x, p, train, x.shape)


@lowers(aten.feature_alpha_dropout.default)
def feature_alpha_dropout(x: Array, p: float, train: bool) -> Array:
    """Alpha dropout of whole channels."""
    return _alpha_dropped(x, p, train, x.shape[:2] + (1,) * (x.ndim - 2))


@lowers(aten.rrelu.default)
def rrelu(
    x: Array,
    lower: Any = 0.125,
    upper: Any = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> Array:
    """leaky_relu with a random slope in training, else the mean one."""
    if not training:
        return jnp.where(x > 0, x, x * as_dtype((lower + upper) / 2, x.dtype))
    slope = jax.random.uniform(random_keys.take(), x.shape, x.dtype, lower, upper)
    return jnp.where(x > 0, x, x * slope)
