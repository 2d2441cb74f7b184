"""Weights as integers and scales, by the recipes that quantize LiteRT files.

The integers and scales are those of the .tflite file. The program makes floats of them where a
layer reads them, which XLA fuses into the product; activations stay in float, for dynamic recipes
too. 4-bit integers are packed, two a byte, the first in the low half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.export import ExportedProgram
from torch.fx import Node

from litert_torch.converter import constants, ir
from litert_torch.converter.dtypes import DType
from litert_torch.converter.lower import source_of
from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.quantize.numerics import Layout
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.rules import Place, Rule
from litert_torch.quantize.weights import WeightStore

aten = torch.ops.aten

_KINDS: dict[Any, str] = {
    aten.linear.default: "FULLY_CONNECTED",
    aten.conv1d.default: "CONV_2D",
    aten.conv2d.default: "CONV_2D",
    aten.convolution.default: "CONV_2D",
}
"""What LiteRT makes of the ops whose operand 1 is weights [out, ...]; rules name these kinds."""

SCALES = ".scales"
"""Behind a weight's name, in the name of its scales."""


@dataclass(frozen=True)
class Form:
    """How a weight is stored.

    Attributes:
        dtype: int8 or int4.
        layout: Which elements share a scale.
        algorithm: How scales are chosen.
    """

    dtype: DType
    layout: Layout
    algorithm: str | None

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Of the array that the program takes: int4 is packed along the last axis."""
        return shape if self.dtype == DType.INT8 else (*shape[:-1], shape[-1] // 2)

    def arguments(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Shapes and dtypes of the integers and of the scales, for jax."""
        kind = jnp.int8 if self.dtype == DType.INT8 else jnp.uint8
        integers = jax.ShapeDtypeStruct(self.stored_shape(shape), kind)
        return integers, jax.ShapeDtypeStruct(self.layout.scale_shape(shape), jnp.float32)

    def dequantized(self, stored: Any, scales: Any, dtype: Any) -> Any:
        """The weight, while the program is traced."""
        integers = stored
        if self.dtype == DType.INT4:
            pairs = jax.lax.bitcast_convert_type(stored, jnp.int4)
            integers = pairs.reshape(*stored.shape[:-1], 2 * stored.shape[-1])
        numbers = integers.astype(jnp.float32)
        if self.layout.block is not None:
            rows = numbers.reshape(*scales.shape, self.layout.block)
            return (rows * scales[..., None]).reshape(numbers.shape).astype(dtype)
        if self.layout.axis is not None:
            scales = scales.reshape(-1, *[1] * (numbers.ndim - 1))
        return (numbers * scales).astype(dtype)


def forms(program: ExportedProgram, recipe: Recipe) -> dict[str, Form | None]:
    """For each placeholder that some layer reads as weights, how it is stored; None for float.

    Raises:
        UnsupportedCaseError: a rule computes on integer activations, or has another type.
        InvalidInputError: a rule that names a module matches nothing.
    """
    readers = [n for n in program.graph.nodes if n.target in _KINDS and _weight_of(n) is not None]
    places = {n: _place(n) for n in readers}
    for rule in recipe.rules:
        must_match = rule.module is not None and not rule.optional
        if must_match and not any(rule.matches(p) for p in places.values()):
            raise InvalidInputError(rule.nothing_matched(list(places.values())))
    found: dict[str, Form | None] = {}
    for node in readers:
        weight = _weight_of(node)
        assert weight is not None
        last = next((r for r in reversed(recipe.rules) if r.matches(places[node])), None)
        form = None if last is None else _form(last, node, tuple(weight.meta["val"].shape))
        is_weight_only = all(u.target in _KINDS and u.args[1] is weight for u in weight.users)
        found[weight.name] = form if is_weight_only else None
    return found


def _weight_of(node: Node) -> Node | None:
    weight = node.args[1] if len(node.args) > 1 else None
    if not isinstance(weight, Node) or weight.op != "placeholder":
        return None
    fake = weight.meta["val"]
    is_float = fake.is_floating_point() and all(isinstance(s, int) for s in fake.shape)
    return weight if is_float and fake.numel() else None


def _place(node: Node) -> Place:
    weight = _weight_of(node)
    assert weight is not None
    module = source_of(node).module
    size = math.prod(weight.meta["val"].shape)
    return Place(module, _KINDS[node.target], f"{module}/{node.name}", size)


def _form(rule: Rule, node: Node, shape: tuple[int, ...]) -> Form | None:
    weights = rule.weights
    if weights.dtype == DType.FLOAT32:
        return None
    if rule.compute == "static" or weights.dtype not in (DType.INT8, DType.INT4):
        raise UnsupportedCaseError(
            f"{node.target} at {source_of(node)}: for TPU, recipes store weights as int8 or int4 "
            f"and compute in float; this rule is {rule.compute} with {weights} weights"
        )
    dtype, block = weights.dtype, weights.block
    if shape[-1] % (block or 1):
        block = None
    if dtype == DType.INT4 and (_KINDS[node.target] == "CONV_2D" or shape[-1] % 2):
        dtype, block = DType.INT8, None
    axis = None if weights.per == "tensor" else 0
    return Form(dtype, Layout(0, block) if block else Layout(axis), rule.algorithm)


@dataclass(frozen=True)
class QuantizedTensor:
    """The integers of a weight as `shards` writes them, made when they are written."""

    value: Any
    form: Form

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.form.stored_shape(self.value.const.shape)

    @property
    def dtype(self) -> Any:
        """Its numpy dtype."""
        return np.dtype(np.int8 if self.form.dtype == DType.INT8 else np.uint8)

    def chunks(self, limit: int) -> Iterator[Any]:
        """All of it."""
        del limit
        integers = self.value.const.read()
        if self.form.dtype == DType.INT4:
            low, high = integers[..., ::2].view(np.uint8), integers[..., 1::2].view(np.uint8)
            integers = (low & 15) | (high << 4)
        yield np.ascontiguousarray(integers)


def quantized(
    name: str, tensor: torch.Tensor, form: Form
) -> tuple[QuantizedTensor, np.ndarray[Any, Any]]:
    """The integers of a weight, and its scales.

    Raises:
        InvalidInputError: the weight has NaN or infinity.
    """
    weight = ir.const(constants.from_tensor(tensor.detach()).astype(DType.FLOAT32))
    value = WeightStore().quantized(weight, form.dtype, form.layout, form.algorithm, where=name)
    assert value.quantization is not None
    scales = np.asarray(value.quantization.scales, np.float32)
    shape = form.layout.scale_shape(tuple(tensor.shape))
    return QuantizedTensor(value, form), scales.reshape(shape)
