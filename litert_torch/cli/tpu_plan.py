"""`litert-convert tpu plan SOURCE`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from litert_torch.cli import reporting, sources
from litert_torch.cli.tpu_compile import numbers

_HELP = f"""Show which TPUs hold a model, by compiling it for each, without its weights.

{sources.HELP}    FOLDER               a language model's config.json: decode, with a cache

Nothing is allocated but shapes. On several devices the layers of a transformer are split over all
of them, and other models are copied to each.
"""


@click.command("plan", help=_HELP, short_help="Show which TPUs hold a model.")
@click.argument("source")
@click.option(
    "--topology", "topologies", multiple=True, metavar="NAME", help="By default, small ones."
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(["float32", "bfloat16"]),
    default=("bfloat16",),
    show_default=True,
    help="Of the weights; may be given several times.",
)
@click.option(
    "--cache-length",
    type=click.IntRange(min=2),
    default=4096,
    show_default=True,
    help="Tokens that a language model's cache holds.",
)
@click.option("--dynamic", multiple=True, hidden=True)
@click.option("--size", "sizes", multiple=True, hidden=True)
@sources.source_options
@reporting.reporting_options
def command(
    source: str,
    topologies: tuple[str, ...],
    dtypes: tuple[str, ...],
    cache_length: int,
    dynamic: tuple[str, ...],
    sizes: tuple[str, ...],
    as_json: bool,
    **source_options: Any,
) -> None:
    """Plan."""
    from litert_torch.tpu import planning

    with reporting.quiet_runtime():
        if os.path.isfile(os.path.join(source, "config.json")):
            programs = _language_model(source, dtypes, cache_length)
            signature: str | None = "decode"
        else:
            programs = _programs(source, dtypes, dynamic, source_options)
            signature = None
        rows = list(
            planning.plan(
                programs,
                topologies or planning.TOPOLOGIES,
                signature=signature,
                sizes=numbers(sizes, "--size"),
            )
        )
    reporting.report(as_json, [_record(r) for r in rows], _lines(source, rows))


def _lines(source: str, rows: Any) -> Iterator[str]:
    from litert_torch.tpu import planning

    yield source
    yield from planning.table(rows)


def _record(row: Any) -> dict[str, Any]:
    fits = row.compiled is not None
    known = {"program": row.program, "topology": row.topology.name, "fits": fits}
    return {**known, **(row.compiled.record() if fits else {"why": row.why})}


def _programs(
    source: str, dtypes: tuple[str, ...], dynamic: tuple[str, ...], options: dict[str, Any]
) -> dict[str, Any]:
    import torch

    from litert_torch.tpu import exporting

    with torch.device("meta"):
        entry = sources.with_sizes(sources.load(source, **options), dynamic)
        return {
            dtype: exporting.export_signatures(
                [exporting.with_dtype(exporting.on_meta(entry), dtype)], progress=False
            )
            for dtype in dtypes
        }


def _language_model(folder: str, dtypes: tuple[str, ...], cache_length: int) -> dict[str, Any]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from litert_torch.tpu import language_model

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    auto: Any = AutoModelForCausalLM  # from_config is untyped
    programs = {}
    for dtype in dtypes:
        with torch.device("meta"):
            model = auto.from_config(config, dtype=getattr(torch, dtype)).eval()
        programs[dtype] = language_model.export(
            model, cache_length=cache_length, prefill_lengths=(), progress=False
        )
    return programs
