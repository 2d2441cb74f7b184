"""inspect, run, verify, bench."""

import json
import os

import numpy as np
import pytest

from tests.cli.command_line import HERE, fails, litert_convert, reports, succeeds
from tests.runtime_bindings import small_files as small


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "m.tflite"
    target.write_bytes(small.content(small.dense(small.batch())))
    return target


def test_inspect(path):
    record = reports("inspect", path)
    assert record["ops"] == {"FULLY_CONNECTED": 1, "RELU": 1}
    assert record["weights"] == {"float32": {"tensors": 1, "buffers": 1, "nbytes": 120}}
    assert record["signatures"][0]["inputs"][0]["shape"] == [-1, 6]
    assert record["delegation"]["delegated"] == 2
    assert record["delegation"]["by_kind"]["RELU"] == {"delegated": 1, "total": 1}
    shown = succeeds("inspect", path).stdout
    assert "takes args_0 float32[?,6]" in shown
    assert "XNNPACK takes 2 of 2 operators" in shown


def test_run_writes_outputs(path, tmp_path):
    x = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6)
    np.save(tmp_path / "x.npy", x)
    want = np.maximum(x @ small.WEIGHTS.T, 0)
    for given in (f"args_0={tmp_path / 'x.npy'}", tmp_path / "x.npy"):
        record = reports("run", path, "--input", given, "--output", tmp_path / "out")
        (output,) = record["outputs"]
        assert (output["shape"], output["dtype"]) == ([3, 5], "float32")
        assert output["max"] == pytest.approx(float(want.max()), rel=1e-5)
        np.testing.assert_allclose(np.load(output["file"]), want, rtol=1e-5, atol=1e-5)
    assert os.listdir(tmp_path / "out") == ["output_0.npy"]


def test_run_says_which_inputs_it_takes(path, tmp_path):
    assert "args_0 float32[?,6]" in fails(1, "run", path)
    assert "output_0 float32[1,5]" in succeeds("run", path, "--made-up").stdout
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.float32))
    assert "shape [2, 5]" in fails(1, "run", path, "--input", tmp_path / "x.npy")
    assert "no signature 'b'" in fails(1, "run", path, "--signature", "b")


def test_run_refuses_bad_arrays(path, tmp_path):
    assert "no file none.npy" in fails(2, "run", path, "--input", "x=none.npy")
    assert "[NAME=]FILE.npy" in fails(2, "run", path, "--input", "a b=x.npy")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01")
    assert "not a whole .npy file" in fails(1, "run", path, "--input", tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", a=np.ones(1), b=np.ones(1))
    assert "several arrays" in fails(1, "run", path, "--input", tmp_path / "x.npz")


def test_run_writes_nowhere_when_it_cannot(path, tmp_path):
    message = fails(1, "run", path, "--made-up", "--output", path)
    assert "cannot write" in message
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_verify(tmp_path):
    path = tmp_path / "m.tflite"
    succeeds(f"{HERE}:dense", "-o", path, "-q")
    assert reports("verify", path, "--against", f"{HERE}:dense")["agrees"] is True
    other = litert_convert("verify", path, "--against", f"{HERE}:Dense", "--input", "2x6", "--json")
    assert other.exit_code == 1
    record = json.loads(other.stdout)
    assert record["agrees"] is False
    assert record["outputs"][0]["relative_error"] > 0.01
    loose = ["--input", "2x6", "--tolerance", "100"]
    assert reports("verify", path, "--against", f"{HERE}:Dense", *loose)["agrees"] is True
    assert "3, 6" in fails(1, "verify", path, "--against", f"{HERE}:dense", "--input", "3x6")
    assert "neither a file" in fails(2, "verify", path, "--against", "nonsense")


def test_bench(path):
    options = ["--threads", 2, "--runs", 3, "--warmup", 0, "--shape", "args_0=7x6"]
    record = reports("bench", path, *options)
    assert (record["threads"], record["runs"]) == (2, 3)
    assert record["shapes"] == {"args_0": [7, 6]}
    assert 0 < record["min_ms"] <= record["median_ms"] <= record["p90_ms"]
    assert "median" in succeeds("bench", path, "--runs", 1).stdout
    assert "--shape takes" in fails(2, "bench", path, "--shape", "7x6")
    assert "no input y" in fails(1, "bench", path, "--shape", "y=7")
    assert "--threads" in fails(2, "bench", path, "--threads", 0)


CONTENTS = {
    "empty": (b"", "is empty"),
    "cut": (small.content(small.dense())[:300], "truncated or damaged"),
    "page": (b"<html>nothing here</html>", "web page"),
}
COMMANDS = {
    "inspect": [],
    "run": ["--made-up"],
    "bench": [],
    "verify": ["--against", f"{HERE}:dense"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", [*CONTENTS, "missing", "folder"])
def test_files_that_are_no_models(tmp_path, command, kind):
    content, message = CONTENTS.get(kind, (None, "cannot read"))
    file = tmp_path / "m.tflite"
    if kind == "folder":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    assert message in fails(1, command, file, *COMMANDS[command])
    assert "FILE" in fails(2, command, *COMMANDS[command])
