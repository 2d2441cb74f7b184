"""`litert-convert bench FILE`."""

from __future__ import annotations

import dataclasses
import re

import click

from litert_torch.cli import reporting

_SHAPE = re.compile(r"(\w+)=(\d+(?:x\d+)*)")


@click.command("bench", short_help="Measure latency and memory of a LiteRT file.")
@click.argument("file", type=click.Path())
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--runs", type=click.IntRange(min=1), default=50, show_default=True, help="Calls to time."
)
@click.option(
    "--warmup", type=click.IntRange(min=0), default=5, show_default=True, help="Calls before them."
)
@click.option("--signature", help="Which entry point; the first by default.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=SHAPE",
    help="The size of an input whose size may vary, as args_0=8x3x224x224; 1 by default.",
)
@reporting.reporting_options
def command(
    file: str,
    threads: int,
    runs: int,
    warmup: int,
    signature: str | None,
    shapes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a file on this machine's CPU on made-up inputs, in a process of its own."""
    from litert_torch.runtime_bindings.benchmark import benchmark

    found = benchmark(
        file,
        threads=threads,
        runs=runs,
        warmup=warmup,
        signature_name=signature,
        shapes=_parsed(shapes),
    )
    rows = [
        ("median", f"{found.median_ms:.3f} ms"),
        ("90 % within", f"{found.p90_ms:.3f} ms"),
        ("fastest", f"{found.min_ms:.3f} ms"),
        ("first call", f"{found.first_ms:.3f} ms"),
        ("load", f"{found.load_ms:.3f} ms"),
        ("memory at most", reporting.size(found.peak_bytes)),
        ("of it for the model", reporting.size(found.model_bytes)),
    ]
    count = f"{threads} thread{'' if threads == 1 else 's'}"
    title = f"{file}, signature {found.signature}: {runs} calls on {count}"
    reporting.report(
        as_json, {"file": file, **dataclasses.asdict(found)}, [title, *reporting.table(rows)]
    )


def _parsed(shapes: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    found = {}
    for text in shapes:
        match = _SHAPE.fullmatch(text)
        if not match:
            raise click.UsageError(f"--shape takes NAME=SHAPE, as args_0=1x77; not {text!r}")
        found[match[1]] = tuple(int(size) for size in match[2].split("x"))
    return found
