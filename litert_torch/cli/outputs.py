"""The path that a command writes to."""

from __future__ import annotations

import os

import click


def check_output(output: str) -> None:
    """Say what is wrong with the output now, not after minutes of work."""
    if os.path.isdir(output):
        raise click.UsageError(f"{output} is a folder; name a file")
    if os.path.exists(output) and not os.path.isfile(output):
        raise click.ClickException(f"cannot write {output}: it is a device, not a file")
    _check_parent(output)


def check_folder(output: str) -> None:
    """The same for a folder that is to be written."""
    if os.path.exists(output) and not os.path.isdir(output):
        raise click.UsageError(f"{output} is a file; name a folder")
    _check_parent(output)


def _check_parent(output: str) -> None:
    folder = os.path.dirname(os.path.abspath(output))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise click.ClickException(f"cannot write {output}: {folder} is not a writable folder")
