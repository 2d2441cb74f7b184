"""The command line: `litert-convert SOURCE -o model.tflite`, and commands on the files it makes.

A file a command. They import what they need when they run, so that `--help` is quick.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from litert_torch._version import __version__
from litert_torch.errors import LiteRTTorchError

COMMANDS = (
    "convert",
    "quantize",
    "llm",
    "tpu",
    "inspect",
    "run",
    "verify",
    "bench",
    "ops",
    "doctor",
)
DEFAULT_COMMAND = "convert"

OK, FAILURE, USAGE = 0, 1, 2
"""Exit codes."""


class Commands(click.Group):
    """The commands, of which `convert` is meant where none is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command called `name`, imported now."""
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"litert_torch.cli.{name}").command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `convert` before arguments that name no command."""
        if args and args[0] not in (*COMMANDS, "--help", "-h", "--version"):
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; failures become one line on stderr."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.meta.get("debug"):
                import traceback

                traceback.print_exc()
            raise click.ClickException(_message(error)) from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Parse, run and exit with OK, FAILURE or USAGE."""
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.UsageError as error:
            _complain(error.format_message())
            if error.ctx is not None:
                click.echo(f"see {error.ctx.command_path} --help", err=True)
            code = USAGE
        except click.ClickException as error:
            _complain(error.format_message())
            code = FAILURE
        except click.Abort:
            _complain("interrupted")
            code = FAILURE
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else OK)


def _message(error: Exception) -> str:
    if isinstance(error, LiteRTTorchError):
        return str(error)
    if isinstance(error, (OSError, MemoryError)):
        return str(error) or type(error).__name__
    return f"unexpected {type(error).__name__}: {error}; --debug shows where"


def _complain(message: str) -> None:
    click.echo(f"error: {message}", err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="litert-convert")
def main() -> None:
    """Convert PyTorch models to LiteRT files, and examine and run such files.

    litert-convert SOURCE -o model.tflite is short for litert-convert convert SOURCE ...
    """
