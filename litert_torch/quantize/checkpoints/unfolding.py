"""Factors of channels that went into weights, taken out again: times them, weights are on no grid.

before: fully_connected(x, w * g), g a factor for each column, as a norm's
after:  fully_connected(mul(x, g), w)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant, combined_key
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Value, const
from litert_torch.quantize.checkpoints.stored import StoredWeight
from litert_torch.quantize.planning import weight_of
from litert_torch.quantize.recipe import Recipe

_NEAR = 1e-3  # relative; the factors were multiplied in float32


@dataclass(frozen=True)
class CheckpointRecipe(Recipe):
    """A recipe that knows what the checkpoint's weights were before passes changed them.

    Attributes:
        stored: Weights by the name of their layer.
    """

    stored: Mapping[str, StoredWeight] = field(default_factory=dict, compare=False, repr=False)

    def apply(self, graph: Graph) -> None:
        """As `Recipe.apply`, on weights that are the checkpoint's again."""
        for g in [graph, *graph.subgraphs()]:
            unfold(g, self.stored)
        super().apply(graph)


def unfold(graph: Graph, stored: Mapping[str, StoredWeight]) -> None:
    """Put a MUL before products whose columns were multiplied by a factor each."""
    old, graph.ops = graph.ops, []
    made: dict[tuple[Value, bytes], Value] = {}
    for op in old:
        weight = _stored_of(op, stored)
        factors = _factors(op, weight) if weight is not None else None
        x, w = (op.inputs[0], op.inputs[1]) if factors is not None else (None, None)
        if weight is not None and factors is not None and x is not None and w is not None:
            assert w.const is not None
            key = (x, factors.tobytes())
            if key not in made:
                graph.source = op.source
                made[key] = tfl.mul(graph, x, const(factors))
            plain = Constant(
                weight.shape, DType.FLOAT32, combined_key("stored", w.const.key), weight.real
            )
            op.inputs = [made[key], const(plain), *op.inputs[2:]]
        graph.ops.append(op)


def _stored_of(op: Op, stored: Mapping[str, StoredWeight]) -> StoredWeight | None:
    """The checkpoint's weight of the layer that the op is of."""
    if op.kind != "FULLY_CONNECTED":
        return None
    parts = op.source.module.split(".")
    names = (".".join(parts[i:]) for i in range(len(parts)))
    found = next((stored[name] for name in names if name in stored), None)
    w = weight_of(op)
    return found if found is not None and w is not None and w.shape == found.shape else None


def _factors(op: Op, weight: StoredWeight) -> Array | None:
    """What each column was multiplied by; None where all by one number, or not by columns."""
    w = weight_of(op)
    assert w is not None
    now, before = w.read().astype(np.float64), weight.real().astype(np.float64)
    energy = np.einsum("ij,ij->j", before, before)
    factors = np.einsum("ij,ij->j", now, before) / np.where(energy > 0, energy, 1)
    factors[energy == 0] = 1
    if np.ptp(factors) <= _NEAR * np.abs(factors).max():
        return None
    error = np.abs(before * factors - now).max()
    return factors.astype(np.float32) if error <= _NEAR * np.abs(now).max() else None
