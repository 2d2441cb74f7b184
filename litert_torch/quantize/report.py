"""What a recipe did: how each op computes, why not otherwise, and what it costs and gives."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.ir import Graph, Value
from litert_torch.quantize.calibrate import Tapped
from litert_torch.quantize.calibration_data import Batch, feeds
from litert_torch.quantize.numerics import cosine, sqnr
from litert_torch.quantize.weights import restored


@dataclass(frozen=True)
class Entry:
    """One op.

    Attributes:
        graph: The signature that it is in.
        module: Path of the user's module.
        name: Its result's name in the float file.
        op: Op kind.
        form: "float", "dynamic", "weight_only" or "static".
        weights: How its weights are stored, as "int4 block 32"; empty for ops without.
        note: Why it is not as the recipe asks.
        bytes_before, bytes_after: Size of its weights.
    """

    graph: str
    module: str
    name: str
    op: str
    form: str
    weights: str = ""
    note: str = ""
    bytes_before: int = 0
    bytes_after: int = 0


@dataclass(frozen=True)
class Error:
    """How far numbers are from those of the float model.

    Attributes:
        name: The tensor, as in `Entry.name`.
        sqnr: Signal to noise in dB.
        cosine: Cosine of the angle between them.
        largest: Largest absolute difference.
    """

    name: str
    sqnr: float
    cosine: float
    largest: float

    @classmethod
    def between(cls, name: str, want: Array, got: Array) -> Error:
        """The error of `got` against `want`."""
        largest = float(abs(want.astype("float64") - got).max()) if want.size else 0.0
        return cls(name, sqnr(want, got), cosine(want, got), largest)


@dataclass(eq=False)
class Pairs:
    """A float graph beside the quantized one, and which of their values belong together."""

    before: Graph
    after: Graph
    weights: list[tuple[str, Value, Value]] = field(default_factory=list)
    activations: list[tuple[str, Value, Value]] = field(default_factory=list)


@dataclass(eq=False)
class Report:
    """What was done to each graph that a recipe was applied to.

    It keeps the graphs, hence their weights, as long as it lives.
    """

    entries: list[Entry] = field(default_factory=list)
    pairs: list[Pairs] = field(default_factory=list)

    @property
    def bytes_before(self) -> int:
        """Bytes of all weights that a rule was for."""
        return sum(e.bytes_before for e in self.entries)

    @property
    def bytes_after(self) -> int:
        """Bytes of the same weights now, with their scales."""
        return sum(e.bytes_after for e in self.entries)

    @property
    def left_in_float(self) -> list[Entry]:
        """Ops that a rule was for, but that compute in float for a reason given."""
        return [e for e in self.entries if e.form == "float" and e.note]

    def weight_errors(self) -> Iterator[Error]:
        """The error of each quantized weight, computed now, one weight at a time."""
        for pairs in self.pairs:
            for name, want, got in pairs.weights:
                yield Error.between(name, want.read(), restored(got))

    def activation_errors(self, batch: Batch) -> Iterator[Error]:
        """The error of each integer activation, accumulated up to it, on one batch of inputs.

        Both models run in LiteRT. Raises InvalidInputError where the batch does not fit.
        """
        for pairs in self.pairs:
            if not pairs.activations:
                continue
            (feed,) = feeds([batch], pairs.before)
            with tempfile.TemporaryDirectory(prefix="litert_torch_") as folder:
                reals = [v for _, v, _ in pairs.activations]
                want = Tapped(pairs.before, reals, Path(folder, "before.tflite")).run(feed)
                integers = [v for _, _, v in pairs.activations]
                got = Tapped(pairs.after, integers, Path(folder, "after.tflite")).run(feed)
                for name, real, v in pairs.activations:
                    yield Error.between(name, want[real], _real(v, got[v]))

    def as_dict(self) -> dict[str, Any]:
        """The entries and the totals, for JSON."""
        return {
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "entries": [vars(e) for e in self.entries],
        }

    def to_json(self) -> str:
        """The entries, the totals and the errors of weights, as JSON text."""
        errors = [
            {k: v if _is_finite(v) else str(v) for k, v in vars(e).items()}
            for e in self.weight_errors()
        ]
        return json.dumps({**self.as_dict(), "weight_errors": errors}, indent=2)

    def table(self, *, errors: bool = True) -> Any:
        """A `rich.table.Table` of the ops; `errors` computes those of the weights."""
        from rich.table import Table

        found = {e.name: e for e in self.weight_errors()} if errors else {}
        table = Table("tensor", "op", "form", "weights", "KB", "SQNR dB", "note")
        for e in self.entries:
            size = f"{e.bytes_before / 1e3:.0f} > {e.bytes_after / 1e3:.0f}" * bool(e.bytes_before)
            noise = f"{found[e.name].sqnr:.1f}" if e.name in found else ""
            table.add_row(e.name, e.op, e.form, e.weights, size, noise, e.note)
        return table


def _real(v: Value, integers: Array) -> Array:
    """The numbers that an activation's integers stand for."""
    q = v.quantization
    assert q is not None
    return (integers.astype(np.float32) - q.zero_points.item()) * q.scales.item()


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


__all__ = ["Entry", "Error", "Pairs", "Report"]
