"""`litert-convert llm SOURCE -o model.litertlm`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from litert_torch.cli import outputs, reporting


@click.command("llm", short_help="Convert a language model for LiteRT-LM.")
@click.argument("source", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="The file to write.")
@click.option(
    "--cache-length",
    type=click.IntRange(min=2),
    help="Most tokens of a conversation; by default 1280, or as many as the model knows if less.",
)
@click.option(
    "--prefill-length",
    "prefill_lengths",
    multiple=True,
    type=click.IntRange(min=1),
    help="Tokens of a prompt read in one go, with static shapes; may be given several times.",
)
@click.option(
    "--dynamic/--static",
    default=None,
    help="Shapes chosen at run time (the default: faster on a CPU), or fixed (accelerators).",
)
@click.option("--quantize", metavar="RECIPE", help="A named recipe, as dynamic_wi8_afp32.")
@click.option("--tokenizer", type=click.Path(), help="The tokenizer's folder, if not SOURCE.")
@click.option(
    "--chat-template",
    type=click.Path(exists=True, dir_okay=False),
    help="A file with Jinja to use instead of the tokenizer's.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reporting.reporting_options
def command(
    source: str,
    output: str,
    cache_length: int | None,
    prefill_lengths: tuple[int, ...],
    dynamic: bool | None,
    quantize: str | None,
    tokenizer: str | None,
    chat_template: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Convert a causal language model to a .litertlm file.

    SOURCE is a folder in Hugging Face's form: config.json, safetensors and tokenizer.json.
    """
    if quiet:
        reporting.silence_warnings()
    outputs.check_output(output)
    start = time.perf_counter()
    with reporting.quiet_runtime():
        from litert_torch import llm

        llm.export(
            source,
            output,
            cache_length=cache_length,
            prefill_lengths=prefill_lengths or None,
            dynamic=dynamic,
            quantize=_recipe(quantize),
            tokenizer=tokenizer,
            chat_template=Path(chat_template).read_text("utf-8") if chat_template else None,
            progress=False if quiet or as_json else None,
        )
    record: dict[str, Any] = {
        "source": source,
        "output": output,
        "bytes": os.path.getsize(output),
        "seconds": round(time.perf_counter() - start, 3),
    }
    line = f"{output}: {reporting.size(record['bytes'])} in {record['seconds']:.1f} s"
    if as_json or not quiet:
        reporting.report(as_json, record, [line])


def _recipe(name: str | None) -> Any:
    if name is None:
        return None
    from litert_torch.errors import InvalidInputError
    from litert_torch.quantize.recipe import Recipe

    try:
        return Recipe.named(name)
    except InvalidInputError as error:
        raise click.UsageError(str(error)) from error
