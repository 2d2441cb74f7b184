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
