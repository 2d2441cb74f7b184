"""How fast a model runs on this machine, and how much memory it takes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.runtime_bindings import child, schema_layout
from litert_torch.runtime_bindings.inputs import Shapes, input_shapes, made_up_inputs
from litert_torch.runtime_bindings.litert import LiteRTModel


@dataclass(frozen=True)
class Benchmark:
    """Measurements of one signature.

    Attributes:
        signature: Its name.
        shapes: The sizes of its inputs.
        threads: How many threads the runtime used.
        runs: How many calls were timed, after the warm-up.
        load_ms: Loading the file and allocating its tensors.
        first_ms: The first call.
        min_ms: The fastest timed call: the one least disturbed by the rest of the machine.
        median_ms: The middle one.
        p90_ms: Nine of ten calls were as fast or faster.
        peak_bytes: Most memory that the process held at a time.
        model_bytes: That, less what it held before it loaded the file.
    """

    signature: str
    shapes: dict[str, tuple[int, ...]]
    threads: int
    runs: int
    load_ms: float
    first_ms: float
    min_ms: float
    median_ms: float
    p90_ms: float
    peak_bytes: int
    model_bytes: int


def benchmark(
    path: str | os.PathLike[str],
    *,
    threads: int = 1,
    runs: int = 50,
    warmup: int = 5,
    signature_name: str | None = None,
    shapes: Shapes | None = None,
) -> Benchmark:
    """Run a signature of the file in a child process, on inputs made up.

    A call's time is the runtime's alone for the file's first subgraph; for other signatures it
    includes copying the inputs in and the outputs out.

    Args:
        path: The .tflite file.
        threads: Threads to compute with.
        runs: Calls to time.
        warmup: Calls before them.
        signature_name: Which entry point; the first by default.
        shapes: Sizes of inputs whose sizes may vary, by name; 1 by default.

    Raises:
        InvalidInputError: a count is not positive, or a name or shape is unknown.
        InvalidModelFileError: the file is not whole, or LiteRT does not run it.
    """
    if threads < 1 or runs < 1 or warmup < 0:
        raise InvalidInputError("threads and runs must be 1 or more, warmup 0 or more")
    signatures = LiteRTModel.load(path).signatures
    name = next(iter(signatures)) if signature_name is None else signature_name
    if name not in signatures:
        raise InvalidInputError(f"no signature {name!r}; the model has: {', '.join(signatures)}")
    input_shapes(signatures[name], shapes or {})
    arguments: dict[str, Any] = {
        "path": str(path),
        "threads": threads,
        "runs": runs,
        "warmup": warmup,
    }
    try:
        return child.call(_measure, **arguments, name=name, shapes=dict(shapes or {}))
    except child.ChildError as error:
        raise InvalidModelFileError(f"the LiteRT runtime, running {path}, {error}") from error


def _measure(
    path: str, threads: int, runs: int, warmup: int, name: str, shapes: Shapes
) -> Benchmark:
    import ai_edge_litert.interpreter  # noqa: F401 - not part of what the model takes

    schema_layout.tables()
    before = _memory("VmRSS")
    start = time.perf_counter()
    model = LiteRTModel.load(path, num_threads=threads)
    model._get_interpreter()
    load = time.perf_counter() - start
    spec = model.signatures[name]
    feed = made_up_inputs(spec, shapes)

    def call() -> object:
        return model(signature_name=name, **feed)

    first = _seconds(call)
    call = model._get_interpreter().invoke if spec.subgraph == 0 else call
    for _ in range(warmup):
        call()
    times = 1e3 * np.sort([_seconds(call) for _ in range(runs)])
    peak = _memory("VmHWM")
    return Benchmark(
        signature=name,
        shapes={n: x.shape for n, x in feed.items()},
        threads=threads,
        runs=runs,
        load_ms=1e3 * load,
        first_ms=1e3 * first,
        min_ms=float(times[0]),
        median_ms=float(np.median(times)),
        p90_ms=float(times[-(-len(times) * 9 // 10) - 1]),
        peak_bytes=peak,
        model_bytes=max(0, peak - before),
    )


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _memory(field: str) -> int:
    """Resident bytes of this process, now (VmRSS) or at most (VmHWM)."""
    status = Path("/proc/self/status")
    if status.exists():
        rows = dict(row.split(":", 1) for row in status.read_text().splitlines())
        return int(rows[field].split()[0]) << 10
    import resource  # not on Windows

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the best there is elsewhere
    return most if sys.platform == "darwin" else most << 10
