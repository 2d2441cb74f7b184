"""Which ops compute on integers of calibrated scale, and the scale of each tensor between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Quantization, Value
from litert_torch.quantize import kernels
from litert_torch.quantize.numerics import affine
from litert_torch.quantize.planning import Plan, weight_of

Ranges = Mapping[Value, tuple[float, float]]

_LARGEST = 1e6
"""Masks hold numbers like -3e38, beside which integers tell nothing else apart."""


@dataclass(frozen=True)
class StaticPlan:
    """The integer part of a graph.

    Attributes:
        ops: Ops that compute on integers, with the type of their activations.
        parameters: Scale and zero point of each activation that they read or give.
        float_because: Why an op that a rule wanted on integers is not.
    """

    ops: Mapping[Op, DType]
    parameters: Mapping[Value, Quantization]
    float_because: Mapping[Op, str]


def candidates(graph: Graph, plans: Mapping[Op, Plan]) -> dict[Op, DType]:
    """Ops that a rule wants on integers and LiteRT has a kernel for."""
    found: dict[Op, DType] = {}
    for op in graph.ops:
        plan = plans[op]
        if plan.form != "static" or plan.rule is None:
            continue
        dtype = plan.rule.activations or DType.INT8
        if not _why_not(op, dtype):
            found[op] = dtype
    return found


def observed(ops: Iterable[Op]) -> list[Value]:
    """The activations of `ops`: what must be seen to choose scales."""
    values = [v for op in ops for v in (*activations(op), *_float_results(op))]
    return list(dict.fromkeys(values))


def activations(op: Op) -> list[Value]:
    """Float operands that are computed as the model runs."""
    return [v for v in op.inputs if v is not None and v.const is None and v.dtype == DType.FLOAT32]


def static_plan(
    graph: Graph,
    plans: Mapping[Op, Plan],
    wanted: Mapping[Op, DType],
    ranges: Ranges,
    typical: Mapping[Value, float],
    least_sqnr: float,
) -> StaticPlan:
    """Choose the ops, then the scales.

    Args:
        graph: The float graph.
        plans: What the rules say.
        wanted: `candidates` of the graph.
        ranges: Of every value of `observed`.
        typical: The mean square of each value's median channel.
        least_sqnr: In dB, what integers must leave of such a channel; else the value stays float.
    """
    because = {
        op: _why_not(op, (p.rule and p.rule.activations) or DType.INT8)
        for op, p in plans.items()
        if p.form == "static" and op not in wanted
    }
    chosen = dict(wanted)
    unfit = {v: _unfit(ends, typical[v], least_sqnr) for v, ends in ranges.items()}
    for op, dtype in wanted.items():
        is_free = dtype == DType.INT8 and op.kind not in kernels.FIXED
        touched = (*activations(op), *(op.outputs if is_free else ()))
        reasons = [unfit[v] for v in touched if unfit.get(v)]
        if reasons:
            because[op] = reasons[0]
            del chosen[op]
    _drop_followers(graph, chosen, because)
    return StaticPlan(chosen, _parameters(graph, chosen, ranges), because)


def _why_not(op: Op, dtype: DType) -> str:
    """Why `op` cannot be on integers; empty where it can."""
    if op.kind in kernels.WEIGHTED and weight_of(op) is not None:
        bias = _bias(op)
        if bias is not None and bias.const is None:
            return "its bias is no constant"
        return "" if op.kind in kernels.STATIC_WEIGHTS else "no kernel on integers"
    if not activations(op):
        return ""  # computes on indices or sizes, or on constants only
    moves = op.kind in kernels.MOVING or op.kind in kernels.JOINING
    fixed = dtype in kernels.FIXED.get(op.kind, {})
    rescaling = kernels.RESCALING if dtype == DType.INT8 else kernels.RESCALING_INT16
    if not (moves or fixed or op.kind in rescaling):
        return f"LiteRT has no {dtype} kernel for {op.kind}"
    if op.kind == "SOFTMAX" and op.attrs.get("beta", 1.0) != 1:
        return "beta is not 1"
    return ""


def _unfit(ends: tuple[float, float], typical: float, least_sqnr: float) -> str:
    """Why a tensor cannot be int8: its ends are far apart, or most of it is near to rounding error.

    Rounding to multiples of s has mean squared error s^2 / 12.
    """
    low, high = ends
    if not all(np.isfinite(ends)) or max(-low, high) > _LARGEST:
        return f"values from {low:.3g} to {high:.3g} are too far apart for integers"
    scale, _ = affine(low, high, DType.INT8)
    sqnr = 10 * np.log10(typical / (float(scale) ** 2 / 12)) if typical > 0 else np.inf
    if sqnr < least_sqnr:
        return f"values from {low:.3g} to {high:.3g} would leave a typical channel {sqnr:.1f} dB"
    return ""


def _drop_followers(graph: Graph, chosen: dict[Op, DType], because: dict[Op, str]) -> None:
    """Leave ops in float that nothing on integers feeds, or that only float ops read.

    Integers would cost them precision and save nothing. Matrix products stay.
    """
    while True:
        before = len(chosen)
        whole = set(graph.inputs) | {v for op in chosen for v in op.outputs}
        for op in list(chosen):
            if not _is_product(op) and not all(v in whole for v in activations(op)):
                because[op] = "what it reads is in float"
                del chosen[op]
        users = graph.users()
        outputs = set(graph.outputs)
        for op in list(chosen):
            readers = [u for v in op.outputs for u in users.get(v, [])]
            is_output = any(v in outputs for v in op.outputs)
            if _is_product(op) or is_output or any(u in chosen for u in readers):
                continue
            because[op] = "only float ops read it"
            del chosen[op]
        if len(chosen) == before:
            return


def _is_product(op: Op) -> bool:
    return op.kind in kernels.MATRIX_PRODUCTS


def _bias(op: Op) -> Value | None:
    place = kernels.WEIGHTED[op.kind].bias
    return op.inputs[place] if place is not None and place < len(op.inputs) else None


def _float_results(op: Op) -> list[Value]:
    return [v for v in op.outputs if v.dtype == DType.FLOAT32]


class _Groups:
    """Values that must have one scale, as a forest; `fixed` has the scales that kernels demand."""

    def __init__(self, fixed: Mapping[Value, tuple[float, int]]) -> None:
        self._parent: dict[Value, Value] = {}
        self.fixed = dict(fixed)

    def root(self, v: Value) -> Value:
        while v in self._parent:
            v = self._parent[v]
        return v

    def join(self, a: Value, b: Value) -> None:
        """Give a and b one scale, unless kernels demand two different ones."""
        x, y = self.root(a), self.root(b)
        if x is y or (x in self.fixed and y in self.fixed and self.fixed[x] != self.fixed[y]):
            return
        self._parent[y] = x
        if y in self.fixed:
            self.fixed[x] = self.fixed[y]


def _parameters(
    graph: Graph, chosen: Mapping[Op, DType], ranges: Ranges
) -> dict[Value, Quantization]:
    groups = _Groups(_fixed(chosen))
    for op in graph.ops:
        if op not in chosen:
            continue
        for v in (*activations(op), *op.outputs[1:]):
            joins = op.kind in kernels.JOINING and groups.root(v) not in groups.fixed
            if joins or op.kind in kernels.MOVING:
                groups.join(op.outputs[0], v)
    dtypes = {v: d for op, d in chosen.items() for v in (*activations(op), *_float_results(op))}
    members: dict[Value, list[Value]] = {}
    for v in dtypes:
        members.setdefault(groups.root(v), []).append(v)
    found: dict[Value, Quantization] = {}
    for root, group in members.items():
        low = min(ranges[v][0] for v in group)
        high = max(ranges[v][1] for v in group)
        scale, zero_point = groups.fixed.get(root) or affine(low, high, dtypes[group[0]])
        q = Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))
        found |= dict.fromkeys(group, q)
    return found


def _fixed(chosen: Mapping[Op, DType]) -> dict[Value, tuple[float, int]]:
    return {
        op.outputs[0]: kernels.FIXED[op.kind][dtype]
        for op, dtype in chosen.items()
        if op.kind in kernels.FIXED
    }
