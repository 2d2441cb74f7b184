"""Runs the OpInfo database: `python -m tests.conformance --help`."""

import argparse
import os
import re
import sys
import time
from pathlib import Path

from tests.conformance import checking, report, samples, workers
from tests.conformance.workers import Task

ROOT = Path(__file__).parents[2]


def main():
    arguments = _parser().parse_args()
    checking.quiet()
    names = [n for n in samples.entries() if re.search(arguments.only, n)]
    kinds = arguments.dtypes.split(",")
    tasks = [Task(n, k) for n in names for k in samples.dtypes_of(n) if k in kinds]
    start = time.monotonic()
    results, shown = [], set()
    for result in workers.run(
        tasks,
        jobs=arguments.jobs,
        limit=arguments.limit,
        backend=arguments.backend,
        export=arguments.export,
    ):
        results.append(result)
        status, detail = result.verdict.status, " ".join(result.verdict.detail.split())
        kind = (result.task.name, status)
        if arguments.verbose and status not in checking.GOOD and kind not in shown:
            shown.add(kind)
            print(f"{result.task.name} {result.task.kind} #{result.number} {status}: "
                  f"{detail[:arguments.width]} <- {result.call[:160]}", flush=True)  # fmt: skip
    table = report.entries(results, names)
    minutes = (time.monotonic() - start) / 60
    pages = {"litert": "conformance.md", "tpu": "tpu_conformance.md"}
    page = arguments.output or ROOT / "docs" / pages[arguments.backend]
    table = report.write(
        table,
        page,
        minutes,
        len(results),
        arguments.limit,
        arguments.backend,
        merge=arguments.merge,
    )
    print(report.summary(table, minutes, len(results)))
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--only", default="", help="entries whose name this pattern matches")
    parser.add_argument("--dtypes", default=",".join(samples.DTYPES))
    parser.add_argument("--limit", type=int, help="calls of an entry and dtype, spread evenly")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--export", action="store_true", help="trace every call by torch.export")
    parser.add_argument(
        "--verbose", action="store_true", help="print the first of each entry's failures"
    )
    parser.add_argument("--width", type=int, default=300)
    parser.add_argument("--backend", choices=checking.BACKENDS, default="litert")
    parser.add_argument(
        "--merge", action="store_true", help="keep what the page says of entries not run now"
    )
    parser.add_argument("--output", type=Path, help="the page; by default the one in docs/")
    return parser


if __name__ == "__main__":
    sys.exit(main())
