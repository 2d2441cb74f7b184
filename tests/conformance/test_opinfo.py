"""PyTorch's operator database: a fixed tenth of it and all that ever failed, or all (`sweep`)."""

import hashlib
import os
import signal
from pathlib import Path

import pytest

from tests.conformance import checking, report, samples, workers
from tests.conformance.known_gaps import GAPS, WRONG
from tests.conformance.workers import Task

EVER_FAILED = (Path(__file__).parent / "ever_failed.txt").read_text().split()


def in_fixed_tenth(name):
    return hashlib.sha256(name.encode()).digest()[0] % 10 == 0


def results_of(names, *, limit, jobs=1):
    tasks = [Task(n, kind) for n in names for kind in samples.dtypes_of(n)]
    return report.entries(list(workers.run(tasks, jobs=jobs, limit=limit)), names)


def faults(table):
    """What no known gap explains: any failure, and of known gaps all that is no clear error."""
    for name, entry in table.items():
        for kind, text in entry["first"].items():
            clear = kind in (checking.REFUSED, checking.UNTRACED)
            if name not in WRONG and not (clear and name in GAPS):
                yield f"{name} {kind}: {text}"


def test_fixed_tenth_of_the_entries():
    names = [n for n in samples.entries() if in_fixed_tenth(n)]
    assert len(names) > 50
    assert list(faults(results_of(names, limit=2))) == []


def test_entries_that_ever_failed():
    names = [n for n in EVER_FAILED if not in_fixed_tenth(n)]
    assert list(faults(results_of(names, limit=1))) == []


@pytest.mark.sweep
def test_every_entry():
    names = list(samples.entries())
    table = results_of(names, limit=None, jobs=2)
    assert list(faults(table)) == []
    passing = {n for n, e in table.items() if e["status"] != report.FAILED}
    assert passing.isdisjoint(GAPS | WRONG), "remove these from known_gaps.py"


def test_a_crash_is_one_verdict_and_the_rest_goes_on(monkeypatch):
    def check(name, call, **how):
        if name == "cos":
            os.kill(os.getpid(), signal.SIGKILL)
        return checking.Verdict(checking.WRONG if name == "sin" else checking.PASSED)

    monkeypatch.setattr(checking, "check", check)
    tasks = [Task(n, "float32") for n in ("sin", "cos", "tanh")]
    found = [(r.task.name, r.verdict.status) for r in workers.run(tasks, jobs=1, limit=1)]
    assert found == [("sin", "wrong"), ("cos", "crash"), ("tanh", "passed")]
