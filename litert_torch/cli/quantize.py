"""`litert-convert quantize FILE -o OUTPUT --quantize RECIPE`."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from litert_torch.cli import outputs, quantization, reporting


@click.command("quantize", short_help="Quantize a float .tflite file, whoever made it.")
@click.argument("file", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="The file to write.")
@quantization.quantization_options
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reporting.reporting_options
def command(
    file: str, output: str, quiet: bool, as_json: bool, **quantization_options: Any
) -> None:
    """Quantize a float .tflite file of any converter.

    Without --quantize the file is only written anew: its weights aligned, each stored once.
    """
    if quiet:
        reporting.silence_warnings()
    outputs.check_output(output)
    shown = not (quiet or as_json)
    recipe = quantization.recipe_of(**quantization_options)
    before = os.path.getsize(file) if os.path.isfile(file) else 0
    start = time.perf_counter()
    with reporting.quiet_runtime():
        from litert_torch.progress import stages
        from litert_torch.quantize.existing import quantize_file

        with (
            quantization.progress_of_calibration(recipe, shown=shown),
            stages(None if shown else False) as stage,
        ):
            model = quantize_file(file, output, recipe, progress=stage)
    record: dict[str, Any] = {
        "source": file,
        "output": output,
        "bytes_before": before,
        "bytes": os.path.getsize(output),
        "seconds": round(time.perf_counter() - start, 3),
        "inputs": [str(t) for s in model.signatures.values() for t in s.inputs],
        "outputs": [str(t) for s in model.signatures.values() for t in s.outputs],
        "quantized": None,
    }
    sizes = f"{reporting.size(before)} to {reporting.size(record['bytes'])}"
    lines = [f"{output}: {sizes} in {record['seconds']:.1f} s"]
    if recipe is not None:
        with reporting.quiet_runtime():
            done = quantization.write_report(recipe, quantization_options["report"], file)
        lines += [*quantization.lines(recipe), *done]
        record["quantized"] = recipe.report.as_dict()
    if as_json or not quiet:
        reporting.report(as_json, record, lines)
