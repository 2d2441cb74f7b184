"""Random numbers: the distribution is PyTorch's, the values are not.

LiteRT seeds its generators anew for each interpreter, so that results differ from run to run, as
those of PyTorch do without `torch.manual_seed`; seeding PyTorch has no effect on a file.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.torch_types import compute_dtype
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

FLOAT32 = DType.FLOAT32
_INT64 = 4  # how ATen's schemas write that default
_WIDEST_RANGE = 1 << 23  # distinct values of a float32 that is uniform in [0, 1)


def _float(value: float) -> Value:
    return const(value, FLOAT32)


def _typed(g: Graph, x: Value, dtype: Any, otherwise: DType = FLOAT32) -> Value:
    is_given = isinstance(dtype, torch.dtype)
    return tfl.cast(g, x, compute_dtype(dtype) if is_given else otherwise)


def between(g: Graph, shape: Sequence[Size], low: float, high: float) -> Value:
    """Uniform in [low, high)."""
    numbers = tfl.random_uniform(g, shape)
    if high - low != 1:
        numbers = tfl.mul(g, numbers, _float(high - low))
    return tfl.add(g, numbers, _float(low)) if low else numbers


def integers(g: Graph, shape: Sequence[Size], low: Size, high: Size) -> Value:
    """Uniform among low, ..., high - 1, as float32."""
    first, count = dims.static([low, high - low])
    if count > _WIDEST_RANGE:
        raise UnsupportedCaseError(f"draws from {count} integers; LiteRT tells 2**23 apart")
    whole = tfl.floor(g, tfl.mul(g, tfl.random_uniform(g, shape), _float(count)))
    return tfl.add(g, whole, _float(first))


def kept(g: Graph, shape: Sequence[Size], p: float) -> Value:
    """Float32 1 with probability p, else 0."""
    return tfl.cast(g, tfl.less(g, tfl.random_uniform(g, shape), _float(p)), FLOAT32)


@lowers(aten.rand.default)
def rand(
    g: Graph,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Uniform in [0, 1)."""
    return _typed(g, tfl.random_uniform(g, size), dtype)


@lowers(aten.rand_like.default)
def rand_like(
    g: Graph,
    x: Value,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """Uniform in [0, 1), of x's shape."""
    return _typed(g, tfl.random_uniform(g, x.shape), dtype, x.dtype)


@lowers(aten.randn.default)
def randn(
    g: Graph,
    size: Sequence[Size],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Standard normal."""
    return _typed(g, tfl.random_standard_normal(g, size), dtype)


@lowers(aten.randn_like.default)
def randn_like(
    g: Graph,
    x: Value,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """Standard normal, of x's shape."""
    return _typed(g, tfl.random_standard_normal(g, x.shape), dtype, x.dtype)


@lowers(aten.randint.default)
def randint(
    g: Graph,
    high: Size,
    size: Sequence[Size],
    *,
    dtype: Any = _INT64,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Integers from 0 to high - 1."""
    return _typed(g, integers(g, size, 0, high), dtype, DType.INT64)


@lowers(aten.randint.low)
def randint_low(
    g: Graph,
    low: Size,
    high: Size,
    size: Sequence[Size],
    *,
    dtype: Any = _INT64,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Integers from low to high - 1."""
    return _typed(g, integers(g, size, low, high), dtype, DType.INT64)


@lowers(aten.randint_like.default)
def randint_like(
    g: Graph,
    x: Value,
    high: Size,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """Integers from 0 to high - 1, of x's shape and dtype."""
    return _typed(g, integers(g, x.shape, 0, high), dtype, x.dtype)


@lowers(aten.randint_like.low_dtype)
def randint_like_low(
    g: Graph,
    x: Value,
    low: Size,
    high: Size,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: Any = None,
) -> Value:
    """Integers from low to high - 1, of x's shape and dtype."""
    return _typed(g, integers(g, x.shape, low, high), dtype, x.dtype)


@lowers(aten.randperm.default)
def randperm(
    g: Graph,
    n: Size,
    *,
    dtype: Any = _INT64,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """The order that sorts n random numbers."""
    return _typed(g, tfl.topk_v2(g, tfl.random_uniform(g, (n,)), n)[1], dtype, DType.INT64)


@lowers(aten.bernoulli.default)
def bernoulli(g: Graph, x: Value, *, generator: Any = None) -> Value:
    """1 with the probability that x holds, else 0."""
    return tfl.cast(g, tfl.less(g, tfl.random_uniform(g, x.shape), x), x.dtype)


@lowers(aten.bernoulli.p)
def bernoulli_p(g: Graph, x: Value, p: float, *, generator: Any = None) -> Value:
    """1 with probability p, else 0, of x's shape."""
    return tfl.cast(g, kept(g, x.shape, p), x.dtype)


@lowers(aten.bernoulli.Tensor)
def bernoulli_tensor(g: Graph, x: Value, p: Value, *, generator: Any = None) -> Value:
    """1 with the probability that p holds, else 0, of x's shape."""
    drawn = tfl.less(g, tfl.random_uniform(g, x.shape), as_float(g, p))
    return tfl.cast(g, drawn, x.dtype)


@lowers(aten.uniform.default)
def uniform(
    g: Graph,
    x: Value,
    from_: float = 0.0,
    to: float = 1.0,
    *,
    generator: Any = None,
) -> Value:
    """Uniform between two numbers, of x's shape."""
    return tfl.cast(g, between(g, x.shape, from_, to), x.dtype)


def _normal(g: Graph, shape: Sequence[Size], mean: Any, std: Any) -> Value:
    spread = tfl.mul(g, tfl.random_standard_normal(g, shape), as_float(g, std))
    return tfl.add(g, spread, as_float(g, mean))


@lowers(aten.normal.Tensor_float)
def normal_tensor_float(g: Graph, mean: Value, std: float = 1.0, *, generator: Any = None) -> Value:
    """Normal around each element of `mean`."""
    return _normal(g, mean.shape, mean, std)


@lowers(aten.normal.float_Tensor)
def normal_float_tensor(g: Graph, mean: float, std: Value, *, generator: Any = None) -> Value:
    """Normal around a number, with the spread that each element of `std` holds."""
    return _normal(g, std.shape, mean, std)


@lowers(aten.normal.Tensor_Tensor)
def normal_tensors(g: Graph, mean: Value, std: Value, *, generator: Any = None) -> Value:
    """Normal around each element of `mean`, with the spread that each of `std` holds."""
    return _normal(g, dims.broadcast(mean.shape, std.shape), mean, std)


@lowers(aten.normal.float_float)
def normal_floats(
    g: Graph,
    mean: float,
    std: float,
    size: Sequence[Size],
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Value:
    """Normal, of the given size."""
    return _normal(g, size, mean, std)


@lowers(aten.normal_functional.default)
def normal_functional(
    g: Graph, x: Value, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Value:
    """Normal, of x's shape."""
    return _normal(g, x.shape, mean, std)


@lowers(aten.exponential.default)
def exponential(g: Graph, x: Value, lambd: float = 1.0, *, generator: Any = None) -> Value:
    """-log(1 - u) / lambd, of x's shape."""
    left = tfl.sub(g, _float(1.0), tfl.random_uniform(g, x.shape))
    return tfl.mul(g, tfl.log(g, left), _float(-1 / lambd))


@lowers(aten.geometric.default)
def geometric(g: Graph, x: Value, p: float, *, generator: Any = None) -> Value:
    """How many trials until the first success, of x's shape: by an exponential, rounded up."""
    trials = exponential(g, x, -math.log1p(-p))
    return tfl.cast(g, tfl.maximum(g, tfl.ceil(g, trials), _float(1.0)), x.dtype)


@lowers(aten.multinomial.default)
def multinomial(
    g: Graph, x: Value, num_samples: Size, replacement: bool = False, *, generator: Any = None
) -> Value:
    """Int64 positions along the last axis of weights x, drawn in proportion to them.

    Without replacement: the largest of x / e with e exponential (Efraimidis and Spirakis, 2006).
    """
    weights = tfl.reshape(g, x, (1, *x.shape)) if x.rank == 1 else x
    if replacement:
        drawn = tfl.multinomial(g, tfl.log(g, weights), int(num_samples))
    else:
        keys = tfl.div(g, weights, exponential(g, weights))
        drawn = tfl.cast(g, tfl.topk_v2(g, keys, int(num_samples))[1], DType.INT64)
    return tfl.reshape(g, drawn, (*x.shape[:-1], num_samples))
