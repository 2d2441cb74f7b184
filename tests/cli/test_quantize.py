"""litert-convert --quantize, in a process of its own as users run it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from litert_torch.cli import main
from litert_torch.quantize.recipe import Recipe

pytestmark = pytest.mark.filterwarnings("ignore")

SOURCE = "tests.quantize.small_models:Mlp"


def convert(*options):
    return CliRunner().invoke(main, ["convert", SOURCE, "--input", "5x64", *options])


def test_a_named_recipe(tmp_path):
    path = tmp_path / "m.tflite"
    result = convert("-o", str(path), "--quantize", "dynamic_wi8_afp32", "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert path.stat().st_size < 3 * 64 * 64 * 2
    assert record["quantized"]["bytes_after"] < record["quantized"]["bytes_before"] / 3
    assert record["verified"][0]["snr_db"] > 35


def test_a_recipe_file_and_calibration_data(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    for i in range(3):
        np.savez(data / f"{i}.npz", args_0=rng.normal(size=(5, 64)).astype(np.float32))
    file = tmp_path / "recipe.json"
    file.write_text(Recipe().rule(activations="int8").to_json())
    options = ("-o", str(tmp_path / "m.tflite"), "--quantize", str(file), "--calibrate", str(data))
    result = convert(*options)
    assert result.exit_code == 0, result.output
    assert "quantized weights: 0.05 MB to 0.01 MB" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quantize", "dynamic_wi8"], "no recipe 'dynamic_wi8'"),
        (["--quantize", "static_wi8_ai8"], "needs calibration data"),
        (["--quantize", "none.json"], "No such file"),
        (["--quantize", "static_wi8_ai8", "--calibrate", "nowhere"], "nowhere is no .npy"),
        (["--calibrate", "nowhere"], "--calibrate is for --quantize"),
    ],
)
def test_mistakes_are_usage_errors(options, message, tmp_path):
    result = convert("-o", str(tmp_path / "m.tflite"), *options)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "m.tflite").exists()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Photos, so to speak, and a float file of a model for them."""
    import litert_torch
    from tests.quantize.small_models import Blocks, samples, seeded

    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for i in range(4):
        pixels = rng.integers(0, 256, (5, 6, 3), np.uint8).repeat(5, 0).repeat(5, 1)
        image.fromarray(pixels).save(folder / f"{i}.png")
    path = folder / "float.tflite"
    litert_torch.convert(seeded(Blocks), (samples(1, 3, 16, 18),)).export(path)
    return folder


def quantize(*options):
    return CliRunner().invoke(main, ["quantize", *map(str, options)])


def test_a_file_is_quantized_with_a_report(images, tmp_path):
    target, report = tmp_path / "q.tflite", tmp_path / "report.html"
    options = [
        "--quantize",
        "static_wi8_ai8",
        "--calibrate",
        images,
        "--mean",
        "127",
        "--std",
        "64",
    ]
    options += ["--input-type", "uint8", "--output-type", "int8", "--report", report]
    result = quantize(images / "float.tflite", "-o", target, *options)
    assert result.exit_code == 0, result.output
    assert "report:" in result.output
    from litert_torch.runtime_bindings import LiteRTModel

    spec = LiteRTModel.load(target).signatures["serving_default"]
    assert [t.dtype for t in (*spec.inputs, *spec.outputs)] == ["uint8", "int8"]
    page = report.read_text()
    for part in ("Where the error enters", "<svg", "SOFTMAX", "first batch of the calibration"):
        assert part in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_report_as_json(images, tmp_path):
    target, report = tmp_path / "q.tflite", tmp_path / "report.json"
    options = ["--quantize", "dynamic_wi8_afp32", "--report", report, "--json"]
    result = quantize(images / "float.tflite", "-o", target, *options)
    assert result.exit_code == 0, result.output
    record, found = json.loads(result.stdout), json.loads(report.read_text())
    assert record["bytes"] == target.stat().st_size < record["bytes_before"]
    assert found["layer_errors"][-1]["sqnr"] > 30
    assert {"op", "added", "largest", "cosine"} <= found["layer_errors"][-1].keys()
    assert "random inputs" in found["notes"][-1]


def test_a_model_is_converted_with_images_and_a_report(images, tmp_path):
    target, report = tmp_path / "m.tflite", tmp_path / "r.html"
    options = ["--input", "1x3x16x18", "--quantize", "static_wi8_ai8", "--calibrate", str(images)]
    options += ["--mean", "120,110,100", "--std", "60", "--calibrate-limit", "2"]
    options += ["--input-type", "int8", "--report", str(report)]
    arguments = ["convert", "tests.quantize.small_models:Blocks", "-o", str(target), *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "not compared with PyTorch" in result.output
    assert "differ by channel" in result.output
    assert report.exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--report", "r.html"], 2, "--report is for --quantize"),
        (["--input-type", "int8"], 2, "--input-type is for --quantize"),
        (["--quantize", "float16", "--report", "r.pdf"], 2, "neither .html nor .json"),
        (["--quantize", "float16", "--mean", "1,x"], 2, "'1,x' is no number"),
        (["--quantize", "dynamic_wi8_afp32", "--input-type", "int8"], 1, "need a scale"),
    ],
)
def test_mistakes_of_quantize_are_named(images, tmp_path, options, code, message):
    target = tmp_path / "q.tflite"
    result = quantize(images / "float.tflite", "-o", target, *options)
    assert (result.exit_code, target.exists()) == (code, False), result.output
    assert message in result.output


def test_no_model_is_an_error_of_one_line(tmp_path):
    (tmp_path / "m.tflite").write_bytes(b"PK\x03\x04 and so on")
    result = quantize(tmp_path / "m.tflite", "-o", tmp_path / "q.tflite")
    assert result.exit_code == 1
    assert result.output.startswith("error: ")
    assert "it looks like a zip archive" in result.output
