"""Running a graph on batches to see the tensors inside it.

The graph is written to a temporary file whose outputs are the tensors asked for, and run in
LiteRT. Where they are too large together, it is run again for each part of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from litert_torch.converter import flatbuffer
from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.algorithms.equalization import ChannelRanges
from litert_torch.quantize.algorithms.gptq import SecondMoment
from litert_torch.quantize.calibration_data import Calibration, Feed, feeds, is_repeatable
from litert_torch.quantize.ranges import OBSERVERS, Observer
from litert_torch.quantize.resuming import Pass, State
from litert_torch.quantize.windows import Window
from litert_torch.runtime_bindings import LiteRTModel

_AT_ONCE = 1 << 29  # bytes of tensors that one run gives

Seen = Callable[[Value, Array], None]


class Tapped:
    """A graph that gives tensors inside it; running it takes one batch.

    Args:
        graph: A main graph; it is left as it is.
        values: Inputs of the graph and results of its ops.
        path: Where its file is written.
    """

    def __init__(self, graph: Graph, values: Sequence[Value], path: Path) -> None:
        self._names = {v: f"tap_{i}" for i, v in enumerate(values) if v.producer is not None}
        self._fed = {
            v: name
            for v, name in zip(graph.inputs, graph.input_names, strict=True)
            if v in set(values)
        }
        tapped = Graph(
            inputs=graph.inputs,
            outputs=list(self._names),
            ops=graph.ops,
            name=graph.name,
            input_names=graph.input_names,
            output_names=list(self._names.values()),
            least_sizes=graph.least_sizes,
        )
        self._model: LiteRTModel | None = None
        if self._names:
            flatbuffer.to_file([tapped], path)
            self._model = LiteRTModel(path)
        self._signature = graph.name

    def places(self, values: Sequence[Value]) -> list[int]:
        """Which of `values` it gives."""
        return [i for i, v in enumerate(values) if v in self._names or v in self._fed]

    def run(self, feed: Feed) -> dict[Value, Array]:
        """The values for one batch."""
        given = {v: feed[name] for v, name in self._fed.items()}
        if self._model is None:
            return given
        outputs = self._model(signature_name=self._signature, **feed)
        assert isinstance(outputs, dict)
        return given | {v: outputs[name] for v, name in self._names.items()}


def look(
    graph: Graph,
    values: Sequence[Value],
    calibration: Calibration,
    see: Seen,
    *,
    gathers: str = "",
    state: Sequence[State] = (),
) -> None:
    """Call `see` with each of `values`, batch by batch.

    Args:
        graph: A main graph.
        values: Inputs of the graph and results of its ops.
        calibration: The batches.
        see: Called with a value and what it is.
        gathers: What `see` gathers, and how: of a `Resumable`, equal texts go on with each other.
        state: Where it gathers that.

    Raises:
        InvalidInputError: there is no batch, one does not fit, or the model computes NaN from it.
    """
    parts = list(_parts(values, _AT_ONCE))
    batches: Calibration = calibration
    if len(parts) > 1 and not is_repeatable(calibration):
        batches = list(calibration() if callable(calibration) else calibration)
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="litert_torch_") as folder:
            file = Path(folder, "float.tflite")
            tapped = Tapped(graph, part, file)
            about = (gathers, graph.name, len(values), tapped.places(values))
            run = Pass(calibration, about, file, values, state)
            if run.is_finished:
                continue
            for number, feed in enumerate(feeds(batches, graph)):
                if number < run.done:
                    continue
                for v, x in tapped.run(feed).items():
                    _check_numbers(v, x, number)
                    see(v, x)
                run.saw(number + 1)
            run.saw(number + 1, is_finished=True)


def _check_numbers(v: Value, x: Array, number: int) -> None:
    if x.dtype.kind == "f" and np.isnan(x).any():
        where = v.producer.source if v.producer is not None else "an input"
        raise InvalidInputError(
            f"the float model computes NaN from calibration batch {number} at {where}"
        )


class Statistics:
    """What static quantization needs to know of a graph's activations.

    Attributes:
        ranges: The range of each value, as the observer takes it.
        means: The mean over all positions, for each channel, of the values asked for.
        typical: The mean square of the median channel of each value: without the channels that
            stand out, whose range all others have to share.
    """

    def __init__(
        self,
        graph: Graph,
        values: Iterable[Value],
        averaged: Iterable[Value],
        calibration: Calibration,
        observer: str,
        dtype: DType,
    ) -> None:
        observers: dict[Value, Observer] = {v: OBSERVERS[observer]() for v in values}
        sums: dict[Value, Array] = {v: np.zeros(int(v.shape[-1])) for v in averaged}
        squares: dict[Value, Array] = {v: np.zeros(_channels(v)) for v in observers}
        counts = dict.fromkeys(squares, 0)

        def see(v: Value, x: Array) -> None:
            observers[v].see(x)
            rows = x.reshape(-1, len(squares[v]))
            counts[v] += len(rows)
            squares[v] += np.einsum("ij,ij->j", rows, rows)
            if v in sums:
                sums[v] += rows.sum(axis=0, dtype=np.float64)

        look(
            graph,
            list(observers),
            calibration,
            see,
            gathers=f"ranges by {observer}",
            state=(observers, sums, squares, counts),
        )
        self.ranges = {v: o.range(dtype) for v, o in observers.items()}
        self.means = {v: (s / max(counts[v], 1)).astype(np.float32) for v, s in sums.items()}
        self.typical = {v: float(np.median(s)) / max(counts[v], 1) for v, s in squares.items()}


def largest_magnitudes(
    graph: Graph, values: Iterable[Value], calibration: Calibration
) -> dict[Value, Array]:
    """The largest magnitude of each channel of each value, float32 [channels]."""
    found = {v: np.zeros(int(v.shape[-1]), np.float32) for v in values}

    def see(v: Value, x: Array) -> None:
        rows = np.abs(x.reshape(-1, x.shape[-1]))
        found[v] = np.maximum(found[v], rows.max(axis=0))

    look(graph, list(found), calibration, see, gathers="magnitudes", state=(found,))
    return found


def channel_ranges(
    graph: Graph, values: Iterable[Value], calibration: Calibration
) -> dict[Value, ChannelRanges]:
    """The range and the mean square of each channel of each value."""
    found: dict[Value, ChannelRanges] = {}
    counts: dict[Value, int] = {}

    def see(v: Value, x: Array) -> None:
        rows = x.reshape(-1, x.shape[-1])
        low, high = rows.min(axis=0), rows.max(axis=0)
        square = np.einsum("ij,ij->j", rows, rows) / len(rows)
        if v not in found:
            found[v], counts[v] = ChannelRanges(low, high, square), 1
            return
        old, counts[v] = found[v], counts[v] + 1
        found[v] = ChannelRanges(
            np.minimum(low, old.low),
            np.maximum(high, old.high),
            old.square + (square - old.square) / counts[v],
        )

    listed = list(dict.fromkeys(values))
    look(graph, listed, calibration, see, gathers="channel ranges", state=(found, counts))
    return found


def _channels(v: Value) -> int:
    last = v.shape[-1] if v.rank > 0 else 1
    return last if isinstance(last, int) else 1


def second_moments(
    graph: Graph, wanted: Iterable[tuple[Value, Window]], calibration: Calibration
) -> dict[tuple[Value, Window], SecondMoment]:
    """The second moment of what each window sees of each value."""
    moments = {(v, w): SecondMoment.of(w, int(v.shape[-1])) for v, w in wanted}
    windows: dict[Value, list[Window]] = {}
    for v, w in moments:
        windows.setdefault(v, []).append(w)

    def see(v: Value, x: Array) -> None:
        for window in windows[v]:
            moments[v, window].see(window.rows(x))

    look(graph, list(windows), calibration, see, gathers="second moments", state=(moments,))
    return moments


def _parts(values: Sequence[Value], limit: int) -> Iterator[list[Value]]:
    part: list[Value] = []
    size = 0
    for v in values:
        nbytes = int(np.prod([s if isinstance(s, int) else 1 for s in v.shape], dtype=np.int64)) * 4
        if part and size + nbytes > limit:
            yield part
            part, size = [], 0
        part.append(v)
        size += nbytes
    yield part
