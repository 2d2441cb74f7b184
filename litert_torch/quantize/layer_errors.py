"""How far a quantized graph is from the float one, result by result."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.ir import Graph, Value
from litert_torch.quantize.calibrate import Tapped
from litert_torch.quantize.calibration_data import Feed
from litert_torch.quantize.numerics import cosine, sqnr

_AT_ONCE = 1 << 29  # bytes of results that are in memory together


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


@dataclass(frozen=True)
class LayerError(Error):
    """The error of an op's result, which gathers from the input of the model on.

    Attributes:
        op: Op kind.
        added: Noise over signal that is there less that of the worst operand: about what this op
            adds; at least 0.
    """

    op: str = ""
    added: float = 0.0


@dataclass(eq=False)
class Pairs:
    """A float graph beside the quantized one, and which of their values belong together.

    Attributes:
        before, after: The graphs.
        weights: Names of ops, float weights, and what they became.
        activations: Names of ops, float results, and the integers that stand for them.
        results: Every float result, beside what stands for it: integers or float.
    """

    before: Graph
    after: Graph
    weights: list[tuple[str, Value, Value]] = field(default_factory=list)
    activations: list[tuple[str, Value, Value]] = field(default_factory=list)
    results: list[tuple[str, Value, Value]] = field(default_factory=list)


def layer_errors(pairs: Pairs, feed: Feed) -> Iterator[LayerError]:
    """The error of each result, in execution order."""
    noise: dict[Value, float] = {}
    for part in _parts(pairs.results):
        with tempfile.TemporaryDirectory(prefix="litert_torch_") as folder:
            reals = [v for _, v, _ in part]
            want = Tapped(pairs.before, reals, Path(folder, "before.tflite")).run(feed)
            now = [new for _, _, new in part]
            got = Tapped(pairs.after, now, Path(folder, "after.tflite")).run(feed)
        for name, v, new in part:
            error = Error.between(name, want[v], as_real(new, got[new]))
            noise[v] = float(10 ** (-error.sqnr / 10)) if np.isfinite(error.sqnr) else 0.0
            operands = v.producer.inputs if v.producer is not None else []
            heard = max((noise.get(x, 0.0) for x in operands if x is not None), default=0.0)
            kind = v.producer.kind if v.producer is not None else ""
            yield LayerError(**vars(error), op=kind, added=max(0.0, noise[v] - heard))


def _parts(
    results: list[tuple[str, Value, Value]],
) -> Iterator[list[tuple[str, Value, Value]]]:
    part: list[tuple[str, Value, Value]] = []
    size = 0
    for entry in results:
        sizes = [s if isinstance(s, int) else 1 for s in entry[1].shape]
        nbytes = 8 * int(np.prod(sizes, dtype=np.int64))
        if part and size + nbytes > _AT_ONCE:
            yield part
            part, size = [], 0
        part.append(entry)
        size += nbytes
    if part:
        yield part


def as_real(v: Value, data: Array) -> Array:
    """The numbers that an activation's integers stand for; of a float one, itself."""
    q = v.quantization
    if q is None or data.dtype.kind == "f":
        return data
    numbers: Array = (data.astype(np.float32) - q.zero_points.item()) * q.scales.item()
    return numbers
