"""SmoothQuant: channels that stand out in activations are scaled down, and the weights up.

before: fully_connected(x, w)
after:  fully_connected(mul(x, 1 / s), w * s), one mul for all that read x

(Xiao et al. 2022, "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large
Language Models", equation 4.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, combined_key
from litert_torch.converter.ir import Graph, Op, Value, const
from litert_torch.quantize.planning import Plan, weight_of

_STANDS_OUT = 4.0
"""How far the largest channel is above the median where a mul pays."""


def smoothable(graph: Graph, plans: Mapping[Op, Plan]) -> dict[Value, list[Op]]:
    """Products on integers by the activation that they read; weights used elsewhere stay."""
    uses: dict[object, set[Op]] = defaultdict(set)
    for op in graph.ops:
        for v in op.inputs:
            if v is not None and v.const is not None:
                uses[v.const.key].add(op)
    found: dict[Value, list[Op]] = defaultdict(list)
    for op in graph.ops:
        x, w, plan = op.inputs[0] if op.inputs else None, weight_of(op), plans[op]
        if op.kind != "FULLY_CONNECTED" or x is None or x.const is not None or w is None:
            continue
        assert w.const is not None
        on_integers = plan.form in ("dynamic", "static")
        if on_integers and x.shape[-1] == w.shape[-1] and uses[w.const.key] == {op}:
            found[x].append(op)
    return dict(found)


def smooth(
    graph: Graph,
    plans: Mapping[Op, Plan],
    readers: Mapping[Value, Sequence[Op]],
    largest: Mapping[Value, Array],
    strength: float,
) -> dict[Op, Plan]:
    """Rewrite the products of `readers` in `graph`; the plans of its new ops, and the old ones.

    Args:
        graph: A float graph.
        plans: What becomes of its ops.
        readers: `smoothable`, or some of it.
        largest: The largest magnitude of each channel of each activation.
        strength: From 0, all difficulty stays with the activations, to 1, all goes to the weights.
    """
    found = dict(plans)
    scales = {x: _scales(ops, largest[x], strength) for x, ops in readers.items()}
    shared: dict[Value, Value] = {}
    old_ops, graph.ops = graph.ops, []
    replaced: dict[Value, Value] = {}
    for old in old_ops:
        x = old.inputs[0] if old.inputs else None
        op = _with_inputs(graph, old, replaced)
        found[op] = plans[old]
        if x is None or x not in scales or old not in readers[x]:
            graph.ops.append(op)
            continue
        graph.source = old.source
        real = op.inputs[0]
        assert real is not None
        if x not in shared:
            shared[x] = tfl.mul(graph, real, const((1 / scales[x]).astype(np.float32)))
            maker = shared[x].producer
            assert maker is not None
            place = replace(plans[old].place, op="MUL", name=f"{plans[old].place.name}.smoothing")
            found[maker] = Plan(place, plans[old].rule, "float", note="scales channels alike")
        inputs = [shared[x], _scaled(old, scales[x]), *op.inputs[2:]]
        result = graph.emit(old.kind, inputs, old.output.type, **old.attrs)
        result.name = old.output.name
        assert result.producer is not None
        found[result.producer] = plans[old]
        replaced[old.output] = result
    graph.outputs = [replaced.get(v, v) for v in graph.outputs]
    return found


def _with_inputs(graph: Graph, op: Op, replaced: dict[Value, Value]) -> Op:
    """`op` itself, or where it reads what was replaced, its like; the old one stays as it was."""
    if not any(v in replaced for v in op.inputs if v is not None):
        return op
    new = Op(
        op.kind,
        [None if v is None else replaced.get(v, v) for v in op.inputs],
        [Value(v.type, name=v.name, quantization=v.quantization) for v in op.outputs],
        op.attrs,
        op.source,
    )
    for old, value in zip(op.outputs, new.outputs, strict=True):
        value.producer = new
        replaced[old] = value
    return new


def _scales(ops: Sequence[Op], largest: Array, strength: float) -> Array:
    """The factor of each channel: large where activations are, small where weights are."""
    heights = np.zeros_like(largest)
    for op in ops:
        w = weight_of(op)
        assert w is not None
        heights = np.maximum(heights, np.abs(w.read()).max(axis=0))
    seen = (largest > 0) & (heights > 0)
    factors = np.where(seen, largest, 1) ** strength / np.where(seen, heights, 1) ** (1 - strength)
    factors /= np.exp(np.log(factors[seen]).mean()) if seen.any() else 1
    return np.where(seen, np.maximum(factors, 1e-4), 1).astype(np.float32)


def _scaled(op: Op, scales: Array) -> Value:
    w = weight_of(op)
    assert w is not None
    assert w.const is not None
    key = ("smoothed", combined_key(scales.tobytes()))
    return const(w.const.derive(key, lambda data: data * scales))


def stands_out(largest: Array) -> bool:
    """Whether some channels are so far above the others that smoothing pays."""
    return bool(largest.max(initial=0) > _STANDS_OUT * max(float(np.median(largest)), 1e-12))
