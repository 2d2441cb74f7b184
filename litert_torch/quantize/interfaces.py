"""Inputs and outputs of 8 bits, with the normalization of images in the input's scale.

before: quantize(x), x float32               after: x int8, or quantize(x), x uint8
before: dequantize(y) is the output          after: y is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Quantization, Value, const, retyped
from litert_torch.errors import InvalidInputError
from litert_torch.quantize import calibrate
from litert_torch.quantize.numerics import activation_limits, affine

if TYPE_CHECKING:
    from litert_torch.quantize.recipe import Recipe

Kind = Literal["float32", "int8", "uint8"]
KINDS = ("float32", "int8", "uint8")


@dataclass(frozen=True)
class Interface:
    """Element types of a model's float inputs and outputs; others stay as they are.

    Attributes:
        inputs: "uint8" takes pixels 0..255, "int8" pixels less 128.
        outputs: Of integers, the scale is in the file.
        mean, std: The model was trained on (pixel - mean) / std: a number each, or one a channel.
            Without them, the scale of inputs is that of calibration.
    """

    inputs: Kind = "float32"
    outputs: Kind = "float32"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for kind in (self.inputs, self.outputs):
            if kind not in KINDS:
                raise InvalidInputError(f"inputs and outputs are {', '.join(KINDS)}, not {kind!r}")
        if (self.mean is None) != (self.std is None):
            raise InvalidInputError("mean and std belong together: give both, or none")
        if self.mean is None or self.std is None:
            return
        if self.inputs == "float32":
            raise InvalidInputError("mean and std are for inputs of int8 or uint8")
        if len(self.mean) != len(self.std):
            raise InvalidInputError(f"{len(self.mean)} means, but {len(self.std)} stds")
        if not np.isfinite([*self.mean, *self.std]).all() or min(self.std) <= 0:
            raise InvalidInputError(f"mean {self.mean} and std {self.std}: std must be above 0")

    @property
    def is_one_scale(self) -> bool:
        """Whether one scale and zero point are the whole normalization."""
        return self.mean is not None and len({*self.mean}) == 1 and len({*(self.std or ())}) == 1


def normalization(
    mean: float | Sequence[float] | None, std: float | Sequence[float] | None
) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """Numbers as tuples of them."""

    def listed(x: float | Sequence[float] | None) -> tuple[float, ...] | None:
        return None if x is None else tuple(float(v) for v in np.ravel(np.asarray(x, np.float64)))

    first, second = listed(mean), listed(std)
    if first is not None and second is not None:
        length = max(len(first), len(second))
        first = first * length if len(first) == 1 else first
        second = second * length if len(second) == 1 else second
    return first, second


def known_ranges(
    interface: Interface | None, graph: Graph, ranges: Mapping[Value, tuple[float, float]]
) -> dict[Value, tuple[float, float]]:
    """`ranges`, of which those of inputs are what their normalization makes of 0..255."""
    found = dict(ranges)
    if interface is not None and interface.is_one_scale:
        scale, mean = _scale_and_mean(interface)
        ends = ((0 - round(mean)) * scale, (255 - round(mean)) * scale)
        found |= {v: ends for v in graph.inputs if v in found}
    return found


def apply(recipe: Recipe, graph: Graph) -> None:
    """Give `graph`, which `recipe` quantized, the inputs and outputs that the recipe asks for.

    Raises:
        InvalidInputError: there is no float input or output, or no range for one.
    """
    interface = recipe.interface
    assert interface is not None
    for pairs in recipe.report.pairs:
        if pairs.after is graph:  # the report compares what takes and gives float
            pairs.after = replace(
                graph, ops=list(graph.ops), inputs=list(graph.inputs), outputs=list(graph.outputs)
            )
    graph.inputs = list(graph.inputs)  # the list is that of the float graph, too
    if interface.outputs != "float32":
        _give_integers(recipe, graph, DType(interface.outputs))
    if interface.inputs != "float32":
        _take_integers(recipe, graph, DType(interface.inputs))
    graph.remove_dead_ops()


def _take_integers(recipe: Recipe, graph: Graph, dtype: DType) -> None:
    places = _float_places(graph.inputs, graph, "input")
    old, graph.ops = graph.ops, []
    for i in places:
        v = graph.inputs[i]
        q = _input_quantization(recipe, graph, v, old, dtype)
        x = Value(retyped(v, dtype=dtype), name=v.name, quantization=q)
        graph.inputs[i] = x
        old = _read_integers(recipe, graph, v, x, old)
    graph.ops += old


def _read_integers(recipe: Recipe, graph: Graph, v: Value, x: Value, ops: list[Op]) -> list[Op]:
    """Make the float input `v` of the integers `x` before `ops`; gives the ops that stay."""
    exact = recipe.interface is not None and _needs_arithmetic(recipe.interface)
    kept, seen = [], False
    for op in ops:
        if op.kind == "QUANTIZE" and op.inputs[0] is v and not exact:
            result = op.output
            if result.dtype == x.dtype and _same(result.quantization, x.quantization):
                graph.inputs[graph.inputs.index(x)] = result
                result.producer, result.name, x = None, v.name, result
                continue
            op = Op("QUANTIZE", [x], [result], {}, op.source)
            result.producer = op
        else:
            seen = seen or v in op.inputs
        kept.append(op)
    if seen or v in graph.outputs:
        real = _normalized(graph, x, recipe) if exact else tfl.dequantize(graph, x)
        maker = real.producer
        assert maker is not None
        maker.outputs, v.producer = [v], maker
    return kept


def _normalized(graph: Graph, x: Value, recipe: Recipe) -> Value:
    """(pixels - mean) / std, for which one scale is not enough."""
    interface = recipe.interface
    assert interface is not None
    mean, std = np.array(interface.mean), np.array(interface.std)
    axis = _channel_axis(x, len(mean))
    shape = [1] * x.rank
    shape[axis] = len(mean)
    factor = const((1 / std).reshape(shape).astype(np.float32))
    offset = const((-mean / std).reshape(shape).astype(np.float32))
    recipe.report.notes.append(
        f"input {x.name}: its mean and std differ by channel, which takes a MUL and an ADD in float"
    )
    return tfl.add(graph, tfl.mul(graph, tfl.dequantize(graph, x), factor), offset)


def _channel_axis(x: Value, channels: int) -> int:
    """The last axis with as many sizes as there are means, or the one after the batch."""
    for axis in (x.rank - 1, 1):
        if 0 < axis < x.rank and x.shape[axis] == channels:
            return axis
    raise InvalidInputError(f"{channels} means do not fit an input of shape {list(x.shape)}")


def _needs_arithmetic(interface: Interface) -> bool:
    return interface.mean is not None and not interface.is_one_scale


def _input_quantization(
    recipe: Recipe, graph: Graph, v: Value, ops: Sequence[Op], dtype: DType
) -> Quantization:
    interface = recipe.interface
    assert interface is not None
    lowest = activation_limits(dtype)[0]
    if _needs_arithmetic(interface):
        return _quantization(np.float32(1), lowest)
    if interface.mean is not None:
        scale, mean = _scale_and_mean(interface)
        if mean != round(mean):
            recipe.report.notes.append(
                f"input {v.name}: mean {mean:g} counts as {round(mean)}, as zero points are whole"
            )
        if not 0 <= round(mean) <= 255:
            raise InvalidInputError(f"a mean of {mean:g} is no pixel of 0..255")
        return _quantization(np.float32(scale), round(mean) + lowest)
    for op in ops:
        if op.kind == "QUANTIZE" and op.inputs[0] is v and op.output.quantization is not None:
            return _as(op.output.quantization, op.output.dtype, dtype)
    return _quantization(*affine(*_range(recipe, graph, v, "input"), dtype))


def _scale_and_mean(interface: Interface) -> tuple[float, float]:
    assert interface.mean is not None
    assert interface.std is not None
    return 1 / interface.std[0], interface.mean[0]


def _give_integers(recipe: Recipe, graph: Graph, dtype: DType) -> None:
    for i in _float_places(graph.outputs, graph, "output"):
        v = graph.outputs[i]
        maker = v.producer
        whole = maker.inputs[0] if maker is not None and maker.kind == "DEQUANTIZE" else None
        if whole is not None and whole.quantization is not None and whole.const is None:
            q = _as(whole.quantization, whole.dtype, dtype)
            same = whole.dtype == dtype and _same(whole.quantization, q)
            result = whole if same else tfl.quantize(graph, whole, dtype, q)
        else:
            q = _quantization(*affine(*_range(recipe, graph, v, "output"), dtype))
            result = tfl.quantize(graph, v, dtype, q)
        result.name = result.name or v.name
        graph.outputs[i] = result


def _range(recipe: Recipe, graph: Graph, v: Value, what: str) -> tuple[float, float]:
    """The lowest and highest element of a float input or output over the calibration data."""
    if recipe.calibration is None:
        raise InvalidInputError(
            f"{what}s of 8 bits need a scale: give calibration data, or for inputs mean and std"
        )
    pairs = next(p for p in reversed(recipe.report.pairs) if p.before.name == graph.name)
    values = graph.inputs if what == "input" else pairs.after.outputs
    place = values.index(v)
    seen = pairs.before.inputs[place] if what == "input" else pairs.before.outputs[place]
    ends = [np.inf, -np.inf]

    def see(_: Value, x: Array) -> None:
        ends[:] = min(ends[0], float(x.min())), max(ends[1], float(x.max()))

    calibrate.look(pairs.before, [seen], recipe.calibration, see)
    return ends[0], ends[1]


def _float_places(values: Sequence[Value], graph: Graph, what: str) -> list[int]:
    found = [i for i, v in enumerate(values) if v.dtype == DType.FLOAT32 and v.const is None]
    if not found:
        raise InvalidInputError(f"signature {graph.name!r} has no float32 {what} to make integers")
    return found


def _as(q: Quantization, have: DType, want: DType) -> Quantization:
    """Parameters by which integers of type `want` stand for what those of `have` do."""
    scale, zero_point = float(q.scales.item()), int(q.zero_points.item())
    low, high = activation_limits(have)
    if have.bits == want.bits:
        shift = activation_limits(want)[0] - low
        return _quantization(q.scales.item(), zero_point + shift)
    ends = ((low - zero_point) * scale, (high - zero_point) * scale)
    return _quantization(*affine(*ends, want))


def _same(a: Quantization | None, b: Quantization | None) -> bool:
    return a is not None and b is not None and a.key == b.key


def _quantization(scale: float | np.floating[Any], zero_point: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))


__all__ = ["KINDS", "Interface", "apply", "known_ranges", "normalization"]
