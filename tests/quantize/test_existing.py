"""Quantizing .tflite files that are there already."""

import zipfile

import numpy as np
import pytest
from torch import nn

import litert_torch
from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.quantize import quantize_file
from litert_torch.quantize.numerics import sqnr
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.schemes import float32
from litert_torch.runtime_bindings import LiteRTModel
from tests.quantize.small_models import Blocks, Mlp, eager, samples, seeded
from tests.runtime_bindings import small_files as small

pytestmark = pytest.mark.filterwarnings("ignore")

IMAGES = [samples(1, 3, 16, 18, seed=i) for i in range(4)]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    path = tmp_path_factory.mktemp("float") / "blocks.tflite"
    litert_torch.convert(seeded(Blocks), (IMAGES[0],)).export(path)
    return path


def made(path, recipe, tmp_path):
    return quantize_file(path, tmp_path / "q.tflite", recipe)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("dynamic_wi8_afp32", 30),
        ("weight_only_wi8_afp32", 30),
        ("float16", 50),
        ("static_wi8_ai8", 22),
        ("static_wi8_ai16", 30),
    ],
)
def test_a_file_is_quantized_as_its_module_is(blocks, tmp_path, name, least):
    data = IMAGES if name.startswith("static") else None
    model = made(blocks, Recipe.named(name, calibration=data), tmp_path)
    recipe = Recipe.named(name, calibration=data)
    same = litert_torch.convert(seeded(Blocks), (IMAGES[0],), quant_config=recipe)
    for x in IMAGES:
        np.testing.assert_array_equal(model(x), same(x))
    assert len(model.model_content()) == pytest.approx(len(same.model_content()), abs=2000)
    assert sqnr(eager(seeded(Blocks), IMAGES[1]), model(IMAGES[1])) > least


def test_without_a_recipe_it_computes_the_same(blocks, tmp_path):
    model = made(blocks, None, tmp_path)
    np.testing.assert_array_equal(model(IMAGES[0]), LiteRTModel.load(blocks)(IMAGES[0]))


def test_it_may_replace_its_source(tmp_path):
    path = tmp_path / "m.tflite"
    x = samples(3, 64)
    litert_torch.convert(seeded(Mlp), (x,)).export(path)
    before = path.stat().st_size
    model = quantize_file(path, path, Recipe.named("dynamic_wi8_afp32"))
    assert path.stat().st_size < before / 2
    assert sqnr(eager(seeded(Mlp), x), model(x)) > 30


def test_rules_select_modules_by_the_names_in_the_file(tmp_path):
    path, x = tmp_path / "m.tflite", samples(3, 64)
    litert_torch.convert(seeded(Mlp), (x,)).export(path)
    recipe = Recipe.named("dynamic_wi8_afp32").rule("layers.1", weights=float32())
    made(path, recipe, tmp_path)
    assert [e.form for e in recipe.report.entries if e.op == "FULLY_CONNECTED"] == [
        "dynamic",
        "float",
        "dynamic",
    ]


@pytest.mark.parametrize("stored", ["float16", "weight_only_wi8_afp32"])
def test_stored_small_and_made_float_counts_as_float(tmp_path, stored):
    path, x = tmp_path / "m.tflite", samples(3, 64)
    litert_torch.convert(seeded(Mlp), (x,), quant_config=Recipe.named(stored)).export(path)
    recipe = Recipe().rule("layers.0")
    model = made(path, recipe, tmp_path)
    forms = [e.form for e in recipe.report.entries if e.op == "FULLY_CONNECTED"]
    assert forms == ["dynamic", "float", "float"]
    assert (tmp_path / "q.tflite").stat().st_size <= path.stat().st_size + 500
    assert sqnr(eager(seeded(Mlp), x), model(x)) > 30


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)

    def forward(self, x):
        return self.body(x)


def test_signatures_share_their_weights_and_have_their_own_calibration(tmp_path):
    module, path = seeded(Two), tmp_path / "m.tflite"
    a, b = samples(1, 64), samples(5, 64)
    litert_torch.signature("one", module, (a,)).signature("five", module, (b,)).convert().export(
        path
    )
    recipe = Recipe.static(calibration={"one": [a], "five": [b]})
    model = made(path, recipe, tmp_path)
    assert sqnr(eager(module, a), model(a, signature_name="one")) > 30
    assert sqnr(eager(module, b), model(b, signature_name="five")) > 30
    assert path.stat().st_size > 64 * 64 * 4
    with pytest.raises(InvalidInputError, match="none for signature 'five'"):
        made(path, Recipe.static(calibration={"one": [a]}), tmp_path)


def test_state_stays_state(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(small.content(*small.counter()))
    model = made(path, Recipe.named("dynamic_wi8_afp32"), tmp_path)
    assert set(model.signatures) == set(LiteRTModel.load(path).signatures)


def test_files_packed_behind_the_model_stay(blocks, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(blocks.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    model = made(path, Recipe.named("dynamic_wi8_afp32"), tmp_path)
    with zipfile.ZipFile(tmp_path / "q.tflite") as archive:
        assert archive.read("labels.txt") == b"cat\ndog\n"
    assert sqnr(eager(seeded(Blocks), IMAGES[1]), model(IMAGES[1])) > 30


def test_what_is_no_float_model_is_named(blocks, tmp_path):
    target = tmp_path / "q.tflite"
    (tmp_path / "noise.tflite").write_bytes(np.random.default_rng(0).bytes(1000))
    with pytest.raises(InvalidModelFileError, match="is not a LiteRT model"):
        quantize_file(tmp_path / "noise.tflite", target)
    with pytest.raises(InvalidModelFileError, match="No such file"):
        quantize_file(tmp_path / "none.tflite", target)
    (tmp_path / "short.tflite").write_bytes(blocks.read_bytes()[:-3000])
    with pytest.raises(InvalidModelFileError, match="truncated"):
        quantize_file(tmp_path / "short.tflite", target)
    whole = tmp_path / "whole.tflite"
    static = Recipe.static(calibration=IMAGES).with_interface("int8", "int8")
    quantize_file(blocks, whole, static)
    with pytest.raises(InvalidInputError, match="it is quantized already"):
        quantize_file(whole, target, Recipe.named("dynamic_wi8_afp32"))
    assert not target.exists()


def test_the_report_tells_where_the_error_enters(blocks, tmp_path):
    recipe = Recipe.static(calibration=IMAGES)
    made(blocks, recipe, tmp_path)
    errors = list(recipe.report.layer_errors(IMAGES[0]))
    assert [e.op for e in errors][-1] == "SOFTMAX"
    assert all(e.sqnr > 10 and e.added >= 0 for e in errors)
    want = eager(seeded(Blocks), IMAGES[0])
    got = LiteRTModel.load(tmp_path / "q.tflite")(IMAGES[0])
    assert errors[-1].sqnr == pytest.approx(sqnr(want, got), abs=0.1)


def test_the_report_of_dynamic_recipes_has_all_results_too(blocks, tmp_path):
    recipe = Recipe.named("dynamic_wi8_afp32")
    made(blocks, recipe, tmp_path)
    errors = list(recipe.report.layer_errors(IMAGES[0]))
    assert max(e.added for e in errors) > 0
    assert errors[-1].sqnr > 30
