"""`litert-convert tpu compile ARTIFACT --topology v5e:2x2`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from litert_torch.cli import reporting


@click.command("compile", short_help="Compile an artifact for TPUs that are not here.")
@click.argument("artifact", type=click.Path())
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A slice of TPUs, as v5e:1x1, v6e:2x2 or tpu7x:2x2x1. May be given several times.",
)
@click.option("--signature", help="Which entry point, where there are several.")
@click.option(
    "--size", "sizes", multiple=True, metavar="NAME=N", help="A size that varies, as dim_0=8."
)
@click.option(
    "--mesh",
    metavar="AXIS=N,...",
    help="How the devices are arranged, as data=2,model=4; by default data=all of them.",
)
@click.option("--level", type=click.Choice(["O0", "O1", "O2", "O3"]), help="Optimization level.")
@click.option("--save", type=click.Path(), help="Where to write the executable.")
@reporting.reporting_options
def command(
    artifact: str,
    topologies: tuple[str, ...],
    signature: str | None,
    sizes: tuple[str, ...],
    mesh: str | None,
    level: str | None,
    save: str | None,
    as_json: bool,
) -> None:
    """Compile an artifact ahead of time, and show the memory and time it takes on each TPU.

    Needs libtpu (pip install 'litert-torch[tpu]'), but no TPU. Exits with 1 where it does not fit
    a topology; names the largest tensors and the smallest topology in which it fits.
    """
    from litert_torch import tpu
    from litert_torch.errors import DoesNotFitError

    if save and len(topologies) > 1:
        raise click.UsageError("--save takes one --topology")
    found: list[Any] = []
    for name in topologies:
        try:
            found.append(
                tpu.compile(
                    artifact,
                    name,
                    signature=signature,
                    sizes=numbers(sizes, "--size"),
                    mesh=numbers(mesh.split(","), "--mesh") if mesh else None,
                    level=level,
                    save=save,
                )
            )
        except DoesNotFitError as error:
            found.append((name, str(error)))
    record = [_failed(*f) if isinstance(f, tuple) else f.record() for f in found]
    reporting.report(as_json, record, _lines(found))
    if any(isinstance(f, tuple) for f in found):
        click.get_current_context().exit(1)


def _failed(name: str, why: str) -> dict[str, Any]:
    return {"topology": name, "fits": False, "why": why}


def _lines(found: list[Any]) -> Iterator[str]:
    for f in found:
        yield f[1] if isinstance(f, tuple) else str(f)


def numbers(texts: Any, option: str) -> dict[str, int]:
    """What NAME=NUMBER options say."""
    given = {}
    for text in texts:
        match = re.fullmatch(r"\s*(\w+)=(\d+)\s*", text)
        if not match:
            raise click.UsageError(f"{option} takes NAME=NUMBER, not {text!r}")
        given[match[1]] = int(match[2])
    return given
