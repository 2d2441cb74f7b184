"""From rules by name to the sharding of every array: in PyTorch's terms, or found by pattern.

A rule names weights by their path, with * for any part of it, or the module that they are in. It
says either which mesh axis splits each dimension, as `(None, "model")`, or how the layer is made
parallel: `ColwiseParallel()` and `RowwiseParallel()` of torch.distributed.tensor.parallel, or the
strings "colwise" and "rowwise".
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

from litert_torch.errors import InvalidInputError
from litert_torch.tpu.sharding import Mesh, Shardings, Spec, check, data_parallel

Shapes = Mapping[str, Sequence[int]]
Rules = str | Mapping[str, Any] | None

MODEL_AXIS = "model"

_COLUMNS = (
    r"(q|k|v|qkv|query|key|value|gate|up|gate_up|in)_proj|[wW]?[qkv]|w1|w3|wqkv|query|key|value|"
    r"c_attn|c_fc|fc1|fc_in|lin1|dense_h_to_4h|query_key_value|intermediate\.dense|linear1|mlp\.0"
)
_ROWS = (
    r"(o|out|down)_proj|wo|w2|c_proj|fc2|fc_out|lin2|out_lin|dense_4h_to_h|attention\.dense|"
    r"output\.dense|linear2|mlp\.3"
)
_VOCABULARY = r"embed_tokens|wte|tok_embeddings|word_embeddings|lm_head|embed_out|shared"


def resolve(rules: Rules, weights: Shapes, state: Shapes, inputs: Shapes, mesh: Mesh) -> Shardings:
    """How each array is split.

    Args:
        rules: None splits inputs along the mesh's first axis, and leaves weights whole.
            "transformer" finds the layers of a transformer by their names and splits them over
            "model" (Megatron's way: q, k, v and up by columns, o and down by rows, the vocabulary
            by rows), and its caches by heads. "fsdp" splits each weight over the first axis. A
            mapping has rules, of which the first that matches holds; keys "inputs.NAME" and
            "state.NAME" are for these.
        weights: Shapes by name.
        state: Shapes by name.
        inputs: Shapes by name.
        mesh: The devices.

    Raises:
        InvalidInputError: a rule matches nothing, or does not divide a dimension.
    """
    first = next(iter(mesh.axes))
    batch = data_parallel(inputs, mesh, first) if first != MODEL_AXIS else {}
    if rules is None:
        return Shardings(mesh, inputs=batch)
    if rules == "transformer":
        found = {n: _transformer(n, shape, mesh) for n, shape in weights.items()}
        return Shardings(mesh, _split(found), _split(_caches(state, mesh)), batch)
    if rules == "fsdp":
        return Shardings(
            mesh, _split({n: _longest(s, mesh, first) for n, s in weights.items()}), inputs=batch
        )
    if not isinstance(rules, Mapping):
        raise InvalidInputError(
            f"shardings are 'transformer', 'fsdp' or a dict of rules, not {rules!r}"
        )
    return _by_rules(rules, weights, state, inputs, mesh, batch)


def _split(specs: Mapping[str, Spec]) -> dict[str, Spec]:
    return {name: spec for name, spec in specs.items() if any(spec)}


def _transformer(name: str, shape: Sequence[int], mesh: Mesh) -> Spec:
    """The spec of a transformer's weight; whole where it is none or does not divide."""
    if MODEL_AXIS not in mesh.axes:
        raise InvalidInputError(
            f"'transformer' splits over an axis called {MODEL_AXIS!r}; "
            f"the mesh has {', '.join(mesh.axes)}"
        )
    layer = name.rsplit(".", 1)[0]
    spec: Spec = ()
    if _ends(layer, _COLUMNS) or re.search(r"\.in_proj_(weight|bias)$", name):
        spec = _style("colwise", name, shape)
    elif _ends(layer, _ROWS):
        spec = _style("rowwise", name, shape)
    elif _ends(layer, _VOCABULARY):
        spec = (MODEL_AXIS, None)[: len(shape)]
    return spec if _divides(shape, spec, mesh) else ()


def _ends(layer: str, pattern: str) -> bool:
    return re.search(rf"(^|\.)({pattern})$", layer) is not None


def _caches(state: Shapes, mesh: Mesh) -> dict[str, Spec]:
    """Caches [batch, heads, length, size] split by heads."""
    spec: Spec = (None, MODEL_AXIS, None, None)
    return {
        name: spec
        for name, shape in state.items()
        if len(shape) == 4 and _divides(shape, spec, mesh)
    }


def _divides(shape: Sequence[int], spec: Spec, mesh: Mesh) -> bool:
    return all(s % mesh.parts(axes) == 0 for s, axes in zip(shape, spec, strict=False))


def _longest(shape: Sequence[int], mesh: Mesh, axis: str) -> Spec:
    """The longest dimension that divides over `axis`."""
    able = [dim for dim, size in enumerate(shape) if size % mesh.axes[axis] == 0]
    if not able:
        return ()
    chosen = max(able, key=lambda dim: shape[dim])
    return tuple(axis if dim == chosen else None for dim in range(len(shape)))


def _style(style: Any, name: str, shape: Sequence[int]) -> Spec:
    """A layer style of PyTorch's for a weight [out, in], a bias [out] or an embedding."""
    kind = (style if isinstance(style, str) else type(style).__name__).lower()
    kind = kind.removesuffix("parallel")
    if kind not in {"colwise", "rowwise"}:
        raise InvalidInputError(f"the rule for '{name}' is {style!r}: not colwise, rowwise or axes")
    if kind == "colwise":
        return (MODEL_AXIS, *[None] * (len(shape) - 1))
    return (None, MODEL_AXIS, *[None] * (len(shape) - 2)) if len(shape) > 1 else ()


def _by_rules(
    rules: Mapping[str, Any],
    weights: Shapes,
    state: Shapes,
    inputs: Shapes,
    mesh: Mesh,
    batch: Mapping[str, Spec],
) -> Shardings:
    named = {**weights, **{f"state.{n}": s for n, s in state.items()}}
    named |= {f"inputs.{n}": s for n, s in inputs.items()}
    specs: dict[str, Spec] = {f"inputs.{n}": spec for n, spec in batch.items()}
    used: set[str] = set()
    for name, shape in named.items():
        for pattern, rule in rules.items():
            if _matches(name, pattern):
                specs[name] = _spec(rule, name, shape)
                check(name, shape, specs[name], mesh)
                used.add(pattern)
                break
    unused = [p for p in rules if p not in used and not any(_matches(n, p) for n in named)]
    if unused:
        raise InvalidInputError(
            f"no weight matches {', '.join(map(repr, unused))}; there are "
            f"{', '.join(list(named)[:8])}{', ...' if len(named) > 8 else ''}"
        )
    return Shardings(
        mesh,
        {n: s for n, s in specs.items() if n in weights},
        {n.removeprefix("state."): s for n, s in specs.items() if n.startswith("state.")},
        {n.removeprefix("inputs."): s for n, s in specs.items() if n.startswith("inputs.")},
    )


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}.*")


def _spec(rule: Any, name: str, shape: Sequence[int]) -> Spec:
    if rule is None:
        return ()
    if isinstance(rule, (tuple, list)):
        return tuple(tuple(a) if isinstance(a, list) else a for a in rule)
    return _style(rule, name, shape)
