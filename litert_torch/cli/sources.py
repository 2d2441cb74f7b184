"""The SOURCE of a model on the command line, and the options that say more about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from litert_torch.errors import InvalidInputError

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from litert_torch.converter.signature import Signature

Command = TypeVar("Command", bound=Callable[..., Any])

HELP = """\b
  SOURCE is one of
    FILE.pt2             what torch.export.save wrote
    package.module:name  a module, a class of modules, or a function that
                         returns a module, (module, args) or (module, args,
                         kwargs)
    file.py:name         the same, in a Python file
    torchvision:NAME     a model of torchvision, with random weights
    timm:NAME            a model of timm, with random weights
"""


@dataclass(frozen=True)
class Source:
    """A model to convert or to compare with.

    Attributes:
        signature: The module and its sample inputs.
        program: The exported program, where the source is one.
    """

    signature: Signature
    program: ExportedProgram | None = None


def source_options(command: Command) -> Command:
    """--input, --weights, --pretrained and --nhwc-*; the command gets them by these names."""
    options = [
        click.option(
            "--input",
            "inputs",
            multiple=True,
            metavar="[NAME=]SHAPE[:DTYPE]",
            help="A sample input, as 1x3x224x224 or mask=1x77:bool or image=photo.npy. "
            "Once for each input, in order.",
        ),
        click.option(
            "--weights",
            type=click.Path(),
            help="A state dict (.pt, .pth, .safetensors) to load into the module.",
        ),
        click.option(
            "--pretrained", is_flag=True, help="Let torchvision or timm download their weights."
        ),
        click.option(
            "--nhwc-inputs",
            default="",
            metavar="I,J",
            help="Positional inputs that become channel-last in the file, by number.",
        ),
        click.option(
            "--nhwc-outputs",
            default="",
            metavar="I,J",
            help="Outputs that become channel-last in the file, by number.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def load(
    source: str,
    inputs: tuple[str, ...],
    weights: str | None,
    pretrained: bool,
    nhwc_inputs: str,
    nhwc_outputs: str,
) -> Source:
    """The model that the command line names.

    Raises:
        click.UsageError: the source or an option is not understood.
        LiteRTTorchError: the source is understood, but cannot be loaded.
    """
    from litert_torch.converter.frontends import pt2, reference

    channel_last = _numbers(nhwc_inputs, "--nhwc-inputs"), _numbers(nhwc_outputs, "--nhwc-outputs")
    is_program = source.endswith(".pt2") or (os.path.isfile(source) and ":" not in source)
    if is_program and any((inputs, weights, pretrained, *channel_last)):
        raise click.UsageError(
            "a .pt2 file has its inputs, weights and layout already; leave out "
            "--input, --weights, --pretrained and --nhwc-*"
        )
    try:
        if is_program:
            program = pt2.load(source)
            return Source(pt2.signature(program), program)
        found = reference.signature(source, inputs, weights=weights, pretrained=pretrained)
        return Source(_channel_last(found, *channel_last))
    except InvalidInputError as error:
        raise click.UsageError(str(error)) from error


def with_sizes(source: Source, dynamic: tuple[str, ...]) -> Signature:
    """The source's entry point, with the sizes that --dynamic names left open.

    Raises:
        click.UsageError: `dynamic` is not understood, or the source is a program already.
    """
    from litert_torch.converter.frontends.samples import with_dynamic_sizes

    if dynamic and source.program is not None:
        raise click.UsageError("a .pt2 file has its dynamic sizes already; leave out --dynamic")
    try:
        return with_dynamic_sizes(source.signature, dynamic)
    except InvalidInputError as error:
        raise click.UsageError(str(error)) from error


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise click.UsageError(f"{option} takes numbers, as 0 or 0,2; not {text!r}") from None


def _channel_last(signature: Signature, inputs: list[int], outputs: list[int]) -> Signature:
    """The signature of the module with channel-last inputs and outputs, samples re-laid out."""
    if not inputs and not outputs:
        return signature
    from litert_torch.channel_last import to_channel_last_io

    args = list(signature.args)
    for i in inputs:
        if not 0 <= i < len(args) or getattr(args[i], "ndim", 0) < 3:
            raise InvalidInputError(f"--nhwc-inputs: input {i} is no tensor of rank 3 or more")
        args[i] = args[i].movedim(1, -1).contiguous()
    module = to_channel_last_io(signature.module, inputs, outputs)
    return replace(signature, module=module, args=tuple(args))
