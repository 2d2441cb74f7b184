"""A recipe applied to a graph: the op list is built anew, on integers where the plan says so."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Quantization, TensorType, Value, retyped
from litert_torch.errors import InvalidInputError
from litert_torch.quantize import calibrate, half_precision, interfaces, kernels, static
from litert_torch.quantize.algorithms import gptq, smoothing
from litert_torch.quantize.algorithms.bias_correction import corrected
from litert_torch.quantize.algorithms.gptq import SecondMoment
from litert_torch.quantize.numerics import affine, as_integers
from litert_torch.quantize.planning import Plan, layout_of, not_static, plans_for, weight_of
from litert_torch.quantize.report import Entry, Pairs
from litert_torch.quantize.weights import WeightStore
from litert_torch.quantize.windows import Window, window_of

if TYPE_CHECKING:
    from litert_torch.quantize.recipe import Recipe


def apply(recipe: Recipe, graph: Graph) -> None:
    """Quantize `graph` and the graphs inside it as `recipe` says, and report.

    Raises:
        InvalidInputError: a rule matches nothing, or calibration data is needed and absent, or
            does not fit, or weights are not finite.
    """
    plans = _smoothed(recipe, graph, plans_for(graph, recipe.rules))
    wanted = static.candidates(graph, plans)
    plan = static.StaticPlan({}, {}, {})
    means: Mapping[Value, Array] = {}
    if wanted:
        seen = _statistics(recipe, graph, wanted)
        ranges = interfaces.known_ranges(recipe.interface, graph, seen.ranges)
        plan = static.static_plan(graph, plans, wanted, ranges, seen.typical, recipe.least_sqnr)
        means = seen.means
        plans = _without_static(plans, plan)
    moments = _second_moments(recipe, graph, plans)
    store = WeightStore()
    for g in [*graph.subgraphs(), graph]:
        before = replace(g, ops=list(g.ops), outputs=list(g.outputs))
        rebuilt = _Rebuilt(g, plans, plan, store, moments, means)
        rebuilt.run()
        recipe.report.entries += rebuilt.entries
        recipe.report.pairs.append(
            Pairs(
                before,
                g,
                rebuilt.weights,
                rebuilt.activations() if g is graph else [],
                rebuilt.results() if g is graph else [],
            )
        )


def _smoothed(recipe: Recipe, graph: Graph, plans: dict[Op, Plan]) -> dict[Op, Plan]:
    """Scale down the channels that stand out, where the recipe asks for it."""
    if recipe.smoothing is None:
        return plans
    if recipe.calibration is None:
        raise InvalidInputError("smoothing needs calibration data: recipe.calibrated(batches)")
    readers = smoothing.smoothable(graph, plans)
    largest = calibrate.largest_magnitudes(graph, readers, recipe.calibration)
    paying = {x: ops for x, ops in readers.items() if smoothing.stands_out(largest[x])}
    return smoothing.smooth(graph, plans, paying, largest, recipe.smoothing)


def _without_static(plans: Mapping[Op, Plan], found: static.StaticPlan) -> dict[Op, Plan]:
    """The plans, with those that calibration ruled out replaced by what comes nearest."""
    return {
        op: not_static(op, plan, found.float_because[op]) if op in found.float_because else plan
        for op, plan in plans.items()
    }


def _statistics(recipe: Recipe, graph: Graph, wanted: Mapping[Op, DType]) -> calibrate.Statistics:
    if recipe.calibration is None:
        raise InvalidInputError(
            "static quantization needs calibration data: Recipe.static(calibration=batches)"
        )
    averaged = {op.inputs[0]: None for op in wanted if op.kind in _CORRECTED}
    return calibrate.Statistics(
        graph,
        static.observed(wanted),
        [v for v in averaged if v is not None],
        recipe.calibration,
        recipe.observer,
        next(iter(wanted.values())),
    )


_CORRECTED = frozenset({"FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"})
"""Ops whose bias makes up for the mean error of their weights."""


Moments = Mapping[tuple[Value, Window], SecondMoment]


def _second_moments(recipe: Recipe, graph: Graph, plans: Mapping[Op, Plan]) -> Moments:
    """What GPTQ needs to know of the inputs of the ops that it is for."""
    is_given = recipe.calibration is not None
    found = [_seen_by(op, plans[op], is_calibrated=is_given) for op in graph.ops]
    wanted = dict.fromkeys(seen for seen in found if seen is not None)
    if not wanted:
        return {}
    if recipe.calibration is None:
        raise InvalidInputError("gptq needs calibration data: recipe.calibrated(batches)")
    return calibrate.second_moments(graph, wanted, recipe.calibration)


def _seen_by(op: Op, plan: Plan, *, is_calibrated: bool) -> tuple[Value, Window] | None:
    """What GPTQ must know for an op; None where it is not asked for, or has no columns to go by.

    Without an algorithm asked for, it is GPTQ where there is calibration data.
    """
    window = window_of(op) if plan.form != "float" and plan.rule is not None else None
    x = op.inputs[0] if op.inputs else None
    if window is None or x is None or plan.weights is None or not plan.weights.is_integer:
        return None
    assert plan.rule is not None
    is_default = (
        plan.rule.algorithm is None
        and is_calibrated
        and window.columns(int(x.shape[-1])) <= gptq.LARGEST
    )
    return (x, window) if plan.rule.algorithm == "gptq" or is_default else None


def _is_compensated(plan: Plan) -> bool:
    return plan.rule is not None and plan.rule.algorithm in (None, "gptq")


class _Rebuilt:
    """One graph's new ops; `real` and `integers` have what stands for each old value."""

    def __init__(
        self,
        graph: Graph,
        plans: Mapping[Op, Plan],
        static_plan: static.StaticPlan,
        store: WeightStore,
        moments: Moments,
        means: Mapping[Value, Array],
    ) -> None:
        self.graph = graph
        self.plans = plans
        self.static = static_plan
        self.store = store
        self.moments = moments
        self.means = means
        self.entries: list[Entry] = []
        self.weights: list[tuple[str, Value, Value]] = []
        self._old_ops = graph.ops
        self._real: dict[Value, Value] = {}
        self._integers: dict[Value, Value] = {}
        self._made: dict[Hashable, Value] = {}

    def run(self) -> None:
        """Replace the graph's ops and outputs."""
        self.graph.ops = []
        for op in self._old_ops:
            self.graph.source = op.source
            plan = self.plans[op]
            if op in self.static.ops:
                self._emit_on_integers(op, plan)
            elif plan.form in ("dynamic", "weight_only"):
                self._emit_with_small_weights(op, plan)
            else:
                self._emit_in_float(op)
                self._enter(plan, "float", plan.note if plan.rule is not None else "")
        self.graph.outputs = [self._as_real(v) for v in self.graph.outputs]

    def activations(self) -> list[tuple[str, Value, Value]]:
        """Integer results by name, each beside the float value that it stands for."""
        return [
            (self.plans[v.producer].place.name, v, new)
            for v, new in self._integers.items()
            if v.producer is not None
        ]

    def results(self) -> list[tuple[str, Value, Value]]:
        """Every float result by name, beside what stands for it now."""
        return [
            (self.plans[op].place.name, v, self._integers.get(v) or self._real.get(v, v))
            for op in self._old_ops
            for v in op.outputs
            if _is_float(v)
        ]

    def _enter(self, plan: Plan, form: str, note: str, *weights: Value) -> None:
        place = plan.place
        before = after = 0
        if weights:
            old, new = weights
            assert old.const is not None
            assert new.const is not None
            before, after = old.const.nbytes, new.const.nbytes + _scale_bytes(new)
            self.weights.append((place.name, old, new))
        shown = str(plan.weights) if weights else ""
        graph = self.graph.name
        entry = Entry(graph, place.module, place.name, place.op, form, shown, note, before, after)
        self.entries.append(entry)

    def _emit_in_float(self, op: Op) -> None:
        inputs = [None if v is None else self._as_real(v) for v in op.inputs]
        if all(a is b for a, b in zip(inputs, op.inputs, strict=True)):
            self.graph.ops.append(op)
            return
        self._emit(op, inputs)

    def _emit(self, op: Op, inputs: list[Value | None]) -> None:
        types = [v.type for v in op.outputs]
        results = self.graph.emit_many(op.kind, inputs, types, **op.attrs)
        self.graph.ops[-1].intermediates = op.intermediates
        for old, new in zip(op.outputs, results, strict=True):
            new.name = old.name
            new.quantization = old.quantization
            self._real[old] = new

    def _emit_with_small_weights(self, op: Op, plan: Plan) -> None:
        """Float activations beside integer or float16 weights."""
        assert plan.weights is not None
        inputs = [None if v is None else self._as_real(v) for v in op.inputs]
        if plan.weights.dtype == DType.FLOAT16:
            self._halve(op, plan, inputs)
            return
        w = weight_of(op)
        assert w is not None
        small = self._small_weight(op, plan)
        place = kernels.WEIGHTED[op.kind].weights
        inputs[place] = small if plan.form == "dynamic" else self._dequantized(small)
        self._emit(op, inputs)
        self._enter(plan, plan.form, plan.note, w, small)

    def _halve(self, op: Op, plan: Plan, inputs: list[Value | None]) -> None:
        places = half_precision.operands(op)
        note = "" if places or weight_of(op) is None else "no float32 weights"
        for i in places:
            old = op.inputs[i]
            assert old is not None
            small = self._half(old)
            if small is None:
                note = "its numbers are beyond float16's range"
                continue
            inputs[i] = self._dequantized(small)
            self._enter(plan, plan.form, "", old, small)
        self._emit(op, inputs)
        if note:
            self._enter(plan, "float", note)

    def _half(self, v: Value) -> Value | None:
        assert v.const is not None
        key = ("half", v.const.key, v.shape)
        if key not in self._made:
            small = half_precision.halved(v)
            if small is None:
                return None
            self._made[key] = small
        return self._made[key]

    def _dequantized(self, small: Value) -> Value:
        if small not in self._real:
            self._real[small] = tfl.dequantize(self.graph, small)
        return self._real[small]

    def _small_weight(self, op: Op, plan: Plan) -> Value:
        w = weight_of(op)
        assert w is not None
        assert plan.weights is not None
        window, x = window_of(op), op.inputs[0]
        moment = None
        if window is not None and x is not None and _is_compensated(plan):
            moment = self.moments.get((x, window))
        algorithm = plan.rule.algorithm if plan.rule is not None else None
        layout = layout_of(op, plan.weights)
        return self.store.quantized(
            w,
            plan.weights.dtype,
            layout,
            algorithm,
            moment,
            plan.place.name,
            kernels=_kernels(op, w) if moment is None else None,
        )

    def _emit_on_integers(self, op: Op, plan: Plan) -> None:
        dtype = self.static.ops[op]
        w = weight_of(op) if op.kind in kernels.WEIGHTED else None
        inputs = self._plain_operands(op, dtype, w)
        if w is not None:
            small = self._weigh(op, plan, inputs)
            self._enter(plan, "static", plan.note, w, small)
        else:
            self._enter(plan, "static", "")
        types = [retyped(v, dtype=dtype) if _is_float(v) else v.type for v in op.outputs]
        results = self.graph.emit_many(op.kind, inputs, types, **op.attrs)
        for old, new in zip(op.outputs, results, strict=True):
            new.name = old.name
            new.quantization = self.static.parameters[old]
            self._integers[old] = new

    def _plain_operands(self, op: Op, dtype: DType, w: Value | None) -> list[Value | None]:
        """Integers for every float operand but weights and bias."""
        skipped: set[int] = set()
        if w is not None:
            operands = kernels.WEIGHTED[op.kind]
            skipped = {operands.weights, *({operands.bias} - {None})}  # type: ignore[arg-type]
        shared = None
        if op.kind in kernels.JOINING or op.kind in kernels.MOVING:
            shared = self.static.parameters[op.outputs[0]]
        inputs: list[Value | None] = []
        for i, v in enumerate(op.inputs):
            if v is None or i in skipped:
                inputs.append(v)
            elif _is_float(v):
                inputs.append(self._as_integers(v, dtype, shared))
            else:
                inputs.append(self._as_real(v))
        return inputs

    def _weigh(self, op: Op, plan: Plan, inputs: list[Value | None]) -> Value:
        """Put integer weights and bias among `inputs`."""
        operands = kernels.WEIGHTED[op.kind]
        small = self._small_weight(op, plan)
        inputs[operands.weights] = small
        x = inputs[operands.x]
        if operands.bias is not None and operands.bias < len(inputs) and x is not None:
            bias = inputs[operands.bias]
            if bias is not None and bias.const is not None:
                real = self._corrected(op, bias.const, small)
                inputs[operands.bias] = _bias(real, x, small)
        return small

    def _corrected(self, op: Op, bias: Constant, small: Value) -> Constant:
        """The bias, with what the rounded weights lack on average."""
        x, w = op.inputs[0], weight_of(op)
        if op.kind not in _CORRECTED or x is None or x not in self.means or w is None:
            return bias
        assert w.const is not None
        return corrected(bias, op.kind, w.const, small, self.means[x])

    def _as_real(self, v: Value) -> Value:
        """What stands for `v` in float (or as it is, where it never was float)."""
        if v not in self._real and v in self._integers:
            self._real[v] = tfl.dequantize(self.graph, self._integers[v])
        return self._real.get(v, v)

    def _as_integers(self, v: Value, dtype: DType, demanded: Quantization | None) -> Value:
        """What stands for `v` as integers, with the scale that is demanded if one is."""
        if v.const is not None:
            return self._constant(v, dtype, demanded)
        q = demanded or self.static.parameters[v]
        whole = self._integers.get(v)
        if whole is not None and whole.dtype == dtype and _has(whole, q):
            return whole
        key = (v, dtype, q.key)
        if key not in self._made:
            source = whole if whole is not None else self._as_real(v)
            self._made[key] = tfl.quantize(self.graph, source, dtype, q)
        return self._made[key]

    def _constant(self, v: Value, dtype: DType, demanded: Quantization | None) -> Value:
        assert v.const is not None
        if demanded is None:
            data = v.const.read()
            scale, zero_point = affine(float(data.min()), float(data.max()), dtype)
        else:
            scale, zero_point = demanded.scales.item(), int(demanded.zero_points.item())

        def integers(x: Array) -> Array:
            return as_integers(x, float(scale), zero_point, dtype)

        made = v.const.derive(
            ("activation", dtype, float(scale), zero_point), integers, dtype=dtype
        )
        q = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))
        return Value(TensorType(v.shape, dtype), const=made, quantization=q)


def _kernels(op: Op, w: Value) -> int | None:
    """Kernels that an output channel of a convolution sums over; None for other ops."""
    if op.kind == "DEPTHWISE_CONV_2D":
        return 1
    return int(w.shape[-1]) if op.kind in ("CONV_2D", "TRANSPOSE_CONV") else None


def _is_float(v: Value) -> bool:
    return v.dtype == DType.FLOAT32


def _has(v: Value, q: Quantization) -> bool:
    return v.quantization is not None and v.quantization.key == q.key


def _scale_bytes(v: Value) -> int:
    q = v.quantization
    if q is None:
        return 0
    return int(np.size(q.scales)) * (2 if q.block_size is not None else 12)


def _bias(bias: Constant, x: Value, w: Value) -> Value:
    """A float bias as integers in units of the products that it is added to.

    int32 beside int8 activations, int64 beside int16, with scale x.scale * w.scale and zero point
    0 (LiteRT quantization specification).
    """
    assert x.quantization is not None
    assert w.quantization is not None
    scales = np.ravel(x.quantization.scales).astype(np.float64) * np.ravel(w.quantization.scales)
    dtype = DType.INT64 if x.dtype == DType.INT16 else DType.INT32
    limits = np.iinfo(np.int32 if dtype == DType.INT32 else np.int64)

    def integers(b: Array) -> Array:
        units = np.rint(b.astype(np.float64) / scales)
        return np.clip(units, float(limits.min), float(limits.max) - 1024).astype(dtype.numpy)

    made = bias.derive(("bias", dtype, scales.tobytes()), integers, dtype=dtype)
    q = Quantization(scales.astype(np.float32), np.zeros(scales.size, np.int64), 0)
    return Value(TensorType(bias.shape, dtype), const=made, quantization=q)
