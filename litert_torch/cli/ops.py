"""`litert-convert ops`."""

from __future__ import annotations

import click

from litert_torch.cli import reporting


@click.command("ops", short_help="List the ATen operators that convert.")
@click.option("--search", default="", metavar="TEXT", help="Only those whose name holds TEXT.")
@reporting.reporting_options
def command(search: str, as_json: bool) -> None:
    """List the ATen operators that have a lowering to LiteRT.

    Others still convert where PyTorch decomposes them into these.
    """
    from litert_torch.converter.lowerings import lowers, lowers_complex

    tables = (lowers_complex.all(), lowers.all())  # of an op in both, the family for real numbers
    families = {
        str(op): function.__module__.rpartition(".")[2]
        for table in tables
        for op, function in table.items()
    }
    found = sorted((op, family) for op, family in families.items() if search in op)
    record = [{"op": op, "family": family} for op, family in found]
    reporting.report(as_json, record, [*reporting.table(found, ""), f"{len(found)} operators"])
