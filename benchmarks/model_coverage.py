"""Converts every model of models.py, runs the files in LiteRT and compares with eager PyTorch.

    python benchmarks/model_coverage.py [--only NAME ...] [--jobs 1]

Each model has a process of its own. Writes docs/model_coverage.md and .json beside it; with
--only, the rows of the other models stay as they were.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BOUND = 1e-3  # largest difference / largest reference value
REPORT = Path(__file__).parent.parent / "docs" / "model_coverage"
Row = dict[str, Any]


def main() -> int:
    """Run what the command line asks for; 1 if a model fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="convert these models only")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a model may take")
    parser.add_argument("--report", type=Path, default=REPORT, help="path without the suffix")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child)))
        return 0
    names = _names(options.only)
    rows = _known_rows(options.report) if options.only else {}
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda name: _in_child(name, options.timeout), names):
            rows[row["name"]] = row
            print(_line(row), flush=True)
            _write([rows[n] for n in _names(None) if n in rows], options.report)
    return int(any(rows[n]["status"] != "ok" for n in names))


def _write(rows: list[Row], report: Path) -> None:
    report.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    report.with_suffix(".md").write_text(_markdown(rows))


def _names(only: list[str] | None) -> list[str]:
    from models import MODELS

    unknown = set(only or ()) - MODELS.keys()
    if unknown:
        raise SystemExit(f"no such model: {', '.join(sorted(unknown))}; one of {', '.join(MODELS)}")
    return [n for n in MODELS if not only or n in only]


def _known_rows(report: Path) -> dict[str, Row]:
    path = report.with_suffix(".json")
    return {r["name"]: r for r in json.loads(path.read_text())} if path.exists() else {}


def _in_child(name: str, timeout: float) -> Row:
    command = [sys.executable, __file__, "--child", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"name": name, "status": "timeout", "detail": f"not done after {timeout:.0f} s"}
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    detail = "\n".join(done.stderr.strip().splitlines()[-3:])
    return {"name": name, "status": "crash", "detail": f"exit code {done.returncode}: {detail}"}


def measure(name: str) -> Row:
    """Convert, run and compare one model, in this process."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import models
    import tflite_file
    import torch

    import litert_torch

    torch.set_num_threads(1)
    module, args = models.build(name)
    row: Row = {"name": name, "parameters": sum(p.numel() for p in module.parameters())}
    with torch.no_grad():
        reference = module(*args)
    want = [r.numpy() for r in (reference if isinstance(reference, tuple) else (reference,))]
    start = time.process_time()
    try:
        converted = litert_torch.convert(module, args)
    except Exception as error:
        return {**row, "status": "convert", **_explained(error)}
    row["convert_cpu_s"] = round(time.process_time() - start, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        converted.export(path)
        contents = tflite_file.read_contents(path)
        row |= {
            "bytes": contents.size,
            "ops": contents.ops.total(),
            "kinds": dict(contents.ops.most_common()),
            "edge_transposes": contents.edge_transposes,
            "inner_transposes": contents.inner_transposes,
        }
        try:
            row |= _run(path, [a.numpy() for a in args], want)
        except Exception as error:
            return {**row, "status": "run", **_explained(error)}
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    row["status"] = "ok" if row["relative"] <= BOUND else "wrong"
    return row


def _run(path: Path, inputs: list[Any], want: list[Any]) -> Row:
    import tflite_file

    from litert_torch.verification import compare_arrays

    interpreter = tflite_file.open_interpreter(path)
    delegation = tflite_file.read_delegation(interpreter)
    tflite_file.set_inputs(interpreter, inputs)
    interpreter.invoke()
    got = tflite_file.get_outputs(interpreter)
    pairs = enumerate(zip(got, want, strict=True))
    outputs = [compare_arrays(f"output_{i}", g, w) for i, (g, w) in pairs]
    return {
        "delegated": delegation.covered / max(delegation.total, 1),
        "partitions": delegation.partitions,
        "undelegated": dict(delegation.left.most_common()),
        "absolute": max(o.max_abs_error for o in outputs),
        "relative": max(o.relative_error for o in outputs),
        "snr_db": round(min(999.0, *(o.snr_db for o in outputs)), 1),
    }


def _explained(error: Exception) -> Row:
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    text = f"{type(error).__name__}: {str(error).strip()}"
    return {"detail": text[:1500], "raised_at": where}


def _line(row: Row) -> str:
    if "relative" not in row:
        return f"{row['name']:32s} {row['status']:8s} {row['detail'].splitlines()[0][:200]}"
    return (
        f"{row['name']:32s} {row['status']:8s} rel {row['relative']:.1e}  {row['snr_db']:5.1f} dB  "
        f"{row['ops']:4d} ops  transposes {row['edge_transposes']}+{row['inner_transposes']}  "
        f"xnnpack {row['delegated']:4.0%} in {row['partitions']}  {row['convert_cpu_s']:5.1f} s  "
        f"{row['bytes'] / 1e6:6.1f} MB  left {row['undelegated'] or ''}"
    )


_HEAD = f"""# Model coverage

Made by `python benchmarks/model_coverage.py`. Random weights (see `benchmarks/random_weights.py`),
one process a model; the file runs in LiteRT with XNNPACK and is compared with eager PyTorch.

* **rel. error**: largest difference over the largest reference value, worst output; the bound is
  {BOUND:g}. **SNR**: signal over difference, worst output.
* **transposes**: TRANSPOSE ops at the model's inputs and outputs + those inside. Attention needs
  some inside; a plain CNN needs none.
* **XNNPACK**: share of the ops that run in the delegate, and its partitions.
* **convert**: CPU seconds of `convert()`, the first call of a fresh process.
"""


def _markdown(rows: list[Row]) -> str:
    passed = sum(r["status"] == "ok" for r in rows)
    lines = [_HEAD, f"{passed} of {len(rows)} models pass.", ""]
    lines.append(
        "| model | parameters | rel. error | SNR dB | ops | transposes | XNNPACK | convert s | MB |"
    )
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for r in rows:
        if "relative" in r:
            mark = "" if r["status"] == "ok" else " **wrong**"
            lines.append(
                f"| {r['name']} | {r['parameters'] / 1e6:.1f} M | {r['relative']:.1e}{mark} "
                f"| {r['snr_db']:.0f} | {r['ops']} "
                f"| {r['edge_transposes']} + {r['inner_transposes']} "
                f"| {r['delegated']:.0%} in {r['partitions']} | {r['convert_cpu_s']:.1f} "
                f"| {r['bytes'] / 1e6:.1f} |"
            )
    failures = [r for r in rows if r["status"] != "ok"]
    if failures:
        lines += ["", "## Failing", ""]
        lines += [f"* **{r['name']}** ({r['status']}): {_reason(r)}" for r in failures]
    return "\n".join(lines) + "\n"


def _reason(row: Row) -> str:
    if "relative" in row:
        return f"relative error {row['relative']:.1e}"
    return " ".join(row["detail"].split())[:300]


if __name__ == "__main__":
    sys.exit(main())
