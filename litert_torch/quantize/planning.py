"""What becomes of each op: the rule for it, as far as LiteRT has kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from litert_torch.converter.dims import is_static
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Value
from litert_torch.errors import InvalidInputError
from litert_torch.quantize import kernels
from litert_torch.quantize.numerics import Layout
from litert_torch.quantize.rules import Place, Rule
from litert_torch.quantize.schemes import Weights, float16, int8

Form = Literal["float", "dynamic", "weight_only", "static"]


@dataclass(frozen=True)
class Plan:
    """What is done with one op.

    Attributes:
        place: The op, as rules and the report see it.
        rule: The last rule that matches; None where none does.
        form: How it will compute; "float" leaves it as it is.
        weights: How its weights are stored; None for ops without.
        note: Why it is not as the rule says; empty where it is.
    """

    place: Place
    rule: Rule | None
    form: Form
    weights: Weights | None = None
    note: str = ""


def plans_for(graph: Graph, rules: Sequence[Rule]) -> dict[Op, Plan]:
    """A plan for every op of `graph` and of the graphs inside it.

    Raises:
        InvalidInputError: a rule that names a module or a tensor matches nothing.
    """
    ops = [(op, _place(op, i), g is graph) for g in _all(graph) for i, op in enumerate(g.ops)]
    places = [place for _, place, _ in ops]
    for rule in rules:
        is_named = rule.module is not None or rule.name is not None
        if is_named and not rule.optional and not any(map(rule.matches, places)):
            raise InvalidInputError(rule.nothing_matched(places))
    return {op: _plan(op, place, rules, is_main=main) for op, place, main in ops}


def weight_of(op: Op) -> Value | None:
    """The float constant that a weighted op multiplies by; None where there is none."""
    operands = kernels.WEIGHTED.get(op.kind)
    w = op.inputs[operands.weights] if operands is not None else None
    if w is None or w.const is None or w.dtype != DType.FLOAT32 or w.const.size == 0:
        return None
    return w


def layout_of(op: Op, weights: Weights) -> Layout:
    """Which of the op's weights share a scale."""
    w = weight_of(op)
    assert w is not None
    if weights.block is not None:
        return Layout(0, weights.block)
    if weights.per == "tensor":
        return Layout(None)
    axis = kernels.WEIGHTED[op.kind].axis
    if op.kind == "BATCH_MATMUL":
        if w.rank != 2:
            return Layout(None)  # the kernel looks for a scale a channel in matrices only
        axis = 0 if op.attrs.get("adjY") else 1
    return Layout(axis)


def not_static(op: Op, plan: Plan, why: str) -> Plan:
    """What becomes of an op of a static rule that calibration rules out.

    With weights, it computes on integers of scales that are found as the model runs.
    """
    w = weight_of(op)
    if w is None or plan.rule is None or op.kind not in kernels.DYNAMIC:
        return replace(plan, form="float", note=why)
    return replace(_dynamic(op, plan.place, plan.rule, w), note=why)


def _all(graph: Graph) -> Iterator[Graph]:
    yield graph
    yield from graph.subgraphs()


def _place(op: Op, i: int) -> Place:
    name = op.outputs[0].name if op.outputs else ""
    w = weight_of(op)
    size = w.const.size if w is not None and w.const is not None else 0
    default = f"{op.source.module or 'model'}/{op.kind.lower()}_{i}"
    return Place(op.source.module, op.kind, name or default, size)


def _plan(op: Op, place: Place, rules: Sequence[Rule], *, is_main: bool) -> Plan:
    rule = next((r for r in reversed(rules) if r.matches(place)), None)
    if rule is None:
        return Plan(place, None, "float", note="no rule is for it")
    if rule.weights.dtype == DType.FLOAT32:
        return Plan(place, rule, "float", note="a rule leaves it in float")
    w = weight_of(op)
    if rule.compute == "static" and rule.weights.is_integer and op.kind != "EMBEDDING_LOOKUP":
        if not is_main:
            return Plan(place, rule, "float", note="inside a loop, a branch or a composite")
        return _static(op, place, rule, w)
    if rule.weights.dtype == DType.FLOAT16:
        return Plan(place, rule, "weight_only", rule.weights)
    if w is None:
        note = "its weights are no constant" if op.kind in kernels.WEIGHTED else ""
        return Plan(place, rule, "float", note=note)
    if rule.compute == "weight_only" and op.kind != "EMBEDDING_LOOKUP":
        return _weight_only(op, place, rule)
    return _dynamic(op, place, rule, w)


def _static(op: Op, place: Place, rule: Rule, w: Value | None) -> Plan:
    if w is None:
        return Plan(place, rule, "static")
    takes = kernels.STATIC_WEIGHTS[op.kind]
    weights, note = _fitting(op, rule.weights, w)
    if weights.dtype not in takes or weights.block is not None:
        note = f"no kernel of {weights} weights for {op.kind}"
        weights = replace(weights, dtype=DType.INT8, block=None)
    if op.kind == "BATCH_MATMUL":
        weights = int8("tensor")
    return Plan(place, rule, "static", weights, note)


def _weight_only(op: Op, place: Place, rule: Rule) -> Plan:
    weights = rule.weights
    if weights.dtype in kernels.DEQUANTIZABLE and weights.block is None:
        return Plan(place, rule, "weight_only", weights)
    note = f"DEQUANTIZE takes no {weights}"
    chosen = replace(weights, dtype=DType.INT4, block=None)
    return Plan(place, rule, "weight_only", chosen, note)


def _dynamic(op: Op, place: Place, rule: Rule, w: Value) -> Plan:
    if op.kind not in kernels.DYNAMIC:
        note = f"XNNPACK has no {op.kind} of float and integers, and float16 is read as it is"
        return Plan(place, rule, "weight_only", float16(), note)
    weights, note = _fitting(op, rule.weights, w)
    if weights.dtype not in kernels.DYNAMIC[op.kind]:
        note = f"no kernel of {weights.dtype} weights for {op.kind}"
        weights = replace(weights, dtype=DType.INT8, block=None)
    return Plan(place, rule, "dynamic", weights, note)


def _fitting(op: Op, weights: Weights, w: Value) -> tuple[Weights, str]:
    """`weights`, or what comes next to them that the shape of `w` allows, and why."""
    note = ""
    assert is_static(w.shape)
    columns = int(w.shape[-1])
    if weights.block is not None and (op.kind != "FULLY_CONNECTED" or columns % weights.block):
        note = f"{columns} input channels are no multiple of {weights.block}"
        if op.kind != "FULLY_CONNECTED":
            note = f"no kernel of blocks for {op.kind}"
        weights = replace(weights, block=None)
    if columns % kernels.MULTIPLE_OF.get(weights.dtype, 1) and op.kind in (
        "FULLY_CONNECTED",
        "EMBEDDING_LOOKUP",
    ):
        note = f"rows of {columns} {weights.dtype} weights do not end with a byte"
        weights = replace(weights, dtype=DType.INT8)
    return weights, note
