"""What a recipe did: how each op computes, why not otherwise, and what it costs and gives."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litert_torch.quantize.calibrate import Tapped
from litert_torch.quantize.calibration_data import Batch, feeds
from litert_torch.quantize.layer_errors import Error, LayerError, Pairs, as_real, layer_errors
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


@dataclass(eq=False)
class Report:
    """What was done to each graph that a recipe was applied to.

    It keeps the graphs, hence their weights, as long as it lives.
    """

    entries: list[Entry] = field(default_factory=list)
    pairs: list[Pairs] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

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
                    yield Error.between(name, want[real], as_real(v, got[v]))

    def layer_errors(self, batch: Batch) -> Iterator[LayerError]:
        """The error of each float result, in execution order, on one batch of inputs.

        Both models run in LiteRT, for as many results at once as 512 MB hold. Raises
        InvalidInputError where the batch does not fit.
        """
        for pairs in self.pairs:
            if pairs.results:
                (feed,) = feeds([batch], pairs.before)
                yield from layer_errors(pairs, feed)

    def as_dict(self) -> dict[str, Any]:
        """The entries and the totals, for JSON."""
        return {
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "notes": list(self.notes),
            "entries": [vars(e) for e in self.entries],
        }

    def to_json(self, batch: Batch | None = None) -> str:
        """The entries, the totals and the errors of weights, as JSON text.

        With a `batch` of inputs, those of `layer_errors`, too.
        """
        record = {**self.as_dict(), "weight_errors": _plain(self.weight_errors())}
        if batch is not None:
            record["layer_errors"] = _plain(self.layer_errors(batch))
        return json.dumps(record, indent=2)

    def to_html(self, batch: Batch | None = None, title: str = "Quantization") -> str:
        """One page that needs nothing else: totals, plots, and a row for each op."""
        from litert_torch.quantize.report_page import page

        return page(self, list(self.layer_errors(batch)) if batch is not None else [], title)

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


def _plain(errors: Iterable[Error]) -> list[dict[str, Any]]:
    """For JSON, which has no infinity."""
    return [{k: v if _is_finite(v) else str(v) for k, v in vars(e).items()} for e in errors]


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


__all__ = ["Entry", "Error", "LayerError", "Pairs", "Report"]
