"""`litert-convert SOURCE -o model.tflite`."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from typing import Any

import click

from litert_torch.cli import conversion, outputs, quantization, reporting, sources

_HELP = f"""Convert a PyTorch model to a LiteRT file.

{sources.HELP}
The file is run in LiteRT on the sample inputs and compared with PyTorch before it is written;
--no-verify leaves that out.
"""


@click.command("convert", help=_HELP, short_help="Convert a PyTorch model to a LiteRT file.")
@click.argument("source")
@click.option("-o", "--output", required=True, type=click.Path(), help="The file to write.")
@sources.source_options
@click.option(
    "--dynamic",
    multiple=True,
    metavar="INPUT.AXIS=NAME[:MIN[:MAX]]",
    help="A size that may vary, as 0.0=batch or mask.1=length:1:512. Sizes of one name are equal.",
)
@quantization.quantization_options
@click.option("--verify/--no-verify", default=True, help="Compare the file with PyTorch.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Largest relative error of an output; by default 1e-4 for float32.",
)
@click.option("--strict", is_flag=True, help="Trace with torch.export's strict=True.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reporting.reporting_options
def command(
    source: str,
    output: str,
    dynamic: tuple[str, ...],
    verify: bool,
    tolerance: float | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert, verify, then write."""
    if quiet:
        reporting.silence_warnings()
    outputs.check_output(output)
    source_options, asked = quantization.split(options)
    recipe = quantization.recipe_of(**asked)
    verify = verify and getattr(recipe, "interface", None) is None  # PyTorch takes no pixels
    start = time.perf_counter()
    loaded = sources.load(source, **source_options)
    shown = not (quiet or as_json)
    with (
        reporting.quiet_runtime(),
        quantization.progress_of_calibration(recipe, shown=shown),
    ):
        model, comparison = conversion.converted(
            loaded,
            dynamic,
            strict,
            verify,
            tolerance,
            progress=shown,
            recipe=recipe,
        )
    model.export(output)
    record = {
        "source": source,
        "output": output,
        "bytes": os.path.getsize(output),
        "seconds": round(time.perf_counter() - start, 3),
        "inputs": [str(t) for s in model.signatures.values() for t in s.inputs],
        "outputs": [str(t) for s in model.signatures.values() for t in s.outputs],
        "verified": comparison and [dataclasses.asdict(o) for o in comparison.outputs],
        "quantized": None,
    }
    done = []
    if recipe is not None:
        with reporting.quiet_runtime():
            done = quantization.write_report(recipe, asked["report"], source)
        done = [*quantization.lines(recipe), *done]
        record["quantized"] = recipe.report.as_dict()
    if as_json or not quiet:
        reporting.report(as_json, record, [*_lines(record, comparison), *done])


def _lines(record: dict[str, Any], comparison: Any) -> Iterator[str]:
    yield f"{record['output']}: {reporting.size(record['bytes'])} in {record['seconds']:.1f} s"
    yield f"  takes {', '.join(record['inputs']) or 'nothing'}"
    yield f"  gives {', '.join(record['outputs'])}"
    if comparison is None:
        yield "  not compared with PyTorch"
    else:
        quantized = record["quantized"] is not None
        yield "  beside PyTorch:" if quantized else "  agrees with PyTorch:"
        yield from (f"    {o}" for o in comparison.outputs)
