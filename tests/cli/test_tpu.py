import importlib.util
import json

import pytest

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

from tests.cli.command_line import HERE, fails, litert_convert, reports, succeeds

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="compiling needs libtpu"
)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "m.tpu"
    record = reports("tpu", f"{HERE}:dense", "-o", path, "--dynamic", "0.0=batch")
    assert record["inputs"] == ["args_0 float32[?,6]"]
    assert record["bytes"] == sum(p.stat().st_size for p in path.iterdir())
    assert record["verified"][0]["relative_error"] < 1e-5
    return path


def test_export_is_the_default_command_and_can_be_quiet(tmp_path):
    shown = succeeds("tpu", "export", f"{HERE}:dense", "-o", tmp_path / "a.tpu", "--no-verify")
    assert "not compared with PyTorch" in shown.stdout
    assert succeeds("tpu", f"{HERE}:dense", "-o", tmp_path / "a.tpu", "-q").output == ""


def test_an_output_that_is_a_file_is_wrong_usage(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file; name a folder" in fails(2, "tpu", f"{HERE}:dense", "-o", tmp_path / "file")


@needs_compiler
def test_compile_reports_the_topologies_that_fit(artifact):
    (found,) = reports(
        *("tpu", "compile", artifact, "--topology", "v5e:1x1", "--size", "dim_0=4", "--level", "O0")
    )
    assert found["topology"] == "v5e:1x1"
    assert 0 < found["hbm_bytes"] < 1 << 30


@needs_compiler
def test_plan_shows_what_fits(tmp_path):
    result = litert_convert(
        *("tpu", "plan", f"{HERE}:dense", "--topology", "v5e:1x1", "--dtype", "bfloat16", "--json")
    )
    assert result.exit_code == 0, result.stderr
    (row,) = json.loads(result.stdout)
    assert (row["fits"], row["program"], row["topology"]) == (True, "bfloat16", "v5e:1x1")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--topology", "v5e:9x9"), 1, "no TPU topology 'v5e:9x9'"),
        (("--topology", "v5e:1x1", "--size", "dim_0"), 2, "--size takes NAME=NUMBER"),
        (("--topology", "v5e:1x1"), 1, "sizes that vary need a number: dim_0"),
        ((), 2, "Missing option '--topology'"),
    ],
)
@needs_compiler
def test_wrong_arguments_of_compile(artifact, arguments, code, message):
    assert message in fails(code, "tpu", "compile", artifact, *arguments)


def test_folders_that_are_no_artifacts(tmp_path):
    if importlib.util.find_spec("libtpu") is not None:
        message = fails(1, "tpu", "compile", tmp_path, "--topology", "v5e:1x1")
        assert "is not a TPU artifact" in message
