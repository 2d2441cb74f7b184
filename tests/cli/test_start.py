"""Start-up time, help, ops, doctor, and the generated page."""

import importlib.util
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from litert_torch.cli import COMMANDS, doctor
from tests.cli.command_line import fails, litert_convert, reports, succeeds

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("arguments", [["--help"], ["convert", "--help"], ["--version"]])
def test_help_is_quick_and_without_torch(arguments):
    code = f"""
import sys
from litert_torch.cli import main
try:
    main({arguments!r})
finally:
    heavy = {{'torch', 'numpy', 'ai_edge_litert', 'rich'}} & set(sys.modules)
    assert not heavy, heavy
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert spent < 0.3  # CPU seconds: other work on the machine does not count


def test_help_lists_every_command():
    shown = succeeds("--help").stdout
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "-h, --help" in succeeds("bench", "-h").stdout


def test_each_command_is_a_short_module():
    folder = ROOT / "litert_torch" / "cli"
    assert {p.stem for p in folder.glob("*.py")} >= set(COMMANDS)
    assert max(len((folder / f"{n}.py").read_text().splitlines()) for n in COMMANDS) <= 150


def test_ops_come_from_the_registry():
    record = reports("ops")
    by_name = {row["op"]: row["family"] for row in record}
    assert by_name["aten.linear.default"] == "linear"
    assert "aten.view_as_real.default" in by_name
    from litert_torch.converter.lowerings import lowers, lowers_complex

    assert len(record) == len({*map(str, lowers.all()), *map(str, lowers_complex.all())})
    assert {row["op"] for row in reports("ops", "--search", "aten.relu.")} == {"aten.relu.default"}


def test_doctor(monkeypatch):
    record = reports("doctor", "--no-devices")
    assert record["complete"] is True
    assert record["devices"] == []
    versions = {p["name"]: p["version"] for p in record["packages"]}
    assert versions["numpy"] == sys.modules["numpy"].__version__

    monkeypatch.setattr(doctor, "REQUIRED", ("numpy", "no-such-package"))
    result = litert_convert("doctor", "--no-devices")
    assert result.exit_code == 1
    assert "pip install no-such-package" in result.stdout


def test_doctor_tries_the_devices():
    devices = {d["name"]: d for d in reports("doctor")["devices"]}
    assert devices["cpu"]["available"] is True
    assert all(d["available"] or d["remedy"] for d in devices.values())


def test_interrupted(monkeypatch):
    from litert_torch.runtime_bindings import inspection

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(inspection, "inspect", interrupted)
    result = litert_convert("inspect", "x")
    assert result.exit_code == 1
    assert result.stderr.strip() == "error: interrupted"


def test_a_bug_is_one_line(monkeypatch):
    from litert_torch.runtime_bindings import inspection

    def broken(*args, **kwargs):
        raise KeyError("thing")

    monkeypatch.setattr(inspection, "inspect", broken)
    assert "unexpected KeyError: 'thing'; --debug shows where" in fails(1, "inspect", "x")


def test_the_page_is_current():
    path = ROOT / "docs" / "generate_cli.py"
    spec = importlib.util.spec_from_file_location("generate_cli", path)
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.PAGE.read_text() == generate.page(), "run python docs/generate_cli.py"
