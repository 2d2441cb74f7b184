"""Options that every command has, and how commands report."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def _remember(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    ctx.find_root().meta[str(option.name)] = value


def debug_option(command: Command) -> Command:
    """--debug, which shows tracebacks and what the runtime prints."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Show tracebacks, and what the runtime prints.",
    )(command)


def reporting_options(command: Command) -> Command:
    """--json and --debug; the command gets `as_json`."""
    json_option = click.option("--json", "as_json", is_flag=True, help="Report as JSON on stdout.")
    return json_option(debug_option(command))


def report(as_json: bool, record: Any, lines: Iterable[str]) -> None:
    """Print `record` as JSON, or else `lines`."""
    if as_json:
        click.echo(json.dumps(_plain(record), indent=2, allow_nan=False))
    else:
        for line in lines:
            click.echo(line)


def _plain(value: Any) -> Any:
    """`value` with what JSON does not have as text: infinities, dtypes, paths."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def table(rows: Sequence[Sequence[Any]], indent: str = "  ") -> Iterator[str]:
    """Rows with aligned columns; numbers to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row, text in zip(rows, texts, strict=True):
        cells = [
            t.rjust(w) if isinstance(cell, (int, float)) else t.ljust(w)
            for cell, t, w in zip(row, text, widths, strict=True)
        ]
        yield (indent + "  ".join(cells)).rstrip()


def size(nbytes: int) -> str:
    """Bytes as people read them."""
    value = float(nbytes)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


@contextmanager
def quiet_runtime() -> Iterator[None]:
    """Keep LiteRT's C++ messages and torch's log off the terminal; Python's own stderr stays."""
    if click.get_current_context().find_root().meta.get("debug"):
        yield
        return
    torch_log = logging.getLogger("torch")
    level = torch_log.level
    torch_log.setLevel(logging.CRITICAL)
    sys.stderr.flush()
    saved, own = os.dup(2), sys.stderr
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        if _is_process_stderr(own):
            sys.stderr = os.fdopen(os.dup(saved), "w", buffering=1)
        os.dup2(nowhere, 2)
        yield
    finally:
        torch_log.setLevel(level)
        os.dup2(saved, 2)
        if sys.stderr is not own:
            sys.stderr.close()
            sys.stderr = own
        os.close(nowhere)
        os.close(saved)


def _is_process_stderr(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (OSError, ValueError, AttributeError):
        return False


def silence_warnings() -> None:
    """For -q: errors only, until the command ends."""
    logger = logging.getLogger("litert_torch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    click.get_current_context().call_on_close(lambda: logger.setLevel(level))
