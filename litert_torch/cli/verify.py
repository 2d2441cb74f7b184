"""`litert-convert verify FILE --against SOURCE`."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import click

from litert_torch.cli import reporting, sources

_HELP = f"""Run a LiteRT file and its PyTorch model on the same inputs, and compare the outputs.

FILE may also be the folder of a TPU artifact.

{sources.HELP}
Exits with 1 where an output differs by more than --tolerance.
"""


@click.command("verify", help=_HELP, short_help="Compare a LiteRT file with its PyTorch model.")
@click.argument("file", type=click.Path())
@click.option("--against", "source", required=True, metavar="SOURCE", help="The PyTorch model.")
@sources.source_options
@click.option(
    "--signature", default="serving_default", show_default=True, help="Which entry point."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Largest relative error of an output; by default 1e-4 for float32.",
)
@reporting.reporting_options
def command(
    file: str,
    source: str,
    signature: str,
    tolerance: float | None,
    as_json: bool,
    **source_options: Any,
) -> None:
    """Compare."""
    from litert_torch import verification

    model = _loaded(file)  # before PyTorch is loaded: it is quick to fail
    reference = sources.load(source, **source_options).signature
    with reporting.quiet_runtime():
        found = verification.compare(
            model, reference.module, reference.args, reference.kwargs, signature_name=signature
        )
    agrees = found.within(tolerance)
    record = {"file": file, "source": source, "agrees": agrees}
    record["outputs"] = [
        {**dataclasses.asdict(o), "agrees": o.within(tolerance)} for o in found.outputs
    ]
    verdict = "agrees with" if agrees else "DIFFERS from"
    rows = [f"  {'ok     ' if o.within(tolerance) else 'DIFFERS'} {o}" for o in found.outputs]
    reporting.report(as_json, record, [f"{file} {verdict} {source}", *rows])
    if not agrees:
        click.get_current_context().exit(1)


def _loaded(path: str) -> Any:
    from litert_torch.runtime_bindings import tpu_artifact

    if os.path.isfile(os.path.join(path, tpu_artifact.MANIFEST)):
        from litert_torch import tpu

        return tpu.load(path)
    from litert_torch.runtime_bindings import LiteRTModel

    return LiteRTModel.load(path)
