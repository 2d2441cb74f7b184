"""Checks in forked processes: a crash or a hang is one call's verdict, not the run's end."""

import os
import signal
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import wait

from tests.conformance import checking, samples
from tests.conformance.checking import CRASH, INTERNAL, TIMEOUT, Verdict

SECONDS = 120  # that one call may take
CRASHES = 3  # after which an entry's other calls of the dtype are not tried


@dataclass(frozen=True)
class Task:
    """An entry with inputs of one dtype."""

    name: str
    kind: str


@dataclass(frozen=True)
class Result:
    """The verdict on one call of a task."""

    task: Task
    number: int
    call: str
    verdict: Verdict
    seconds: float


@dataclass
class _Worker:
    pid: int
    connection: object
    task: Task | None = None
    number: int = -1
    call: str = ""
    since: float = field(default_factory=time.monotonic)
    crashes: int = 0


def run(tasks, *, jobs, limit=None, backend="litert", export=False):
    """Results of all tasks as they come, on `jobs` processes."""
    how = {"backend": backend, "export": export}
    samples.entries()  # before the processes fork
    left = list(reversed(tasks))
    workers = [_start(limit, how) for _ in range(jobs)]
    for worker in workers:
        _next(worker, left)
    while workers:
        ready = wait([w.connection for w in workers], timeout=5)
        for worker in list(workers):
            if worker.connection in ready:
                yield from _received(worker, left, workers, limit, how)
            elif worker.task and time.monotonic() - worker.since > SECONDS:
                os.kill(worker.pid, signal.SIGKILL)
                yield from _lost(worker, left, workers, limit, how, TIMEOUT)


def _received(worker, left, workers, limit, how):
    try:
        message = worker.connection.recv()
    except (EOFError, ConnectionResetError):
        yield from _lost(worker, left, workers, limit, how, CRASH)
        return
    worker.since = time.monotonic()
    if message is None:
        if not _next(worker, left):
            _end(worker)
            workers.remove(worker)
    elif isinstance(message, Result):
        yield message
    else:
        worker.number, worker.call = message


def _lost(worker, left, workers, limit, how, status):
    """The verdict on the call that ended the process; another process goes on after it."""
    _, code = os.waitpid(worker.pid, 0)
    worker.connection.close()
    workers.remove(worker)
    detail = f"signal {code & 127}" if status == CRASH else f"more than {SECONDS} s"
    seconds = time.monotonic() - worker.since
    yield Result(worker.task, worker.number, worker.call, Verdict(status, detail), seconds)
    new = _start(limit, how)
    workers.append(new)
    if worker.crashes + 1 < CRASHES:
        new.task, new.crashes = worker.task, worker.crashes + 1
        new.connection.send((worker.task, worker.number + 1))
    elif not _next(new, left):
        _end(new)
        workers.remove(new)


def _next(worker, left):
    if not left:
        return False
    worker.task, worker.crashes, worker.number, worker.call = left.pop(), 0, -1, ""
    worker.since = time.monotonic()
    worker.connection.send((worker.task, 0))
    return True


def _end(worker):
    worker.connection.send(None)
    worker.connection.close()
    os.waitpid(worker.pid, 0)


def _start(limit, how):
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        try:
            _work(theirs, limit, how)
        finally:
            os._exit(0)
    theirs.close()
    return _Worker(pid, ours)


def _work(connection, limit, how):
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    checking.quiet()
    while True:
        message = connection.recv()
        if message is None:
            return
        _check_task(connection, *message, limit, how)
        connection.send(None)


def _check_task(connection, task, first, limit, how):
    made = {}
    for number, call in samples.calls(task.name, task.kind, limit):
        if number < first:
            continue
        text = samples.shown(call)
        connection.send((number, text))
        start = time.monotonic()
        try:
            verdict = checking.check(task.name, call, made=made, **how)
        except Exception:
            verdict = Verdict(INTERNAL, "harness: " + traceback.format_exc()[-500:])
        seconds = time.monotonic() - start
        connection.send(Result(task, number, text, verdict, seconds))
