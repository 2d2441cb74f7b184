"""`litert-convert run FILE`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from litert_torch.cli import reporting
from litert_torch.errors import InvalidModelFileError, OutputError


@click.command("run", short_help="Run a LiteRT file.")
@click.argument("file", type=click.Path())
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE.npy",
    help="An input, as image=photo.npy; without a name, the next positional one.",
)
@click.option("--made-up", is_flag=True, help="Make up the inputs that are not given.")
@click.option("--signature", help="Which entry point; the first by default.")
@click.option("--output", type=click.Path(), help="A folder to write NAME.npy of each output to.")
@reporting.reporting_options
def command(
    file: str,
    inputs: tuple[str, ...],
    made_up: bool,
    signature: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Run a signature of a file on this machine's CPU, in a process of its own.

    Shows the shape, dtype and range of each output, and writes them to files with --output.
    """
    from litert_torch.runtime_bindings import child
    from litert_torch.runtime_bindings.execution import run_file

    args, kwargs = _arrays(inputs)
    try:
        outputs = child.call(
            run_file, path=file, args=args, kwargs=kwargs, signature=signature, made_up=made_up
        )
    except child.ChildError as error:
        raise InvalidModelFileError(f"the LiteRT runtime, running {file}, {error}") from error
    written = _write(outputs, output) if output is not None else {}
    records = [{**_summary(n, x), "file": written.get(n)} for n, x in outputs.items()]
    reporting.report(as_json, {"file": file, "outputs": records}, _lines(records))


def _arrays(inputs: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arrays from `[NAME=]FILE.npy`."""
    import numpy as np

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in inputs:
        name, equals, path = text.rpartition("=")
        if (equals and not name.isidentifier()) or name in kwargs or not path:
            raise click.UsageError(f"--input takes [NAME=]FILE.npy, each name once; not {text!r}")
        try:
            array = np.load(path, allow_pickle=False)
        except FileNotFoundError:
            raise click.UsageError(f"--input {text}: no file {path}") from None
        except (OSError, ValueError, EOFError) as error:
            raise click.ClickException(f"{path} is not a whole .npy file of numbers") from error
        if not isinstance(array, np.ndarray):
            raise click.ClickException(f"{path} holds several arrays, not one")
        if name:
            kwargs[name] = array
        else:
            args.append(array)
    return args, kwargs


def _write(outputs: dict[str, Any], folder: str) -> dict[str, str]:
    """Write each output to a file of its name; returns the paths."""
    import numpy as np

    from litert_torch.files import atomic_file

    paths = {}
    for name in outputs:
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
        paths[name] = os.path.join(folder, f"{safe}.npy")
    if len(set(paths.values())) < len(paths):
        raise OutputError(f"two outputs would share a file: {', '.join(outputs)}")
    for name, array in outputs.items():
        with atomic_file(paths[name]) as stream:
            np.save(stream, array)
    return paths


def _summary(name: str, array: Any) -> dict[str, Any]:
    numbers = array.astype("float64") if array.size and array.dtype.kind != "O" else None
    low, mean, high = (
        (None,) * 3
        if numbers is None
        else (float(numbers.min()), float(numbers.mean()), float(numbers.max()))
    )
    return {
        "name": name,
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "min": low,
        "mean": mean,
        "max": high,
    }


def _lines(records: list[dict[str, Any]]) -> Iterator[str]:
    for r in records:
        sizes = ",".join(map(str, r["shape"]))
        span = f": min {r['min']:.6g}, mean {r['mean']:.6g}, max {r['max']:.6g}"
        file = f" -> {r['file']}" if r["file"] else ""
        yield f"{r['name']} {r['dtype']}[{sizes}]{span if r['mean'] is not None else ''}{file}"
