"""Run a function in a process of its own, so that a crash of the runtime is an error, not an end.

The runtime checks little of what a file says: a wrong stride divides by zero, a wrong size reads
beyond an array. It also keeps what it allocated, so that memory is only measured well in a child.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litert_torch.errors import LiteRTTorchError

_LINES_SHOWN = 5


class ChildError(LiteRTTorchError):
    """The process ended without a result; says how, and what it printed last."""


def call(function: Callable[..., Any], *, timeout: float | None = None, **kwargs: Any) -> Any:
    """`function(**kwargs)` in a fresh Python process that has not imported torch.

    Args:
        function: Of a module that can be imported; arguments and result are pickled.
        timeout: Seconds after which the process is ended.
        **kwargs: Its arguments.

    Raises:
        ChildError: the process crashed, or took longer than `timeout`.
        Exception: whatever the function raised.
    """
    with tempfile.TemporaryDirectory(prefix="litert_torch_") as folder:
        request, reply = Path(folder, "request"), Path(folder, "reply")
        request.write_bytes(pickle.dumps((function.__module__, function.__qualname__, kwargs)))
        command = [sys.executable, "-m", __name__, str(request), str(reply)]
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=timeout, env=_environment(), check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ChildError(f"took longer than {timeout:g} seconds") from error
        if not reply.exists():
            raise ChildError(_ending(done))
        succeeded, value = pickle.loads(reply.read_bytes())
    if not succeeded:
        raise value
    return value


def _environment() -> dict[str, str]:
    """This process's environment, with this package importable."""
    home = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [home, inherited]))}


def _ending(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()[-_LINES_SHOWN:]
    if done.returncode < 0:
        try:
            how = f"crashed ({signal.Signals(-done.returncode).name})"
        except ValueError:
            how = f"was ended by signal {-done.returncode}"
    else:
        how = f"ended with exit code {done.returncode}"
    return "\n".join([how, *lines])


def _main(request: str, reply: str) -> None:
    module, name, kwargs = pickle.loads(Path(request).read_bytes())
    try:
        function = getattr(importlib.import_module(module), name)
        result = (True, function(**kwargs))
    except Exception as error:
        result = (False, error)
    try:
        data = pickle.dumps(result)
    except Exception as error:  # an exception or result that does not pickle
        data = pickle.dumps((False, RuntimeError(f"{result[1]!r} ({error})")))
    unfinished = Path(f"{reply}.part")
    unfinished.write_bytes(data)
    unfinished.replace(reply)


if __name__ == "__main__":
    _main(*sys.argv[1:])
