"""Bits of integers; of bools, logic."""

from collections.abc import Callable

import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array, Operand, promoted

aten = torch.ops.aten


def _of_two(function: Callable[[Array, Array], Array]) -> Callable[[Operand, Operand], Array]:
    def lowering(x: Operand, other: Operand) -> Array:
        return function(*jnp.broadcast_arrays(*promoted(x, other)))

    return lowering


_and, _or, _xor = map(_of_two, (jnp.bitwise_and, jnp.bitwise_or, jnp.bitwise_xor))
# Amounts below 0 or beyond the width shift everything out, in XLA as in PyTorch.
_left, _right = map(_of_two, (lax.shift_left, lax.shift_right_arithmetic))


def _right_any(x: Operand, other: Operand) -> Array:
    a, _ = promoted(x, other)
    return _logical_right(x, other) if a.dtype.kind == "u" else _right(x, other)


_logical_right = _of_two(lax.shift_right_logical)

lowers.one_to_one(
    {
        aten.bitwise_and.Tensor: _and,
        aten.bitwise_and.Scalar: _and,
        aten.bitwise_and.Scalar_Tensor: _and,
        aten.bitwise_or.Tensor: _or,
        aten.bitwise_or.Scalar: _or,
        aten.bitwise_or.Scalar_Tensor: _or,
        aten.bitwise_xor.Tensor: _xor,
        aten.bitwise_xor.Scalar: _xor,
        aten.bitwise_xor.Scalar_Tensor: _xor,
        aten.bitwise_left_shift.Tensor: _left,
        aten.bitwise_left_shift.Tensor_Scalar: _left,
        aten.bitwise_left_shift.Scalar_Tensor: _left,
        aten.bitwise_right_shift.Tensor: _right_any,
        aten.bitwise_right_shift.Tensor_Scalar: _right_any,
        aten.bitwise_right_shift.Scalar_Tensor: _right_any,
        aten.__lshift__.Tensor: _left,
        aten.__lshift__.Scalar: _left,
        aten.__rshift__.Tensor: _right_any,
        aten.__rshift__.Scalar: _right_any,
        aten.bitwise_not.default: lambda x: jnp.bitwise_not(x),
    }
)


def _logical(function: Callable[[Array, Array], Array]) -> Callable[[Operand, Operand], Array]:
    def lowering(x: Operand, other: Operand) -> Array:
        return function(jnp.asarray(x) != 0, jnp.asarray(other) != 0)

    return lowering


lowers.one_to_one(
    {
        aten.logical_and.default: _logical(jnp.logical_and),
        aten.logical_or.default: _logical(jnp.logical_or),
        aten.logical_xor.default: _logical(jnp.logical_xor),
        aten.logical_not.default: lambda x: x == 0,
    }
)
