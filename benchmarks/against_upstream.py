"""Compares this package with upstream's litert-torch: cost of conversion and the files they make.

    python benchmarks/against_upstream.py --upstream-python UPSTREAM_VENV/bin/python [--all]

Upstream lives in a virtual environment of its own (`pip install litert-torch==0.10.0 torchvision
timm transformers`), named by --upstream-python or LITERT_TORCH_UPSTREAM_PYTHON. Without one,
only our numbers are taken. Writes docs/performance.md.
"""

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tflite_file

from litert_torch.verification import compare_arrays

VARIABLE = "LITERT_TORCH_UPSTREAM_PYTHON"
REPORT = Path(__file__).parent.parent / "docs" / "performance.md"
MODELS = (
    "resnet18",
    "resnet50",
    "efficientnet_b0",
    "densenet121",
    "vit_b_16",
    "shufflenet_v2_x1_0",
    "lstm_2x_bidirectional",
)
PACKAGES = ("ours", "upstream")
METRICS = {  # name: (heading, format)
    "cpu_s": ("convert() CPU s", "{:.2f}"),
    "peak_mb": ("peak memory MB", "{:.0f}"),
    "bytes": ("file bytes", "{:d}"),
    "ops": ("ops", "{:d}"),
    "transposes": ("TRANSPOSE ops", "{:d}"),
    "latency_ms": ("latency ms", "{:.3f}"),
    "relative_error": ("rel. error", "{:.1e}"),
}
Measured = dict[str, Any]


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream-python", default=os.environ.get(VARIABLE))
    parser.add_argument("--only", nargs="+", metavar="NAME", default=MODELS)
    parser.add_argument("--all", action="store_true", help="every model of models.py")
    parser.add_argument("--repeats", type=int, default=1, help="conversions a model; medians")
    parser.add_argument("--seconds", type=float, default=3.0, help="of timed runs, a file")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds a conversion may take")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--keep", type=Path, help="folder of upstream's files, made if absent")
    options = parser.parse_args()
    pythons = {"ours": sys.executable, "upstream": options.upstream_python}
    if not options.upstream_python or not Path(options.upstream_python).exists():
        print(f"no upstream: set {VARIABLE} or --upstream-python; measuring ours alone")
        del pythons["upstream"]
    names = _every_name() if options.all else options.only
    results = {}
    for name in names:
        results[name] = _compare(name, pythons, options)
        print(_text_row(name, results[name]), flush=True)
        options.report.write_text(_markdown(results, pythons, options))  # a long run may be stopped
    return 0


def _every_name() -> list[str]:
    from models import MODELS as EVERY

    return list(EVERY)


def _compare(
    name: str, pythons: dict[str, str], options: argparse.Namespace
) -> dict[str, Measured]:
    with tempfile.TemporaryDirectory() as folder:
        paths = {package: Path(folder) / f"{package}.tflite" for package in pythons}
        found = {}
        for package, python in pythons.items():
            if package == "upstream" and options.keep:
                paths[package] = options.keep.resolve() / f"{name}.tflite"
                found[package] = _kept_conversion(name, python, paths[package], options)
            else:
                found[package] = _convert(name, python, paths[package], options)
        made = {p: path for p, path in paths.items() if path.exists()}
        for package, path in made.items():
            contents = tflite_file.read_contents(path)
            transposes = contents.edge_transposes + contents.inner_transposes
            found[package] |= {
                "bytes": contents.size,
                "ops": contents.ops.total(),
                "transposes": transposes,
            }
        _run(name, made, found, options.seconds)
    return found


def _kept_conversion(name: str, python: str, path: Path, options: argparse.Namespace) -> Measured:
    """As `_convert`, but what an earlier run measured is read instead of measured again."""
    record = path.with_suffix(".json")
    if not record.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(_convert(name, python, path, options)))
    kept: Measured = json.loads(record.read_text())
    return kept


def _convert(name: str, python: str, path: Path, options: argparse.Namespace) -> Measured:
    script = Path(__file__).with_name("measure_conversion.py")
    command = [python, str(script), name, str(path)]
    runs = []
    for _ in range(options.repeats):
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=options.timeout,
                cwd=path.parent,  # so that neither package is found through the current folder
            )
        except subprocess.TimeoutExpired:
            return {"failure": f"not done after {options.timeout:.0f} s"}
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            return {"failure": f"exit code {done.returncode}: {lines[-1][:200]}"}
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    medians = {k: statistics.median(r[k] for r in runs) for k in ("cpu_s", "wall_s", "peak_mb")}
    return medians | {"torch": runs[0]["torch"]}


def _run(name: str, paths: dict[str, Path], found: dict[str, Measured], seconds: float) -> None:
    """Errors against eager PyTorch, and latencies: CPU time of one thread, runs interleaved.

    The model loaded first is up to 5 % slower (its memory lies elsewhere), so each is once first.
    """
    inputs, want = _reference(name)
    medians: dict[str, list[float]] = {package: [] for package in paths}
    for order in (list(paths), list(reversed(paths))):
        interpreters = {}
        for package in order:
            try:
                interpreters[package] = _opened(paths[package], inputs)
                outputs = tflite_file.get_outputs(interpreters[package])
                errors = [compare_arrays("", g, w) for g, w in zip(outputs, want, strict=True)]
                found[package]["relative_error"] = max(e.relative_error for e in errors)
            except Exception as error:
                found[package]["failure"] = f"{type(error).__name__}: {str(error)[:200]}"
                interpreters.pop(package, None)
        for package, taken in _interleaved(interpreters, seconds / 2).items():
            medians[package].append(1000 * statistics.median(taken))
    for package, taken in medians.items():
        if taken:
            found[package]["latency_ms"] = statistics.mean(taken)


def _opened(path: Path, inputs: list[Any]) -> Any:
    interpreter = tflite_file.open_interpreter(path)
    tflite_file.set_inputs(interpreter, inputs)
    interpreter.invoke()
    return interpreter


def _interleaved(interpreters: dict[str, Any], seconds: float) -> dict[str, list[float]]:
    """Seconds of each run, the packages in turn."""
    times: dict[str, list[float]] = {package: [] for package in interpreters}
    end = time.monotonic() + seconds * len(interpreters)
    while interpreters and (time.monotonic() < end or len(min(times.values(), key=len)) < 5):
        for package, interpreter in interpreters.items():
            start = time.thread_time()
            interpreter.invoke()
            times[package].append(time.thread_time() - start)
    return times


def _reference(name: str) -> tuple[list[Any], list[Any]]:
    import models
    import torch

    module, args = models.build(name)
    with torch.no_grad():
        outputs = module(*args)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [a.numpy() for a in args], [o.numpy() for o in outputs]


def _text_row(name: str, found: dict[str, Measured]) -> str:
    cells = [f"{name:24s}"]
    for metric, (heading, _) in METRICS.items():
        shown = " / ".join(_cell(found.get(p, {}), metric) for p in PACKAGES if p in found)
        cells.append(f"{heading} {shown}{_ratio_text(found, metric)}")
    failures = [f"{p}: {m['failure']}" for p, m in found.items() if "failure" in m]
    return " | ".join(cells + failures)


def _cell(measured: Measured, metric: str) -> str:
    return METRICS[metric][1].format(measured[metric]) if metric in measured else "-"


def _ratio(found: dict[str, Measured], metric: str) -> float | None:
    """Ours over upstream's: below 1 is better."""
    if metric == "relative_error":
        return None
    ours, theirs = (found.get(p, {}).get(metric) for p in PACKAGES)
    return ours / theirs if ours and theirs else None


def _ratio_text(found: dict[str, Measured], metric: str) -> str:
    ratio = _ratio(found, metric)
    return "" if ratio is None else f" ({ratio:.2f}x)"


_HEAD = """# Performance against upstream's litert-torch

Made by `{command}`
on {machine}, Python {python}, torch {torch}, ai-edge-litert {runtime};
upstream is {upstream}. Medians of {repeats} conversion(s).
With --keep, upstream's conversions are those that the folder keeps of an earlier run here.

Each cell is ours / upstream's (ratio); below 1 is better for us.

* **convert() CPU s**: process CPU seconds of the first `convert()` of a fresh process.
* **peak memory MB**: highest resident size during `convert()` above the size before it.
* **latency ms**: median CPU time of one inference: LiteRT interpreter with XNNPACK, one thread,
  runs of the two files interleaved,
  each loaded first once.
* **rel. error**: largest difference from eager PyTorch over the largest reference value.
"""


def _markdown(
    results: dict[str, dict[str, Measured]], pythons: dict[str, str], options: argparse.Namespace
) -> str:
    head = _HEAD.format(
        command=_command(options),
        machine=f"{os.cpu_count()} cores of {_processor()}",
        python=platform.python_version(),
        torch=version("torch"),
        runtime=version("ai-edge-litert"),
        upstream=_upstream_version(pythons),
        repeats=options.repeats,
    )
    lines = [head, f"| model | {' | '.join(heading for heading, _ in METRICS.values())} |"]
    lines.append(f"|---|{'--:|' * len(METRICS)}")
    for name, found in results.items():
        cells = [
            " / ".join(_cell(found[p], m) for p in PACKAGES if p in found) + _ratio_text(found, m)
            for m in METRICS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines.append(f"| **geometric mean of ratios** | {' | '.join(_mean_cells(results))} |")
    failures = [
        f"* **{name}**, {package}: {measured['failure']}"
        for name, found in results.items()
        for package, measured in found.items()
        if "failure" in measured
    ]
    return "\n".join(lines + (["", "## Failures", "", *failures] if failures else [])) + "\n"


def _command(options: argparse.Namespace) -> str:
    words = ["python benchmarks/against_upstream.py --upstream-python UPSTREAM_VENV/bin/python"]
    if options.all:
        words.append("--all")
    elif options.only is not MODELS:
        words += ["--only", *options.only]
    if options.keep:
        words.append("--keep FOLDER")
    if options.repeats > 1:
        words.append(f"--repeats {options.repeats}")
    return " ".join(words)


def _mean_cells(results: dict[str, dict[str, Measured]]) -> list[str]:
    cells = []
    for metric in METRICS:
        ratios = [r for found in results.values() if (r := _ratio(found, metric)) is not None]
        mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
        cells.append("" if mean is None else f"**{mean:.3f}x** over {len(ratios)}")
    return cells


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1] for line in text.splitlines() if line.startswith("model name")]
    return names[0].strip() if names else platform.machine()


def _upstream_version(pythons: dict[str, str]) -> str:
    if "upstream" not in pythons:
        return "absent"
    code = "import importlib.metadata as m; print(m.version('litert-torch'), m.version('torch'))"
    done = subprocess.run(
        [pythons["upstream"], "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    package, torch = done.stdout.split()
    return f"litert-torch {package} with torch {torch}"


if __name__ == "__main__":
    sys.exit(main())
