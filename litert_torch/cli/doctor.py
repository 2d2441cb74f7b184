"""`litert-convert doctor`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import click

from litert_torch._version import __version__
from litert_torch.cli import reporting

REQUIRED = ("torch", "ai-edge-litert", "flatbuffers", "numpy", "ml-dtypes", "click", "rich")
OPTIONAL = {
    "torchvision": "torchvision:NAME sources",
    "timm": "timm:NAME sources",
    "transformers": "language models",
    "safetensors": "--weights FILE.safetensors",
    "torchao": "quantized models",
    "onnx": "ONNX sources",
    "jax": "TPU artifacts",
    "libtpu": "compiling for TPU",
}


@click.command("doctor", short_help="Show versions and accelerators, and what is missing.")
@click.option("--devices/--no-devices", default=True, help="Try each accelerator on one operator.")
@reporting.reporting_options
def command(devices: bool, as_json: bool) -> None:
    """Show versions and the accelerators of this machine, what is missing and how to get it.

    Exits with 1 where something is missing that conversion needs.
    """
    import platform

    required = [_package(name, "needed") for name in REQUIRED]
    optional = [_package(name, use) for name, use in OPTIONAL.items()]
    found = [dataclasses.asdict(d) for d in _devices(required)] if devices else []
    complete = all(p["version"] for p in required)
    record = {
        "litert_torch": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "complete": complete,
        "packages": required + optional,
        "devices": found,
    }
    reporting.report(as_json, record, _lines(record))
    if not complete:
        click.get_current_context().exit(1)


def _package(name: str, use: str) -> dict[str, Any]:
    import importlib.metadata

    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return {"name": name, "version": None, "use": use, "remedy": f"pip install {name}"}
    return {"name": name, "version": version, "use": use, "remedy": ""}


def _devices(required: list[dict[str, Any]]) -> list[Any]:
    if not all(p["version"] for p in required if p["name"] in {"ai-edge-litert", "numpy"}):
        return []
    from litert_torch.runtime_bindings.devices import devices

    return list(devices())


def _lines(record: dict[str, Any]) -> Iterator[str]:
    yield f"litert-torch {record['litert_torch']}, Python {record['python']} ({sys.executable})"
    yield record["platform"]
    yield "packages"
    yield from reporting.table(
        [(p["name"], p["version"] or "MISSING", _note(p)) for p in record["packages"]]
    )
    if record["devices"]:
        yield "accelerators and compilers"
        yield from reporting.table(
            [(d["name"], "yes" if d["available"] else "no", d["detail"]) for d in record["devices"]]
        )
        for d in record["devices"]:
            if d["remedy"]:
                yield f"  for {d['name']}: {d['remedy']}"


def _note(package: dict[str, Any]) -> str:
    return f"for {package['use']}: {package['remedy']}" if package["remedy"] else ""
