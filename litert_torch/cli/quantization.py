"""--quantize and what belongs to it: the recipe of a conversion, and its report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

KINDS = click.Choice(["float32", "int8", "uint8"])


class _Numbers(click.ParamType[Any]):
    """One number, or several between commas."""

    name = "numbers"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is no number, nor numbers between commas", param, ctx)


def quantization_options(command: Command) -> Command:
    """The options; the command gets them by name, for `recipe_of`."""
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
            help="Inputs that are like real ones, for static recipes: a folder of images, of .npy "
            "files (one input) or of .npz files (arrays by input name), a batch each.",
        ),
        click.option(
            "--calibrate-limit",
            type=click.IntRange(min=1),
            metavar="N",
            help="Read so many of these files at most, evenly from all.",
        ),
        click.option(
            "--resume",
            type=click.Path(),
            metavar="FILE",
            help="Keep the progress of calibration in this file, and go on from it after an "
            "interruption; removed at the end.",
        ),
        click.option(
            "--mean",
            type=_Numbers(),
            help="Images become (pixel - MEAN) / STD, pixels being 0..255; a number or one a "
            "channel, as 123.675,116.28,103.53.",
        ),
        click.option("--std", type=_Numbers(), help="See --mean."),
        click.option(
            "--input-type",
            type=KINDS,
            default="float32",
            help="uint8 takes pixels, int8 pixels less 128, by --mean and --std; without them, the "
            "scale is that of calibration.",
        ),
        click.option("--output-type", type=KINDS, default="float32", help="Of float outputs."),
        click.option(
            "--report",
            type=click.Path(),
            metavar="FILE.html|FILE.json",
            help="Write what quantization did and cost, layer by layer.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


OPTIONS = (
    "quantize",
    "calibrate",
    "calibrate_limit",
    "resume",
    "mean",
    "std",
    "input_type",
    "output_type",
    "report",
)


def split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Other options of a command, and those of quantization."""
    rest = {k: v for k, v in options.items() if k not in OPTIONS}
    return rest, {k: options[k] for k in OPTIONS}


def recipe_of(
    quantize: str | None,
    calibrate: str | None,
    calibrate_limit: int | None = None,
    resume: str | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    input_type: Any = "float32",
    output_type: Any = "float32",
    report: str | None = None,
) -> Any:
    """The Recipe that the options ask for; None without --quantize.

    Raises:
        click.UsageError: the recipe or the calibration data is not there, or is not understood.
    """
    given = {
        "--calibrate": calibrate,
        "--report": report,
        "--input-type": None if input_type == "float32" else input_type,
        "--output-type": None if output_type == "float32" else output_type,
        "--resume": resume,
        "--mean": mean,
        "--std": std,
    }
    if quantize is None:
        for option, value in given.items():
            if value is not None:
                raise click.UsageError(f"{option} is for --quantize; say which recipe")
        return None
    check_report(report)
    from litert_torch.errors import InvalidInputError
    from litert_torch.quantize.calibration_files import CalibrationFiles
    from litert_torch.quantize.recipe import Recipe
    from litert_torch.quantize.resuming import Resumable

    try:
        data: Any = None
        if calibrate is not None:
            data = CalibrationFiles(calibrate, mean=mean, std=std, limit=calibrate_limit)
            data = Resumable(data, resume) if resume is not None else data
        if quantize.endswith(".json"):
            with open(quantize, encoding="utf-8") as stream:
                recipe = Recipe.from_json(stream.read(), calibration=data)
        else:
            recipe = Recipe.named(quantize, calibration=data)
        if input_type != "float32":
            recipe = recipe.with_interface(input_type, output_type, mean=mean, std=std)
        elif output_type != "float32":
            recipe = recipe.with_interface(outputs=output_type)
    except (InvalidInputError, OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--quantize: {error}") from error
    return recipe


@contextmanager
def progress_of_calibration(recipe: Any, *, shown: bool) -> Iterator[None]:
    """Count the files of calibration on stderr, where it is a terminal."""
    data: Any = getattr(recipe, "calibration", None)
    data = getattr(data, "calibration", data)  # of a Resumable
    if not shown or not hasattr(data, "progress") or not sys.stderr.isatty():
        yield
        return

    def tell(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        click.echo(f"\r  calibrating: {done} of {total} files{end}", nl=False, err=True)

    data.progress = tell
    try:
        yield
    finally:
        data.progress = None


def check_report(report: str | None) -> None:
    """Say now what is wrong with --report, not after minutes of work."""
    if report is None:
        return
    if not report.endswith((".html", ".json")):
        raise click.UsageError(f"--report: {report} ends with neither .html nor .json")
    from litert_torch.cli import outputs

    outputs.check_output(report)


def write_report(recipe: Any, report: str | None, source: str) -> list[str]:
    """Write --report; gives the lines that say so."""
    if report is None:
        return []
    from litert_torch.files import atomic_file

    batch, seen = _batch(recipe)
    title = f"{os.path.basename(source)}, quantized"
    recipe.report.notes.append(f"Errors of results are measured on {seen}.")
    text = (
        recipe.report.to_json(batch)
        if report.endswith(".json")
        else recipe.report.to_html(batch, title)
    )
    with atomic_file(report) as stream:
        stream.write(text.encode())
    return [f"  report: {report}"]


def _batch(recipe: Any) -> tuple[Mapping[str, Any], str]:
    """Inputs to measure errors on, and what they are."""
    from litert_torch.quantize.calibration_data import first_feed, made_up_feed

    graph = recipe.report.pairs[-1].before
    if recipe.calibration is not None:
        return first_feed(recipe.calibration, graph), "the first batch of the calibration data"
    return made_up_feed(graph), "random inputs, as there is no calibration data"


def lines(recipe: Any) -> list[str]:
    """What the recipe did, in a few lines."""
    report = recipe.report
    kept = report.left_in_float
    before, after = (f"{n / 1e6:.2f} MB" for n in (report.bytes_before, report.bytes_after))
    found = [f"  quantized weights: {before} to {after}"]
    if kept:
        found.append(f"  {len(kept)} ops stay in float, as {kept[0].name}: {kept[0].note}")
    return [*found, *(f"  {note}" for note in report.notes)]
