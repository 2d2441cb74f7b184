import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

import litert_torch
from tests.cli import sample_models
from tests.cli.command_line import HERE, fails, reports, succeeds


def outputs_of(path, *args, **kwargs):
    return litert_torch.load(path)(*args, **kwargs)


def test_convert_is_the_default_command_and_compares_with_pytorch(tmp_path):
    path = tmp_path / "new" / "m.tflite"
    record = reports(f"{HERE}:dense", "-o", path)
    module, args = sample_models.dense()
    np.testing.assert_allclose(
        outputs_of(path, *args), module(*args).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert record["bytes"] == path.stat().st_size
    assert record["inputs"] == ["args_0 float32[2,6]"]
    assert record["verified"][0]["relative_error"] < 1e-5
    assert os.listdir(path.parent) == ["m.tflite"]


def test_the_report_is_text_or_nothing(tmp_path):
    shown = succeeds("convert", f"{HERE}:dense", "-o", tmp_path / "m.tflite", "--no-verify")
    assert "takes args_0 float32[2,6]" in shown.stdout
    assert "not compared with PyTorch" in shown.stdout
    quiet = succeeds("-o", tmp_path / "m.tflite", "-q", f"{HERE}:dense")
    assert quiet.output == ""


@pytest.mark.parametrize("source", ["Dense", "an_instance"])
def test_classes_and_instances_need_inputs(tmp_path, source):
    path = tmp_path / "m.tflite"
    assert "gives no sample inputs" in fails(2, f"{HERE}:{source}", "-o", path)
    succeeds(f"{HERE}:{source}", "--input", "4x6:float32", "-o", path, "--no-verify")
    assert litert_torch.load(path).signatures["serving_default"].inputs[0].shape == (4, 6)


def test_a_python_file_is_a_source(tmp_path):
    source = tmp_path / "torch.py"  # a name that must not shadow PyTorch
    source.write_text("import torch\ndef make(): return torch.nn.ReLU(), (torch.randn(2, 3),)\n")
    succeeds(f"{source}:make", "-o", tmp_path / "m.tflite")
    assert outputs_of(tmp_path / "m.tflite", [[-1.0, 2, 3]] * 2).tolist() == [[0, 2, 3]] * 2


def test_keyword_inputs_and_samples_from_files(tmp_path):
    np.save(tmp_path / "f.npy", np.array([1, -2, 3], np.float32))
    inputs = ["--input", "2x3", "--input", f"factor={tmp_path / 'f.npy'}"]
    succeeds(f"{HERE}:scale", *inputs, "-o", tmp_path / "m.tflite")
    x = np.ones((2, 3), np.float32)
    got = outputs_of(tmp_path / "m.tflite", x, factor=np.array([1, 2, 4], np.float32))
    assert got["scaled"].tolist() == [[1, 2, 4]] * 2


def test_dynamic_sizes(tmp_path):
    path = tmp_path / "m.tflite"
    options = ["--input", "1x6", "--dynamic", "0.0=batch:1:64", "-o", path]
    record = reports(f"{HERE}:dense", *options)
    assert record["inputs"] == ["args_0 float32[?,6]"]
    module, _ = sample_models.dense()
    for rows in (3, 1):
        x = torch.randn(rows, 6)
        want = module(x).detach().numpy()
        np.testing.assert_allclose(outputs_of(path, x), want, rtol=1e-5, atol=1e-6)


def test_dynamic_sizes_of_keywords(tmp_path):
    options = ["--dynamic", "args_0.0=rows", "--dynamic", "factor.0=n", "--dynamic", "args_0.1=n"]
    record = reports(f"{HERE}:scale", *options, "-o", tmp_path / "m.tflite")
    assert record["inputs"] == ["args_0 float32[?,?]", "factor float32[?]"]


def test_channel_last(tmp_path):
    path = tmp_path / "m.tflite"
    record = reports(f"{HERE}:image", "--nhwc-inputs", "0", "--nhwc-outputs", "0", "-o", path)
    assert record["inputs"] == ["args_0 float32[1,9,7,3]"]
    assert record["outputs"] == ["output_0 float32[1,7,5,4]"]
    assert reports("inspect", path, "--no-delegation")["ops"] == {"CONV_2D": 1}


def test_a_pt2_file_is_a_source(tmp_path):
    module, args = sample_models.dense()
    dynamic = ({0: torch.export.Dim("batch")},)
    torch.export.save(torch.export.export(module, args, dynamic_shapes=dynamic), tmp_path / "m.pt2")
    record = reports(tmp_path / "m.pt2", "-o", tmp_path / "m.tflite")
    assert record["inputs"] == ["args_0 float32[?,6]"]
    assert record["verified"][0]["relative_error"] < 1e-5
    agreed = reports("verify", tmp_path / "m.tflite", "--against", tmp_path / "m.pt2")
    assert agreed["agrees"]
    message = fails(2, tmp_path / "m.pt2", "-o", "x", "--input", "1x2")
    assert "has its inputs" in message
    assert "dynamic" in fails(2, tmp_path / "m.pt2", "-o", tmp_path / "x", "--dynamic", "0.0=b")


def test_weights_are_loaded(tmp_path):
    module, args = sample_models.dense()
    state = {k: v + 1 for k, v in module.state_dict().items()}
    torch.save(state, tmp_path / "w.pt")
    path = tmp_path / "m.tflite"
    succeeds(f"{HERE}:dense", "--weights", tmp_path / "w.pt", "-o", path, "-q")
    module.load_state_dict(state)
    want = module(*args).detach().numpy()
    np.testing.assert_allclose(outputs_of(path, *args), want, rtol=1e-5, atol=1e-5)
    torch.save({"other": torch.ones(1)}, tmp_path / "w.pt")
    message = fails(1, f"{HERE}:dense", "--weights", tmp_path / "w.pt", "-o", path)
    assert "no state dict of this module" in message


def test_a_model_of_torchvision(tmp_path):
    pytest.importorskip("torchvision")
    options = ["--input", "1x3x64x64", "--no-verify", "-o", tmp_path / "m.tflite"]
    record = reports("torchvision:squeezenet1_1", *options)
    assert record["outputs"] == ["output_0 float32[1,1000]"]
    assert "no model 'squeeze'" in fails(2, "torchvision:squeeze", "-o", tmp_path / "x")


def test_a_model_that_differs_is_not_written(tmp_path):
    path = tmp_path / "m.tflite"
    message = fails(1, f"{HERE}:wrong", "-o", path)
    assert "differ from eager PyTorch" in message
    assert not os.listdir(tmp_path)
    succeeds(f"{HERE}:wrong", "-o", path, "--no-verify", "-q")


def test_an_op_without_lowering_is_named(tmp_path):
    message = fails(1, f"{HERE}:unsupported", "-o", tmp_path / "m.tflite")
    assert "aten.hash_tensor" in message
    assert "sample_models.py" in message
    assert not os.listdir(tmp_path)


BAD_SOURCES = [
    (2, "nonsense", "neither a file nor one of"),
    (2, "no_such_package.module:name", "no module 'no_such_package'"),
    (2, "tests.cli.no_such_module:name", "no module 'tests.cli.no_such_module'"),
    (2, f"{HERE}:nothing", "has no 'nothing'"),
    (2, f"{HERE}:no_model", "not int"),
    (1, f"{HERE}:failing", "RuntimeError: no luck"),
    (2, "missing.pt2", "no file missing.pt2"),
    (2, "missing.py:make", "no file missing.py"),
    (2, "torchvision:", "neither a file"),
]


@pytest.mark.parametrize(("code", "source", "message"), BAD_SOURCES, ids=lambda v: str(v)[:40])
def test_bad_sources(tmp_path, code, source, message):
    assert message in fails(code, source, "-o", tmp_path / "m.tflite")
    assert not os.listdir(tmp_path)


BAD_OPTIONS = [
    (["--input", "2xax3"], "'2xax3' is not [NAME=]SHAPE"),
    (["--input", "1x3:float33"], "no dtype of PyTorch: 'float33'"),
    (["--input", "a=b=1x2"], "is not [NAME=]SHAPE"),
    (["--input", "x=1", "--input", "x=2"], "two sample inputs have one name"),
    (["--input", "none.npy"], "no file none.npy"),
    (["--dynamic", "0=b"], "INPUT.AXIS=NAME"),
    (["--dynamic", "3.0=b"], "no input '3'; the inputs are: args_0"),
    (["--dynamic", "0.2=b"], "no axis 2; the input has 2 axes"),
    (["--dynamic", "0.0=b:9:3"], "the bounds of b are empty"),
    (["--nhwc-inputs", "x"], "takes numbers"),
    (["--nhwc-inputs", "0"], "input 0 is no tensor of rank 3"),
    (["--weights", "none.pt"], "no file none.pt"),
    (["--pretrained"], "pretrained weights are for"),
    (["--tolerance", "-1"], "-1"),
    (["--bogus"], "--bogus"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=lambda v: str(v)[:40])
def test_bad_options(tmp_path, options, message):
    assert message in fails(2, f"{HERE}:dense", "-o", tmp_path / "m.tflite", *options)
    assert not os.listdir(tmp_path)


def test_missing_arguments():
    assert "SOURCE" in fails(2, "-o", "x.tflite")
    assert "--output" in fails(2, f"{HERE}:dense")


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"", "empty.pt2"), (b"PK\x03\x04" + bytes(50), "zip.pt2"), (b"TFL3" * 9, "foreign.pt2")],
)
def test_damaged_programs(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    message = fails(1, tmp_path / name, "-o", tmp_path / "m.tflite")
    assert f"{name} is not a program" in message
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(
    ("output", "code"), [("/dev/full", 1), ("/proc/m.tflite", 1), ("file/m.tflite", 1), (".", 2)]
)
def test_outputs_that_cannot_be_written(tmp_path, output, code):
    (tmp_path / "file").write_bytes(b"")
    fails(code, f"{HERE}:dense", "-o", tmp_path / output)
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("litert_torch.files.os.fsync", full)
    message = fails(1, f"{HERE}:dense", "-o", tmp_path / "m.tflite", "--no-verify")
    assert "No space left on device" in message
    assert not os.listdir(tmp_path)


def test_debug_shows_the_traceback(tmp_path):
    command = [sys.executable, "-c", "from litert_torch.cli import main; main()"]
    command += [f"{HERE}:failing", "-o", str(tmp_path / "m"), "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().endswith("RuntimeError: no luck")


def test_json_is_alone_on_stdout(tmp_path):
    command = [sys.executable, "-c", "from litert_torch.cli import main; main()"]
    command += [f"{HERE}:dense", "-o", str(tmp_path / "m"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["output"] == str(tmp_path / "m")
    assert done.stderr == ""
