import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch.converter.dtypes import DType
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.schemes import Weights, float32, int4, int8
from tests.quantize.small_models import Mlp, converted, eager, run, samples, seeded

pytestmark = pytest.mark.filterwarnings("ignore")

X = samples(5, 64)


def mlp():
    return seeded(Mlp)


def types(recipe):
    graph, _ = converted(mlp(), X, recipe)
    return [op.inputs[1].dtype for op in graph.ops if op.kind == "FULLY_CONNECTED"]


def test_the_last_rule_that_matches_counts():
    recipe = Recipe().rule(weights=int8()).rule(module="layers.1", weights=int4())
    assert types(recipe) == [DType.INT8, DType.INT4, DType.INT8]
    assert types(recipe.rule(weights=float32())) == [DType.FLOAT32] * 3


@pytest.mark.parametrize(
    "pattern", ["layers.[02]", re.compile(r"layers\.(0|2)$"), "regex:layers.[02]"]
)
def test_rules_select_modules(pattern):
    got = types(Recipe().rule(module=pattern, weights=int8()))
    assert got == [DType.INT8, DType.FLOAT32, DType.INT8]


def test_a_module_is_also_what_is_inside():
    assert types(Recipe().rule(module="layers", weights=int8())) == [DType.INT8] * 3


def test_rules_select_names_and_sizes():
    assert types(Recipe().rule(name="*fully_connected_1")) == ["float32", "int8", "float32"]
    assert types(Recipe().rule(min_size=64 * 64 + 1)) == ["float32"] * 3


def test_a_rule_that_matches_nothing_names_what_comes_near():
    with pytest.raises(InvalidInputError, match=r"module='layer.0' matches nothing; near: layers"):
        converted(mlp(), X, Recipe().rule(module="layer.0"))
    converted(mlp(), X, Recipe().rule(module="layer.0", optional=True))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recipe.named("dynamic_wi8"), "no recipe 'dynamic_wi8'; there is: dynamic_wi8_afp"),
        (lambda: Recipe().rule(op="FULLY_CONECTED"), "there is: FULLY_CONNECTED"),
        (lambda: Recipe().rule(algorithm="gptk"), "there is: gptq"),
        (lambda: Recipe().rule(module="regex:("), "no regular expression"),
        (lambda: int4(block=48), "blocks of 32, 64, 128, 256"),
        (lambda: Weights(DType.INT8, block=32), "int8 with blocks"),
        (lambda: Recipe.named("static_wi8_ai8"), "needs calibration data"),
        (lambda: Recipe(observer="max"), "no observer 'max'"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        make()


def test_json_comes_back():
    recipe = (
        Recipe.named("dynamic_wi4b32_afp32")
        .rule(module=re.compile("a.b"), name="x*", min_size=7, algorithm="octav", optional=True)
        .rule(op="ADD", activations="int16")
    )
    assert Recipe.from_json(recipe.to_json()) == recipe
    other = replace(recipe, observer="mse", least_sqnr=-np.inf).smoothed(0.4)
    assert Recipe.from_json(other.to_json()) == other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "format"),
        ('[{"regex": ".*"}]', "rule 0"),
        ('[{"regex": "", "operation": "*", "algorithm_key": "MAGIC"}]', "'MAGIC' is not known"),
        ('{"format": "litert_torch recipe", "version": 9}', "version 9"),
        (
            '{"format": "litert_torch recipe", "version": 1, "rules": [{"x": 1}]}',
            "unknown fields: x",
        ),
    ],
)
def test_other_json_is_refused(text, message):
    with pytest.raises(InvalidInputError, match=message):
        Recipe.from_json(text)


def foreign(**op_config):
    weights = {"num_bits": 8, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
    return {
        "regex": ".*",
        "operation": "*",
        "algorithm_key": "min_max_uniform_quantize",
        "op_config": {"weight_tensor_config": weights, **op_config},
    }


@pytest.mark.parametrize(
    ("op_config", "same"),
    [
        ({"compute_precision": "INTEGER", "explicit_dequantize": False}, ("dynamic", None)),
        ({"compute_precision": "FLOAT", "explicit_dequantize": True}, ("weight_only", None)),
        (
            {"compute_precision": "INTEGER", "activation_tensor_config": {"num_bits": 16}},
            ("static", DType.INT16),
        ),
    ],
)
def test_upstreams_recipes_are_read(op_config, same):
    (rule,) = Recipe.from_json(json.dumps([foreign(**op_config)])).rules
    assert (rule.compute, rule.activations) == same
    assert rule.weights == int8()
    assert rule.algorithm == "min_max"


def test_upstreams_exceptions_and_blocks():
    blocks = {"num_bits": 4, "granularity": "BLOCKWISE_32", "dtype": "INT"}
    skip = {"regex": "layers.1", "operation": "FULLY_CONNECTED", "algorithm_key": "no_quantize"}
    text = json.dumps([foreign(weight_tensor_config=blocks, compute_precision="INTEGER"), skip])
    recipe = Recipe.from_json(text)
    assert recipe.rules[0].weights == int4(block=32)
    assert types(recipe) == [DType.INT4, DType.FLOAT32, DType.INT4]


def test_convert_takes_a_recipe_and_the_report_tells():
    module = mlp()
    recipe = Recipe.named("dynamic_wi8_afp32").rule(module="layers.1", weights=float32())
    model = litert_torch.convert(module, (X,), quant_config=recipe)
    np.testing.assert_allclose(model(X), eager(module, X), atol=0.02)
    report = recipe.report
    assert report.bytes_before == 2 * 64 * 64 * 4
    assert report.bytes_after == 2 * (64 * 64 + 64 * 12)
    assert [e.note for e in report.left_in_float] == ["a rule leaves it in float"]
    errors = list(report.weight_errors())
    assert [e.name for e in errors] == ["layers.0/fully_connected_0", "layers.2/fully_connected_2"]
    assert all(40 < e.sqnr < 50 and e.cosine > 0.9999 for e in errors)
    assert report.table().row_count == 3
    assert json.loads(report.to_json())["entries"][0]["weights"] == "int8 per channel"


def test_gptq_comes_nearer_than_rounding():
    module = mlp()
    x = samples(400, 6) @ samples(6, 64, seed=2)

    def away(algorithm):
        recipe = Recipe(calibration=list(x.split(5))).rule(
            weights=int4(block=32), algorithm=algorithm
        )
        return np.square(run(converted(module, X, recipe)[1], x[:5]) - eager(module, x[:5])).sum()

    assert away("gptq") < away("mse") / 3


def test_gptq_needs_data():
    with pytest.raises(InvalidInputError, match="gptq needs calibration data"):
        converted(mlp(), X, Recipe().rule(weights=int4(), algorithm="gptq"))


def test_weights_that_are_not_finite_are_named():
    module = mlp()
    module.layers[1].weight.data[3, 4] = torch.nan
    with pytest.raises(InvalidInputError, match=r"layers\.1/fully_connected_1 have NaN"):
        converted(module, X, Recipe.named("dynamic_wi8_afp32"))


def test_zero_channels_stay_zero():
    module = mlp()
    module.layers[2].weight.data[5] = 0
    module.layers[2].bias.data[5] = 0.25
    _, content = converted(module, X, Recipe.named("dynamic_wi4_afp32"))
    np.testing.assert_allclose(run(content, X)[:, 5], 0.25)


def test_smoothing_makes_room_for_the_other_channels():
    module = mlp()
    with torch.no_grad():
        module.layers[0].weight[5] *= 200
        module.layers[0].bias[5] = 50
        module.layers[1].weight[:, 5] /= 200
    batches = [samples(5, 64, seed=i) for i in range(4)]
    recipe = Recipe.named("dynamic_wi8_afp32", calibration=batches)
    want = eager(module, X)
    plain, smoothed = (run(converted(module, X, r)[1], X) for r in (recipe, recipe.smoothed()))
    assert np.square(smoothed - want).sum() < np.square(plain - want).sum() / 4
    graph, _ = converted(module, X, recipe.smoothed())
    assert [op.kind for op in graph.ops].count("MUL") == 1


def test_smoothing_needs_data_and_a_strength():
    with pytest.raises(InvalidInputError, match="smoothing needs calibration data"):
        converted(mlp(), X, Recipe.named("dynamic_wi8_afp32").smoothed())
    with pytest.raises(InvalidInputError, match="between 0 and 1, not 2"):
        Recipe().smoothed(2)
