"""Variances, norms and the logarithm of sums of exponentials."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims, dynamic_sizes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.kernel_dtypes import is_nonzero
from litert_torch.converter.lowerings.reduction import axes_of, extreme, nan_or_zero, reduced

aten = torch.ops.aten

Dims = Sequence[int] | None

LARGEST = float(np.finfo(np.float32).max)


def _float(value: float) -> Value:
    return const(value, DType.FLOAT32)


def variance_and_mean(
    g: Graph, x: Value, dim: Dims, correction: float | None, keepdim: bool
) -> tuple[Value, Value]:
    """sum((x - mean)^2) / (n - correction) over `dim`, and the mean."""
    vector = tfl.reshape(g, x, (1,)) if x.rank == 0 else x
    axes = axes_of(vector, dim)
    mean = tfl.mean(g, vector, axes, True)
    spread = tfl.mean(g, tfl.square(g, tfl.sub(g, vector, mean)), axes, True)
    spread = _corrected(g, spread, vector, axes, 1 if correction is None else correction)
    if not keepdim or x.rank == 0:
        shape = [s for a, s in enumerate(mean.shape) if a not in axes]
        spread, mean = tfl.reshape(g, spread, shape), tfl.reshape(g, mean, shape)
    return spread, mean


def _corrected(g: Graph, spread: Value, x: Value, axes: Sequence[int], correction: float) -> Value:
    """The mean square times n / (n - correction); infinite or NaN where too few elements are."""
    count = dims.numel([x.shape[a] for a in axes])
    if correction == 0:
        return spread
    if isinstance(count, int):
        left = count - correction
        return tfl.mul(g, spread, _float(count / left if left > 0 else np.inf))
    n = tfl.cast(g, dynamic_sizes.scalar(g, count), DType.FLOAT32)
    left_now = tfl.maximum(g, tfl.sub(g, n, _float(correction)), _float(0))
    return tfl.mul(g, spread, tfl.div(g, n, left_now))


@lowers(aten.var.default)
def var(g: Graph, x: Value, unbiased: bool = True) -> Value:
    """Variance of all elements."""
    return variance_and_mean(g, x, None, int(unbiased), False)[0]


@lowers(aten.var.dim)
def var_dim(g: Graph, x: Value, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> Value:
    """Variance over axes."""
    return variance_and_mean(g, x, dim, int(unbiased), keepdim)[0]


@lowers(aten.var.correction)
def var_correction(
    g: Graph,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    """Variance over axes with n - correction in the denominator."""
    return variance_and_mean(g, x, dim, correction, keepdim)[0]


@lowers(aten.std.default)
def std(g: Graph, x: Value, unbiased: bool = True) -> Value:
    """Standard deviation of all elements."""
    return tfl.sqrt(g, var(g, x, unbiased))


@lowers(aten.std.dim)
def std_dim(g: Graph, x: Value, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> Value:
    """Standard deviation over axes."""
    return tfl.sqrt(g, var_dim(g, x, dim, unbiased, keepdim))


@lowers(aten.std.correction)
def std_correction(
    g: Graph,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    """Standard deviation over axes with n - correction in the denominator."""
    return tfl.sqrt(g, var_correction(g, x, dim, correction=correction, keepdim=keepdim))


@lowers(aten.var_mean.default)
def var_mean(g: Graph, x: Value, unbiased: bool = True) -> list[Value]:
    """Variance and mean of all elements."""
    return list(variance_and_mean(g, x, None, int(unbiased), False))


@lowers(aten.var_mean.dim)
def var_mean_dim(
    g: Graph, x: Value, dim: Dims, unbiased: bool = True, keepdim: bool = False
) -> list[Value]:
    """Variance and mean over axes."""
    return list(variance_and_mean(g, x, dim, int(unbiased), keepdim))


@lowers(aten.var_mean.correction)
def var_mean_correction(
    g: Graph,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> list[Value]:
    """Variance, with n - correction in the denominator, and mean over axes."""
    return list(variance_and_mean(g, x, dim, correction, keepdim))


def _with_root(g: Graph, results: list[Value]) -> list[Value]:
    return [tfl.sqrt(g, results[0]), results[1]]


@lowers(aten.std_mean.default)
def std_mean(g: Graph, x: Value, unbiased: bool = True) -> list[Value]:
    """Standard deviation and mean of all elements."""
    return _with_root(g, var_mean(g, x, unbiased))


@lowers(aten.std_mean.dim)
def std_mean_dim(
    g: Graph, x: Value, dim: Dims, unbiased: bool = True, keepdim: bool = False
) -> list[Value]:
    """Standard deviation and mean over axes."""
    return _with_root(g, var_mean_dim(g, x, dim, unbiased, keepdim))


@lowers(aten.std_mean.correction)
def std_mean_correction(
    g: Graph,
    x: Value,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> list[Value]:
    """Standard deviation, with n - correction in the denominator, and mean over axes."""
    return _with_root(g, var_mean_correction(g, x, dim, correction=correction, keepdim=keepdim))


def vector_norm(g: Graph, x: Value, p: float, dim: Dims, keepdim: bool) -> Value:
    """sum(|x|^p)^(1/p) over axes; infinite p is the largest or smallest |x|, 0 counts x != 0."""
    x = tfl.cast(g, x, DType.FLOAT32)
    if p == 0:
        return reduced(g, tfl.sum, tfl.cast(g, is_nonzero(g, x), DType.FLOAT32), dim, keepdim)
    if p == 2:
        return tfl.sqrt(g, reduced(g, tfl.sum, tfl.square(g, x), dim, keepdim))
    size = tfl.abs(g, x)
    if abs(p) == np.inf:
        return extreme(g, size, dim, keepdim, largest=p > 0)
    if p == 1:
        return reduced(g, tfl.sum, size, dim, keepdim)
    total = reduced(g, tfl.sum, tfl.pow(g, size, _float(p)), dim, keepdim)
    return tfl.pow(g, total, _float(1 / p))


@lowers(aten.linalg_vector_norm.default)
def linalg_vector_norm(
    g: Graph,
    x: Value,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Value:
    """Norm of order `ord` over axes."""
    return vector_norm(g, x, ord, dim, keepdim)


@lowers(aten.norm.Scalar)
def norm(g: Graph, x: Value, p: float = 2) -> Value:
    """Norm of order `p` of all elements."""
    return vector_norm(g, x, p, None, False)


@lowers(aten.norm.ScalarOpt_dim)
def norm_dim(
    g: Graph, x: Value, p: float | None, dim: Sequence[int], keepdim: bool = False
) -> Value:
    """Norm of order `p`, 2 where None, over axes."""
    return vector_norm(g, x, 2 if p is None else p, dim, keepdim)


@lowers(aten.norm.ScalarOpt_dim_dtype)
def norm_dim_dtype(
    g: Graph, x: Value, p: float | None, dim: Sequence[int], keepdim: bool, *, dtype: torch.dtype
) -> Value:
    """Norm of order `p`, 2 where None, over axes."""
    return norm_dim(g, x, p, dim, keepdim)


@lowers(aten.norm.ScalarOpt_dtype)
def norm_dtype(g: Graph, x: Value, p: float | None, *, dtype: torch.dtype) -> Value:
    """Norm of order `p`, 2 where None, of all elements."""
    return norm_dim(g, x, p, [])


def finite(g: Graph, x: Value) -> Value:
    """x with infinities replaced by the largest numbers, so that x - x is never NaN."""
    return tfl.maximum(g, tfl.minimum(g, x, _float(LARGEST)), _float(-LARGEST))


@lowers(aten.logsumexp.default, aten.special_logsumexp.default)
def logsumexp(g: Graph, x: Value, dim: Sequence[int], keepdim: bool = False) -> Value:
    """log(sum(exp(x))) over axes, from the largest element down, which it is never below."""
    x = tfl.cast(g, x, DType.FLOAT32)
    if x.rank == 0:
        return x
    axes = axes_of(x, dim)
    largest = tfl.reduce_max(g, x, axes, True)
    top = finite(g, largest)
    total = tfl.sum(g, tfl.exp(g, tfl.sub(g, x, top)), axes, True)
    result = tfl.maximum(g, tfl.add(g, tfl.log(g, total), top), largest)
    result = tfl.add(g, result, nan_or_zero(g, x, axes, True))
    if keepdim:
        return result
    return tfl.reshape(g, result, [s for a, s in enumerate(x.shape) if a not in axes])
