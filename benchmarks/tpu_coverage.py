"""Exports every model of models.py for TPU, runs it on XLA's CPU and compares with eager PyTorch.

    python benchmarks/tpu_coverage.py [--only NAME ...]

Each model has a process of its own. Writes docs/tpu_coverage.md and .json beside it; with --only,
the rows of the other models stay as they were.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

BOUND = 1e-3  # largest difference / largest reference value
REPORT = Path(__file__).parent.parent / "docs" / "tpu_coverage"
Row = dict[str, Any]


def main() -> int:
    """Run what the command line asks for; 1 if a model fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="export these models only")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds a model may take")
    parser.add_argument("--report", type=Path, default=REPORT, help="path without the suffix")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child)))
        return 0
    from models import MODELS

    names = options.only or list(MODELS)
    path = options.report.with_suffix(".json")
    rows = {r["name"]: r for r in json.loads(path.read_text())} if path.exists() else {}
    for name in names:
        rows[name] = _in_child(name, options.timeout)
        print(json.dumps(rows[name]), flush=True)
        kept = [rows[n] for n in MODELS if n in rows]
        path.write_text(json.dumps(kept, indent=1) + "\n")
        options.report.with_suffix(".md").write_text(_markdown(kept, len(MODELS)))
    return int(any(rows[n]["status"] != "ok" for n in names))


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
    """Export, run and compare one model, in this process."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import models
    import torch

    from litert_torch import tpu, verification

    torch.set_num_threads(1)
    module, args = models.build(name)
    row: Row = {"name": name, "parameters": sum(p.numel() for p in module.parameters())}
    start = time.process_time()
    try:
        program = tpu.export(module, args)
    except Exception as error:
        return {**row, "status": "export", "detail": f"{type(error).__name__}: {error}"[:1500]}
    row["export_cpu_s"] = round(time.process_time() - start, 2)
    row["module_bytes"] = len(program.source.module("serving_default"))
    import jax

    jax.config.update("jax_optimization_level", "O0")  # compiling would take most of the time
    try:
        found = verification.compare(program, module, args)
    except Exception as error:
        return {**row, "status": "run", "detail": f"{type(error).__name__}: {error}"[:1500]}
    row["relative"] = max(o.relative_error for o in found.outputs)
    row["snr_db"] = round(min(999.0, *(o.snr_db for o in found.outputs)), 1)
    row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    row["status"] = "ok" if row["relative"] <= BOUND else "wrong"
    return row


_HEAD = f"""# Model coverage of the TPU route

Made by `python benchmarks/tpu_coverage.py`. Random weights (see `benchmarks/random_weights.py`),
one process a model; the artifact's module runs on XLA's CPU client and is compared with eager
PyTorch.

* **rel. error**: largest difference over the largest reference value, worst output; the bound is
  {BOUND:g}. **SNR**: signal over difference, worst output.
* **module**: kB of the serialized StableHLO; weights are beside it.
* **export**: CPU seconds of `tpu.export()`, the first call of a fresh process.
"""


def _markdown(rows: list[Row], of: int) -> str:
    passed = sum(r["status"] == "ok" for r in rows)
    lines = [
        _HEAD,
        f"{passed} of the {len(rows)} models that were run pass; the list has {of}.",
        "",
    ]
    lines.append("| model | parameters | rel. error | SNR dB | module kB | export s |")
    lines.append("|---|--:|--:|--:|--:|--:|")
    for r in rows:
        if "relative" in r:
            mark = "" if r["status"] == "ok" else " **wrong**"
            lines.append(
                f"| {r['name']} | {r['parameters'] / 1e6:.1f} M | {r['relative']:.1e}{mark} "
                f"| {r['snr_db']:.0f} | {r['module_bytes'] / 1e3:.0f} | {r['export_cpu_s']:.1f} |"
            )
    failures = [r for r in rows if r["status"] != "ok"]
    if failures:
        lines += ["", "## Failing", ""]
        lines += [f"* **{r['name']}** ({r['status']}): {_reason(r)}" for r in failures]
    return "\n".join(lines) + "\n"


def _reason(row: Row) -> str:
    return row.get("detail", "differs from PyTorch").split("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
