"""Shows the stages of a conversion on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str], None]
"""Called with the name of a stage as it begins, as "export serving_default"."""


@contextmanager
def stages(progress: bool | Progress | None = None) -> Iterator[Progress]:
    """What to call as each stage begins; the last stage ends with the block.

    Args:
        progress: None and True show the stages where stderr is a terminal and nothing elsewhere;
            False shows nothing; a function is called itself.
    """
    if callable(progress):
        yield progress
    elif progress is False or not sys.stderr.isatty():
        yield _silent
    else:
        with _Display() as display:
            yield display


def _silent(stage: str) -> None:
    """Show nothing."""


class _Display:
    """One line a stage on stderr: a spinner while it runs, then how long it took."""

    def __init__(self) -> None:
        from rich import console, progress

        self._progress = progress.Progress(
            progress.SpinnerColumn(finished_text="[green]✓"),
            progress.TextColumn("{task.description}"),
            progress.TimeElapsedColumn(),
            console=console.Console(stderr=True),
        )
        self._current: Any = None

    def __enter__(self) -> "_Display":
        self._progress.start()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            self._finish()
        self._progress.stop()

    def __call__(self, stage: str) -> None:
        self._finish()
        self._current = self._progress.add_task(stage, total=1)

    def _finish(self) -> None:
        if self._current is not None:
            self._progress.update(self._current, completed=1)
