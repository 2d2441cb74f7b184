"""`litert-convert tpu ...`: commands for TPU, each in its module (`tpu_export`, ...)."""

from __future__ import annotations

import importlib

import click

COMMANDS = ("export", "compile", "plan")
DEFAULT_COMMAND = "export"


class TpuCommands(click.Group):
    """The commands, of which `export` is meant where none is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command called `name`, imported now."""
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"litert_torch.cli.tpu_{name}")
        command: click.Command = module.command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `export` before arguments that name no command."""
        if args and args[0] not in (*COMMANDS, "--help", "-h"):
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)


@click.group(
    "tpu", cls=TpuCommands, short_help="Export models for TPU, compile and plan without one."
)
def command() -> None:
    """Export PyTorch models for TPU, and compile them for TPUs that are not here.

    litert-convert tpu SOURCE -o model.tpu is short for litert-convert tpu export SOURCE ...
    """
