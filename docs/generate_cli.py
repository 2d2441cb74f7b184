"""Writes docs/cli.md from the commands' own help; `python docs/generate_cli.py`."""

from pathlib import Path

import click

from litert_torch.cli import COMMANDS, main

PAGE = Path(__file__).with_name("cli.md")

_INTRODUCTION = """\
# Command line

Generated from the commands by `python docs/generate_cli.py`; a test fails when it is stale.

Reports go to stdout, as text or with `--json` as JSON; errors go to stderr as `error: ...`, without
a traceback unless `--debug` is given. Exit codes: 0 success, 1 failure, 2 wrong usage. A file is
written whole or not at all.
"""


def page() -> str:
    """The text of docs/cli.md."""
    settings = {"terminal_width": 90, "help_option_names": ["-h", "--help"]}
    group = click.Context(main, info_name="litert-convert", **settings)
    sections = [_INTRODUCTION, _help(main, group)]
    for name in COMMANDS:
        command = main.get_command(group, name)
        context = click.Context(command, info_name=name, parent=group, **settings)
        sections += [f"## {name}\n", _help(command, context)]
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                part = command.get_command(context, inner)
                below = click.Context(part, info_name=inner, parent=context, **settings)
                sections += [f"### {name} {inner}\n", _help(part, below)]
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                part = command.get_command(context, inner)
                below = click.Context(part, info_name=inner, parent=context, **settings)
                sections += [f"### {name} {inner}\n", _help(part, below)]
    return "\n".join(sections)


def _help(command: click.Command, context: click.Context) -> str:
    return f"```\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
