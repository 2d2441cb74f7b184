"""Random tensors, from threefry keys: other numbers than PyTorch's, of the same distributions."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch

from litert_torch.tpu import random_keys
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import (
    FLOAT32,
    INT64,
    Array,
    DType,
    Operand,
    as_dtype,
    default_float,
    is_float,
    to_numpy,
)

aten = torch.ops.aten

_INT64_CODE = 4  # the schema's default for dtype

Draw = Callable[[Any, tuple[Any, ...], DType], Array]


def _uniform(key: Any, shape: tuple[Any, ...], dtype: DType) -> Array:
    return jax.random.uniform(key, shape, dtype)


def _normal(key: Any, shape: tuple[Any, ...], dtype: DType) -> Array:
    if dtype.kind == "c":
        part = jnp.dtype(f"f{dtype.itemsize // 2}")
        parts = jax.random.normal(key, (*shape, 2), part) * jnp.asarray(0.5**0.5, part)
        return jax.lax.complex(parts[..., 0], parts[..., 1])
    return jax.random.normal(key, shape, dtype)


def _sized(draw: Draw) -> Callable[..., Array]:
    def lowering(
        size: Sequence[Any],
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> Array:
        want = default_float() if dtype is None else to_numpy(dtype)
        return draw(random_keys.take(), tuple(size), want)

    return lowering


def _like(draw: Draw) -> Callable[..., Array]:
    def lowering(
        x: Array,
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
        memory_format: Any = None,
    ) -> Array:
        return draw(random_keys.take(), x.shape, x.dtype if dtype is None else to_numpy(dtype))

    return lowering


lowers.one_to_one(
    {
        aten.rand.default: _sized(_uniform),
        aten.randn.default: _sized(_normal),
        aten.rand_like.default: _like(_uniform),
        aten.randn_like.default: _like(_normal),
    }
)


def _integers(low: Any, high: Any, shape: Sequence[Any], dtype: Any) -> Array:
    drawn = jax.random.randint(random_keys.take(), tuple(shape), low, high, INT64)
    return as_dtype(drawn, dtype if isinstance(dtype, torch.dtype) else torch.int64)


@lowers(aten.randint.default)
def randint(
    high: Any,
    size: Sequence[Any],
    *,
    dtype: Any = _INT64_CODE,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Integers from 0 to before high."""
    return _integers(0, high, size, dtype)


@lowers(aten.randint.low)
def randint_low(
    low: Any,
    high: Any,
    size: Sequence[Any],
    *,
    dtype: Any = _INT64_CODE,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Integers from low to before high."""
    return _integers(low, high, size, dtype)


def _integers_like(x: Array, low: Any, high: Any, dtype: torch.dtype | None) -> Array:
    drawn = jax.random.randint(random_keys.take(), x.shape, low, high, INT64)
    return as_dtype(drawn, x.dtype if dtype is None else dtype)


@lowers(aten.randint_like.default)
def randint_like(
    x: Array,
    high: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Integers from 0 to before high, in the shape of x."""
    return _integers_like(x, 0, high, dtype)


@lowers(aten.randint_like.low_dtype)
def randint_like_low(
    x: Array,
    low: Any,
    high: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: Any = None,
) -> Array:
    """Integers from low to before high, in the shape of x."""
    return _integers_like(x, low, high, dtype)


@lowers(aten.randperm.default)
def randperm(
    n: Any,
    *,
    dtype: Any = _INT64_CODE,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """The numbers from 0 to before n in random order."""
    order = jax.random.permutation(random_keys.take(), n)
    return as_dtype(order, dtype if isinstance(dtype, torch.dtype) else torch.int64)


def _real(x: Array) -> DType:
    return x.dtype if is_float(x) else FLOAT32


@lowers(aten.bernoulli.default)
def bernoulli(x: Array, *, generator: Any = None) -> Array:
    """1 with the probability that x says, else 0."""
    return jax.random.bernoulli(random_keys.take(), x, x.shape).astype(x.dtype)


@lowers(aten.bernoulli.p)
def bernoulli_p(x: Array, p: float, *, generator: Any = None) -> Array:
    """1 with probability p, else 0, in the shape and dtype of x."""
    return jax.random.bernoulli(random_keys.take(), p, x.shape).astype(x.dtype)


@lowers(aten.bernoulli.Tensor)
def bernoulli_tensor(x: Array, p: Array, *, generator: Any = None) -> Array:
    """1 with the probability that p says, else 0, in the shape and dtype of x."""
    return jax.random.bernoulli(random_keys.take(), p, x.shape).astype(x.dtype)


@lowers(aten.uniform.default)
def uniform(x: Array, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Array:
    """Numbers between two, in the shape and dtype of x."""
    return jax.random.uniform(random_keys.take(), x.shape, x.dtype, from_, to)


@lowers(aten.normal_functional.default)
def normal_functional(
    x: Array, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Array:
    """Normally distributed numbers, in the shape and dtype of x."""
    drawn = _normal(random_keys.take(), x.shape, x.dtype)
    return drawn * as_dtype(std, x.dtype) + as_dtype(mean, x.dtype)


def _normal_around(mean: Operand, std: Operand) -> Array:
    arrays = [a for a in (mean, std) if hasattr(a, "shape")]
    dtype = arrays[0].dtype
    shape = jnp.broadcast_shapes(*(a.shape for a in arrays))
    drawn = _normal(random_keys.take(), shape, dtype)
    return drawn * as_dtype(std, dtype) + as_dtype(mean, dtype)


@lowers(aten.normal.Tensor_Tensor)
def normal(mean: Array, std: Array, *, generator: Any = None) -> Array:
    """Normally distributed numbers, each with its own mean and deviation."""
    return _normal_around(mean, std)


@lowers(aten.normal.Tensor_float)
def normal_tensor_float(mean: Array, std: float = 1.0, *, generator: Any = None) -> Array:
    """Normally distributed numbers, each with its own mean."""
    return _normal_around(mean, std)


@lowers(aten.normal.float_Tensor)
def normal_float_tensor(mean: float, std: Array, *, generator: Any = None) -> Array:
    """Normally distributed numbers, each with its own deviation."""
    return _normal_around(mean, std)


@lowers(aten.normal.float_float)
def normal_float_float(
    mean: float,
    std: float,
    size: Sequence[Any],
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Normally distributed numbers."""
    want = default_float() if dtype is None else to_numpy(dtype)
    drawn = _normal(random_keys.take(), tuple(size), want)
    return drawn * as_dtype(std, want) + as_dtype(mean, want)


@lowers(aten.exponential.default)
def exponential(x: Array, lambd: float = 1.0, *, generator: Any = None) -> Array:
    """Exponentially distributed numbers, in the shape and dtype of x."""
    return jax.random.exponential(random_keys.take(), x.shape, x.dtype) / as_dtype(lambd, x.dtype)


@lowers(aten.cauchy.default)
def cauchy(x: Array, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Array:
    """Numbers of Cauchy's distribution, in the shape and dtype of x."""
    drawn = jax.random.cauchy(random_keys.take(), x.shape, x.dtype)
    return drawn * as_dtype(sigma, x.dtype) + as_dtype(median, x.dtype)


@lowers(aten.log_normal.default)
def log_normal(x: Array, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Array:
    """Numbers whose logarithm is normally distributed, in the shape and dtype of x."""
    return jnp.exp(normal_functional(x, mean, std))


@lowers(aten.geometric.default)
def geometric(x: Array, p: float, *, generator: Any = None) -> Array:
    """How many trials of probability p the first success takes."""
    drawn = jax.random.uniform(
        random_keys.take(), x.shape, _real(x), minval=jnp.finfo(_real(x)).tiny
    )
    return as_dtype(jnp.ceil(jnp.log(drawn) / jnp.log1p(jnp.asarray(-p, drawn.dtype))), x.dtype)


@lowers(aten.poisson.default)
def poisson(x: Array, generator: Any = None) -> Array:
    """How many events there are, where x are expected."""
    return jax.random.poisson(random_keys.take(), x, x.shape).astype(x.dtype)


@lowers(aten.binomial.default)
def binomial(count: Array, prob: Array, generator: Any = None) -> Array:
    """How many of `count` trials of probability `prob` succeed."""
    drawn = jax.random.binomial(random_keys.take(), count, prob, count.shape)
    return drawn.astype(count.dtype)


@lowers(aten.multinomial.default)
def multinomial(
    x: Array, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Array:
    """Places drawn with the weights in the rows of x."""
    logits = jnp.log(x)
    shape = (*x.shape[:-1], num_samples)
    key = random_keys.take()
    if replacement:
        moved = jax.random.categorical(key, logits, -1, shape=(num_samples, *x.shape[:-1]))
        return jnp.moveaxis(moved, 0, -1).astype(INT64).reshape(shape)
    noise = jax.random.gumbel(key, x.shape, x.dtype)
    return jax.lax.top_k(logits + noise, num_samples)[1].astype(INT64)
