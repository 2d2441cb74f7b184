"""Inputs and outputs of 8 bits, and normalization in the input's scale."""

import numpy as np
import pytest
import torch
from torch import nn

import litert_torch
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.numerics import sqnr
from litert_torch.quantize.recipe import Recipe
from litert_torch.runtime_bindings import LiteRTModel
from tests.quantize.small_models import Blocks, Mlp, Tied, converted, eager, samples, seeded

pytestmark = pytest.mark.filterwarnings("ignore")

MEAN, STD = (120.0, 110.5, 99.0), (60.0, 55.0, 70.5)


def pixels(seed=0):
    rng = np.random.default_rng(seed)
    smooth = rng.integers(0, 256, (1, 3, 4, 6)).repeat(4, 2).repeat(3, 3)
    return np.clip(smooth + rng.integers(-20, 20, smooth.shape), 0, 255).astype(np.uint8)


def normalized(x, mean, std):
    mean, std = (np.reshape(v, (1, -1, 1, 1)) for v in (mean, std))
    return ((x - mean) / std).astype(np.float32)


def given(x, kind):
    return x if kind == "uint8" else (x.astype(np.int16) - 128).astype(np.int8)


def real(model, outputs):
    """What integers stand for, by what the file says of its output."""
    details = model._get_interpreter().get_output_details()[0]
    scale, zero_point = details["quantization"]
    assert details["dtype"] == outputs.dtype
    return (outputs.astype(np.float32) - zero_point) * scale


def made(recipe, mean, std):
    module = seeded(Blocks)
    calibration = [normalized(pixels(i), mean, std) for i in range(6)]
    sample = torch.from_numpy(calibration[0])
    recipe = recipe.calibrated(calibration)
    graph, content = converted(module, sample, recipe)
    return graph, LiteRTModel(content), recipe


def check(recipe, kind, mean, std, least, outputs="int8"):
    graph, model, recipe = made(recipe.with_interface(kind, outputs, mean=mean, std=std), mean, std)
    assert (graph.inputs[0].dtype, graph.outputs[0].dtype) == (kind, outputs)
    for seed in range(3):
        x = pixels(seed)
        got = model(given(x, kind))
        got = got if outputs == "float32" else real(model, got)
        want = eager(seeded(Blocks), torch.from_numpy(normalized(x, mean, std)))
        assert sqnr(want, got) > least
    return graph, recipe


def static():
    return Recipe.static(calibration=[])


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_normalization_is_the_scale_of_the_input(kind):
    graph, recipe = check(static(), kind, 127.0, 64.0, 22)
    q = graph.inputs[0].quantization
    assert q.scales.item() == pytest.approx(1 / 64)
    assert q.zero_points.item() == 127 - (0 if kind == "uint8" else 128)
    assert [op.kind for op in graph.ops].count("QUANTIZE") == (kind == "uint8")
    assert "DEQUANTIZE" not in [op.kind for op in graph.ops]
    assert recipe.report.notes == []


def test_a_mean_between_pixels_is_rounded_and_said():
    _, recipe = check(static(), "uint8", 127.5, 127.5, 22, "uint8")
    assert recipe.report.notes == [
        "input args_0: mean 127.5 counts as 128, as zero points are whole"
    ]


def test_a_scale_a_channel_is_computed_exactly():
    graph, recipe = check(static(), "uint8", MEAN, STD, 22)
    assert [op.kind for op in graph.ops][:4] == ["DEQUANTIZE", "MUL", "ADD", "QUANTIZE"]
    assert "differ by channel" in recipe.report.notes[0]


@pytest.mark.parametrize(("mean", "std"), [(127.0, 64.0), (MEAN, STD)])
def test_models_that_compute_in_float_take_pixels_too(mean, std):
    graph, _ = check(Recipe.named("dynamic_wi8_afp32"), "uint8", mean, std, 25, "uint8")
    assert graph.ops[0].kind == "DEQUANTIZE"
    assert graph.ops[-1].kind == "QUANTIZE"


def test_int16_activations_have_outputs_of_8_bits():
    recipe = Recipe.static("wi8_ai16", calibration=[])
    check(recipe, "uint8", 127.0, 64.0, 25, "int8")


def test_without_normalization_calibration_gives_the_scale():
    module, x = seeded(Mlp), samples(5, 64)
    for recipe in (static(), Recipe.named("dynamic_wi8_afp32")):
        graph, content = converted(module, x, recipe.calibrated([x]).with_interface("int8", "int8"))
        model, q = LiteRTModel(content), graph.inputs[0].quantization
        integers = np.clip(np.rint(x / q.scales) + q.zero_points, -128, 127).numpy()
        got = real(model, model(integers.astype(np.int8)))
        assert sqnr(eager(module, x), got) > 25


def test_the_report_still_compares_the_float_models():
    _, _, recipe = made(static().with_interface("uint8", "uint8", mean=127, std=64), 127, 64)
    errors = list(recipe.report.activation_errors(normalized(pixels(), 127, 64)))
    assert min(e.sqnr for e in errors) > 15


def test_one_input_that_two_ops_read():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.a(x), torch.sin(x), self.b(x)

    module, x = seeded(Both), samples(4, 8)
    recipe = Recipe.static(calibration=[x]).with_interface("int8")
    model = litert_torch.convert(module, (x,), quant_config=recipe)
    q = recipe.report.pairs[-1]
    spec = model.signatures["serving_default"].inputs[0]
    assert (spec.dtype, q.before.inputs[0].dtype) == ("int8", "float32")
    details = model._get_interpreter().get_input_details()[0]
    scale, zero_point = details["quantization"]
    got = model((np.clip(np.rint(x / scale) + zero_point, -128, 127)).numpy().astype(np.int8))
    for want, have in zip(module(x), got, strict=True):
        assert sqnr(want.detach().numpy(), have) > 30


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: r.with_interface("int4"), "not 'int4'"),
        (lambda r: r.with_interface("uint8", mean=1), "belong together"),
        (lambda r: r.with_interface(mean=1, std=1), "for inputs of int8 or uint8"),
        (lambda r: r.with_interface("uint8", mean=[1, 2], std=[1, 2, 3]), "2 means, but 3 stds"),
        (lambda r: r.with_interface("uint8", mean=0, std=0), "std must be above 0"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make(Recipe.named("dynamic_wi8_afp32"))


@pytest.mark.parametrize(
    ("module", "x", "interface", "message"),
    [
        (Mlp, samples(2, 64), {"inputs": "uint8"}, "inputs of 8 bits need a scale"),
        (Mlp, samples(2, 64), {"outputs": "int8"}, "outputs of 8 bits need a scale"),
        (Mlp, samples(2, 64), {"inputs": "int8", "mean": MEAN, "std": STD}, "3 means do not fit"),
        (Mlp, samples(2, 64), {"inputs": "int8", "mean": 300, "std": 1}, "no pixel of 0..255"),
        (Tied, torch.arange(14).reshape(2, 7), {"inputs": "int8"}, "no float32 input"),
    ],
)
def test_what_does_not_fit_the_model_is_named(module, x, interface, message):
    recipe = Recipe.named("dynamic_wi8_afp32").with_interface(**interface)
    with pytest.raises(InvalidInputError, match=message):
        converted(seeded(module), x, recipe)


def test_json_comes_back():
    recipe = Recipe.named("dynamic_wi8_afp32").with_interface("uint8", "int8", mean=MEAN, std=2)
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.interface.std == (2.0, 2.0, 2.0)
    with pytest.raises(InvalidInputError, match="unknown fields"):
        Recipe.from_json(recipe.to_json().replace('"std"', '"sdt"'))
