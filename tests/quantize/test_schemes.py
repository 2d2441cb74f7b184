"""Every scheme on every kind of op, run with XNNPACK and without."""

import numpy as np
import pytest
from torch import nn

from litert_torch.converter.dtypes import DType
from litert_torch.quantize.numerics import sqnr
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.schemes import int2, int4, int8
from tests.quantize.small_models import MODELS, converted, eager, model, run, samples, seeded

pytestmark = pytest.mark.filterwarnings("ignore")

LEAST = {"wi8": 36, "wi4": 17, "wi2": 8, "float16": 65}
"""dB of signal to noise that weights of so many bits leave."""


def bound(recipe):
    return next(db for key, db in LEAST.items() if key in recipe)


@pytest.mark.parametrize("recipe", Recipe.names())
@pytest.mark.parametrize("name", MODELS)
def test_the_file_computes_nearly_as_the_float_model(name, recipe):
    module, x = model(name)
    calibration = [(x,)] if recipe.startswith("static") else None
    _, content = converted(module, x, Recipe.named(recipe, calibration=calibration))
    want = eager(module, x)
    for delegates in (True, False):
        assert sqnr(want, run(content, x, delegates=delegates)) > bound(recipe)


@pytest.mark.parametrize(
    ("weights", "least"), [(int8("tensor"), 38), (int4(per="tensor"), 18), (int2("tensor"), 7)]
)
def test_one_scale_for_a_tensor(weights, least):
    module, x = model("linear")
    graph, content = converted(module, x, Recipe().rule(weights=weights))
    assert graph.ops[-1].inputs[1].quantization.is_per_tensor
    assert sqnr(eager(module, x), run(content, x)) > least


@pytest.mark.parametrize("block", [32, 64, 128])
def test_blocks_are_written_as_the_schema_says(block):
    module, x = model("linear")
    graph, content = converted(module, x, Recipe().rule(weights=int4(block=block)))
    w = graph.ops[-1].inputs[1]
    assert w.dtype == DType.INT4
    assert w.quantization.scales.shape == (40, 128 // block)
    want, got = eager(module, x), run(content, x, delegates=False)
    assert sqnr(want, got) > 20


@pytest.mark.parametrize(
    "recipe", ["dynamic_wi8_afp32", "dynamic_wi4_afp32", "weight_only_wi8_afp32"]
)
def test_integers_are_what_the_scales_say(recipe):
    module, x = model("linear3d")
    graph, _ = converted(module, x, Recipe.named(recipe))
    w = graph.ops[0].inputs[0 if graph.ops[0].kind == "DEQUANTIZE" else 1]
    restored = w.read() * w.quantization.scales[:, None]
    step = w.quantization.scales[:, None]
    clipped = np.abs(w.read()) == np.abs(w.read()).max(1, keepdims=True)
    away = np.abs(restored - module.weight.detach().numpy())
    assert (away[~clipped] <= np.broadcast_to(step, away.shape)[~clipped] * 0.5001).all()


def test_tied_weights_are_one_buffer():
    module, x = model("tied")
    graph, content = converted(module, x, Recipe.named("dynamic_wi8_afp32"))
    table = next(op for op in graph.ops if op.kind == "EMBEDDING_LOOKUP").inputs[1]
    weight = next(op for op in graph.ops if op.kind == "FULLY_CONNECTED").inputs[1]
    assert table.const.key == weight.const.key
    assert len(content) < 50 * 32 * 2 + 2000


def test_depthwise_weights_are_halved_where_floats_meet_them():
    module, x = model("depthwise")
    graph, _ = converted(module, x, Recipe.named("dynamic_wi8_afp32"))
    (op,) = (op for op in graph.ops if op.kind == "DEPTHWISE_CONV_2D")
    assert op.inputs[1].producer.inputs[0].dtype == DType.FLOAT16


def test_rows_that_do_not_end_with_a_byte_have_eight_bits():
    recipe = Recipe.named("dynamic_wi4_afp32")
    module, x = seeded(nn.Linear, 33, 8), samples(2, 33)
    graph, _ = converted(module, x, recipe)
    assert graph.ops[-1].inputs[1].dtype == DType.INT8
    assert "do not end with a byte" in recipe.report.entries[-1].note


def test_float16_cannot_hold_large_numbers():
    module = seeded(nn.Linear, 4, 3)
    module.weight.data[0, 0] = 1e6
    x = model("linear")[1][:, :4]
    recipe = Recipe.named("float16")
    _, content = converted(module, x, recipe)
    assert recipe.report.left_in_float[0].note == "its numbers are beyond float16's range"
    np.testing.assert_allclose(run(content, x), eager(module, x), rtol=1e-5)


def test_small_filters_keep_half_precision():
    module, x = seeded(nn.Conv2d, 3, 16, 3), samples(1, 3, 9, 8)
    graph, content = converted(module, x, Recipe.named("dynamic_wi8_afp32"))
    (op,) = (op for op in graph.ops if op.kind == "CONV_2D")
    assert op.inputs[1].producer.inputs[0].dtype == DType.FLOAT16
    assert sqnr(eager(module, x), run(content, x)) > 60
