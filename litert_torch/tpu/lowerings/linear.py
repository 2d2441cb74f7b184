"""Products of matrices and vectors."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, as_dtype

aten = torch.ops.aten


def contracted(a: Array, b: Array, a_axis: int, b_axis: int, batch: int = 0) -> Array:
    """The sums of products over one axis of each, with so many leading batch axes."""
    leading = tuple(range(batch))
    numbers = (((a_axis % a.ndim,), (b_axis % b.ndim,)), (leading, leading))
    return lax.dot_general(a, b, numbers, preferred_element_type=a.dtype)


@lowers(aten.linear.default)
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """X [..., I] times the transpose of weight [O, I]."""
    result = contracted(x, weight, -1, -1)
    return result if bias is None else result + bias


@lowers(aten.mm.default)
def mm(x: Array, mat2: Array) -> Array:
    """[N, K] times [K, M]."""
    return contracted(x, mat2, 1, 0)


@lowers(aten.bmm.default)
def bmm(x: Array, mat2: Array) -> Array:
    """[B, N, K] times [B, K, M]."""
    return contracted(x, mat2, 2, 1, batch=1)


@lowers(aten.mv.default)
def mv(x: Array, vec: Array) -> Array:
    """[N, K] times [K]."""
    return contracted(x, vec, 1, 0)


@lowers(aten.dot.default)
def dot(x: Array, tensor: Array) -> Array:
    """The sum of products of two vectors."""
    return contracted(x, tensor, 0, 0)


@lowers(aten.vdot.default)
def vdot(x: Array, other: Array) -> Array:
    """As dot, with x conjugated."""
    return contracted(jnp.conj(x), other, 0, 0)


@lowers(aten.matmul.default)
def matmul(x: Array, other: Array) -> Array:
    """The product of the last two axes; others broadcast."""
    if other.ndim <= 2:
        return contracted(x, other, -1, 0)
    return jnp.matmul(x, other)


def _scaled_sum(x: Array, product: Array, beta: Any, alpha: Any) -> Array:
    """Beta * x + alpha * product; where beta is 0, NaN in x does not count."""
    if alpha != 1:
        product = product * as_dtype(alpha, product.dtype)
    if beta == 0:
        return product
    x = as_dtype(x, product.dtype)
    return (x if beta == 1 else x * as_dtype(beta, x.dtype)) + product


@lowers(aten.addmm.default)
def addmm(x: Array, mat1: Array, mat2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Beta * x + alpha * (mat1 times mat2)."""
    return _scaled_sum(x, mm(mat1, mat2), beta, alpha)


@lowers(aten.addmv.default)
def addmv(x: Array, mat: Array, vec: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Beta * x + alpha * (mat times vec)."""
    return _scaled_sum(x, mv(mat, vec), beta, alpha)


@lowers(aten.baddbmm.default)
def baddbmm(x: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Beta * x + alpha * (batch1 times batch2)."""
    return _scaled_sum(x, bmm(batch1, batch2), beta, alpha)


@lowers(aten.addbmm.default)
def addbmm(x: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Beta * x + alpha * (the sum of all products of the batch)."""
    product = jnp.sum(bmm(batch1, batch2), axis=0, dtype=batch1.dtype)
    return _scaled_sum(x, product, beta, alpha)


@lowers(aten.addr.default)
def addr(x: Array, vec1: Array, vec2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Beta * x + alpha * (the outer product)."""
    product = vec1[:, None] * vec2[None, :]
    if x.dtype == bool:
        product = product & bool(alpha)
        return product | x if beta else product
    return _scaled_sum(x, product, beta, alpha)


@lowers(aten.bilinear.default)
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """input1 [..., I], weight [O, I, J] and input2 [..., J] to [..., O]."""
    result = jnp.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


@lowers(aten._trilinear.default)
def trilinear(
    i1: Array,
    i2: Array,
    i3: Array,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Array:
    """The product of three tensors, each with new axes, summed over some."""
    spread = [
        jnp.expand_dims(t, tuple(e)) for t, e in ((i1, expand1), (i2, expand2), (i3, expand3))
    ]
    return jnp.sum(spread[0] * spread[1] * spread[2], axis=tuple(sumdim))
