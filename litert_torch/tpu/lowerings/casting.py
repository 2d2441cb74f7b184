"""Changes of dtype, and ops that change nothing here: devices, layouts, memory."""

from typing import Any

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, Operand, as_dtype, to_numpy

aten = torch.ops.aten


def _same(x: Array) -> Array:
    return x


lowers.one_to_one(
    dict.fromkeys(
        (
            aten.alias.default,
            aten.detach.default,
            aten.lift.default,
            aten.lift_fresh.default,
            aten.lift_fresh_copy.default,
            aten.positive.default,
            aten.resolve_neg.default,
            aten.resolve_conj.default,
        ),
        _same,
    )
)


@lowers(aten.clone.default)
def clone(x: Array, *, memory_format: Any = None) -> Array:
    """X itself: nothing is written in place."""
    return x


@lowers(aten.contiguous.default)
def contiguous(x: Array, *, memory_format: Any = 0) -> Array:
    """X itself: XLA chooses layouts."""
    return x


@lowers(aten._to_copy.default)
def to_copy(
    x: Operand,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Array:
    """X in another dtype."""
    return as_dtype(x, dtype)


@lowers(aten.to.dtype)
def to_dtype(
    x: Operand,
    dtype: torch.dtype,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Array:
    """X in another dtype."""
    return as_dtype(x, dtype)


@lowers(aten.to.device)
def to_device(
    x: Operand,
    device: Any,
    dtype: torch.dtype,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Array:
    """X in another dtype; there is one device."""
    return as_dtype(x, dtype)


@lowers(aten.to.dtype_layout)
def to_dtype_layout(
    x: Operand,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Array:
    """X in another dtype."""
    return as_dtype(x, dtype)


@lowers(aten.to.other)
def to_other(
    x: Operand,
    other: Array,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Array:
    """X in the dtype of another tensor."""
    return as_dtype(x, other.dtype)


@lowers(aten.type_as.default)
def type_as(x: Operand, other: Array) -> Array:
    """X in the dtype of another tensor."""
    return as_dtype(x, other.dtype)


@lowers(torch.ops.prims.convert_element_type.default)
def convert_element_type(a: Operand, dtype: torch.dtype) -> Array:
    """`a` in another dtype."""
    return as_dtype(a, dtype)


@lowers(aten.view.dtype)
def view_dtype(x: Array, dtype: torch.dtype) -> Array:
    """The same bytes as elements of another dtype; the last axis grows or shrinks."""
    want = to_numpy(dtype)
    if want.kind == "b":
        return x.astype(bool) if x.dtype == bool else lax.bitcast_convert_type(x, "uint8") != 0
    x = x.astype("uint8") if x.dtype == bool else x
    if want.kind == "c" or x.dtype.kind == "c":
        return _bitcast_complex(x, want)
    have_size, want_size = x.dtype.itemsize, want.itemsize
    if have_size > want_size:
        parts = lax.bitcast_convert_type(x, want)
        return parts.reshape(*x.shape[:-1], x.shape[-1] * (have_size // want_size))
    if have_size < want_size:
        ratio = want_size // have_size
        x = x.reshape(*x.shape[:-1], x.shape[-1] // ratio, ratio)
    return lax.bitcast_convert_type(x, want)


def _bitcast_complex(x: Array, want: Any) -> Array:
    """By way of the parts, which XLA can bitcast."""
    if x.dtype == want:
        return x
    if x.dtype.kind == "c":
        parts = jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1)
        return view_dtype(parts.reshape(*x.shape[:-1], x.shape[-1] * 2), want)
    parts = view_dtype(x, jnp.dtype(f"f{want.itemsize // 2}"))
    pairs = parts.reshape(*parts.shape[:-1], parts.shape[-1] // 2, 2)
    return lax.complex(pairs[..., 0], pairs[..., 1])


@lowers(aten.copy.default)
def copy(x: Array, src: Operand, non_blocking: bool = False) -> Array:
    """`src` in the dtype and shape of x."""
    return jnp.broadcast_to(as_dtype(src, x.dtype), x.shape)


@lowers(aten.fill.Scalar, aten.fill.Tensor)
def fill(x: Array, value: Operand) -> Array:
    """One value, in the dtype and shape of x."""
    return jnp.broadcast_to(as_dtype(value, x.dtype), x.shape)


@lowers(aten.zero.default)
def zero(x: Array) -> Array:
    """Zeros in the dtype and shape of x."""
    return jnp.zeros_like(x)
