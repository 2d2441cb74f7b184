"""`litert-convert tpu SOURCE -o model.tpu`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from litert_torch.cli import outputs, reporting, sources

_HELP = f"""Export a PyTorch model for TPU.

{sources.HELP}
The result is a folder: StableHLO that jax loads, and weights in safetensors. It is run on this
machine's CPU on the sample inputs and compared with PyTorch; --no-verify leaves that out.
"""


@click.command("export", help=_HELP, short_help="Export a PyTorch model for TPU.")
@click.argument("source")
@click.option("-o", "--output", required=True, type=click.Path(), help="The folder to write.")
@sources.source_options
@click.option(
    "--dynamic",
    multiple=True,
    metavar="INPUT.AXIS=NAME[:MIN[:MAX]]",
    help="A size that may vary, as 0.0=batch or mask.1=length:1:512. Sizes of one name are equal.",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16"]),
    help="Make the module's floating-point weights, and inputs, of this type.",
)
@click.option("--quantize", metavar="RECIPE", help="As weight_only_wi8_afp32.")
@click.option("--verify/--no-verify", default=True, help="Compare the artifact with PyTorch.")
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
    dtype: str | None,
    quantize: str | None,
    verify: bool,
    tolerance: float | None,
    strict: bool,
    quiet: bool,
    as_json: bool,
    **source_options: Any,
) -> None:
    """Export, verify, then write."""
    if quiet:
        reporting.silence_warnings()
    outputs.check_folder(output)
    recipe = _recipe(quantize)
    start = time.perf_counter()
    signature = sources.with_sizes(sources.load(source, **source_options), dynamic)
    with reporting.quiet_runtime():
        from litert_torch import verification
        from litert_torch.tpu import exporting

        signature = exporting.with_dtype(signature, dtype)
        program = exporting.export_signatures(
            [signature],
            strict=strict,
            quant_config=recipe,
            progress=False if quiet or as_json else None,
        )
        if recipe is not None and tolerance is None:
            tolerance = float("inf")  # it differs as much as it does
        report = verification.verify(program, signature, tolerance) if verify else None
    program.export(output)
    found = program.signatures[signature.name]
    record = {
        "source": source,
        "output": output,
        "bytes": sum(p.stat().st_size for p in Path(output).iterdir()),
        "seconds": round(time.perf_counter() - start, 3),
        "inputs": [str(t) for t in found.inputs],
        "outputs": [str(t) for t in found.outputs],
        "verified": report and [dataclasses.asdict(o) for o in report.outputs],
    }
    if as_json or not quiet:
        reporting.report(as_json, record, _lines(record, report))


def _recipe(name: str | None) -> Any:
    if name is None:
        return None
    from litert_torch.errors import InvalidInputError
    from litert_torch.quantize.recipe import Recipe

    try:
        return Recipe.named(name)
    except InvalidInputError as error:
        raise click.UsageError(str(error)) from error


def _lines(record: dict[str, Any], report: Any) -> Iterator[str]:
    yield f"{record['output']}: {reporting.size(record['bytes'])} in {record['seconds']:.1f} s"
    yield f"  takes {', '.join(record['inputs']) or 'nothing'}"
    yield f"  gives {', '.join(record['outputs'])}"
    if report is None:
        yield "  not compared with PyTorch"
    else:
        yield "  beside PyTorch:"
        yield from (f"    {o}" for o in report.outputs)
