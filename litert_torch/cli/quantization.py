"""--quantize and --calibrate: the recipe of a conversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def quantization_options(command: Command) -> Command:
    """--quantize and --calibrate; the command gets `quantize` and `calibrate`."""
    options = [
        click.option(
            "--quantize",
            metavar="NAME|FILE.json",
            help="Quantize, as dynamic_wi8_afp32, static_wi8_ai8 or float16 says, or the recipe in "
            "a file.",
        ),
        click.option(
            "--calibrate",
            type=click.Path(),
            metavar="PATH",
            help="Inputs that are like real ones, for static recipes: a folder of .npy files (one "
            "input) or .npz files (arrays by input name), a batch each.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def recipe_of(quantize: str | None, calibrate: str | None) -> Any:
    """The Recipe that the options ask for; None without --quantize.

    Raises:
        click.UsageError: the recipe or the calibration data is not there, or is not understood.
    """
    if quantize is None:
        if calibrate is not None:
            raise click.UsageError("--calibrate is for --quantize; say which recipe")
        return None
    from litert_torch.errors import InvalidInputError
    from litert_torch.quantize.calibration_files import CalibrationFiles
    from litert_torch.quantize.recipe import Recipe

    try:
        data = CalibrationFiles(calibrate) if calibrate is not None else None
        if not quantize.endswith(".json"):
            return Recipe.named(quantize, calibration=data)
        with open(quantize, encoding="utf-8") as stream:
            return Recipe.from_json(stream.read(), calibration=data)
    except (InvalidInputError, OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--quantize: {error}") from error


def lines(recipe: Any) -> list[str]:
    """What the recipe did, in a few lines."""
    report = recipe.report
    kept = report.left_in_float
    before, after = (f"{n / 1e6:.2f} MB" for n in (report.bytes_before, report.bytes_after))
    found = [f"  quantized weights: {before} to {after}"]
    if kept:
        found.append(f"  {len(kept)} ops stay in float, as {kept[0].name}: {kept[0].note}")
    return found
