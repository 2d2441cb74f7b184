import re

import numpy as np
import pytest
import torch
from torch import nn

from litert_torch.converter.dtypes import DType
from litert_torch.errors import InvalidInputError
from litert_torch.quantize import ranges
from litert_torch.quantize.numerics import sqnr
from litert_torch.quantize.recipe import OBSERVERS, Recipe
from litert_torch.quantize.schemes import float32
from tests.quantize.small_models import Blocks, Mlp, converted, eager, run, samples, seeded

pytestmark = pytest.mark.filterwarnings("ignore")

IMAGES = [samples(1, 3, 16, 18, seed=i) for i in range(8)]


def kinds(graph):
    return [op.kind for op in graph.ops]


@pytest.mark.parametrize("observer", OBSERVERS)
def test_all_of_a_network_is_on_integers(observer):
    module = seeded(Blocks)
    recipe = Recipe.static(calibration=IMAGES, observer=observer)
    graph, content = converted(module, IMAGES[0], recipe)
    assert kinds(graph).count("QUANTIZE") == 1
    assert kinds(graph).count("DEQUANTIZE") == 1
    assert recipe.report.left_in_float == []
    for x in IMAGES[:3]:
        for delegates in (True, False):
            assert sqnr(eager(module, x), run(content, x, delegates=delegates)) > 22


def test_fixed_and_shared_scales():
    graph, _ = converted(seeded(Blocks), IMAGES[0], Recipe.static(calibration=IMAGES))
    by_kind = {op.kind: op for op in graph.ops}
    for kind in ("LOGISTIC", "SOFTMAX"):
        q = by_kind[kind].output.quantization
        assert (q.scales.item(), q.zero_points.item()) == (1 / 256, -128)
    joined = by_kind["CONCATENATION"]
    assert len({v.quantization.key for v in (*joined.inputs, joined.output)}) == 1
    pooled = by_kind["MAX_POOL_2D"]
    assert pooled.inputs[0].quantization.key == pooled.output.quantization.key


def test_biases_have_the_scale_of_products():
    graph, _ = converted(seeded(Mlp), samples(2, 64), Recipe.static(calibration=[samples(2, 64)]))
    op = next(op for op in graph.ops if op.kind == "FULLY_CONNECTED")
    x, w, b = op.inputs
    assert b.dtype == DType.INT32
    want = x.quantization.scales * w.quantization.scales
    np.testing.assert_allclose(b.quantization.scales, want, rtol=1e-6)


class Sine(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(32, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.last(torch.sin(self.first(x)))


def test_ops_without_integer_kernel_are_float_islands():
    module, x = seeded(Sine), samples(4, 32)
    recipe = Recipe.static(calibration=[x])
    graph, content = converted(module, x, recipe)
    assert kinds(graph) == [
        "QUANTIZE", "FULLY_CONNECTED", "DEQUANTIZE", "SIN", "QUANTIZE", "FULLY_CONNECTED",
        "DEQUANTIZE",
    ]  # fmt: skip
    assert [e.note for e in recipe.report.left_in_float] == ["LiteRT has no int8 kernel for SIN"]
    assert sqnr(eager(module, x), run(content, x)) > 30


def test_a_rule_leaves_a_layer_in_float():
    module, x = seeded(Mlp), samples(4, 64)
    recipe = Recipe.static(calibration=[x]).rule(module="layers.1", weights=float32())
    graph, content = converted(module, x, recipe)
    found = [op.inputs[1].dtype for op in graph.ops if op.kind == "FULLY_CONNECTED"]
    assert found == [DType.INT8, DType.FLOAT32, DType.INT8]
    assert sqnr(eager(module, x), run(content, x)) > 30


def test_activations_that_integers_would_drown_stay_float():
    """One channel is ten thousand times as large as the others."""
    module, x = seeded(lambda: nn.Sequential(nn.Linear(64, 64), nn.Softsign())), samples(4, 64)
    with torch.no_grad():
        module[0].weight[7] *= 1e4
    recipe = Recipe.static(calibration=[x])
    _, content = converted(module, x, recipe)
    assert "would leave a typical channel" in recipe.report.entries[0].note
    assert recipe.report.entries[0].form == "dynamic"
    assert sqnr(eager(module, x), run(content, x)) > 30
    forced = Recipe.static(calibration=[x], least_sqnr=-np.inf)
    assert sqnr(eager(module, x), run(converted(module, x, forced)[1], x)) < 5


class Joined(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(16, 4)

    def forward(self, x):
        y = self.first(x)
        return self.last(torch.cat([torch.sigmoid(y), 20 * y], -1))


def test_a_fixed_scale_that_does_not_fit_is_requantized():
    module, x = seeded(Joined), samples(64, 8)
    graph, content = converted(module, x, Recipe.static(calibration=[x]))
    requantized = [op for op in graph.ops if op.kind == "QUANTIZE" and op.inputs[0].dtype == "int8"]
    assert len(requantized) == 1
    for delegates in (True, False):
        assert sqnr(eager(module, x), run(content, x, delegates=delegates)) > 25


@pytest.mark.parametrize(
    "calibration",
    [
        IMAGES,
        (x for x in IMAGES),
        lambda: iter(IMAGES),
        [(x.numpy(),) for x in IMAGES],
        [{"args_0": x} for x in IMAGES],
    ],
    ids=["list", "generator", "callable", "tuples", "dicts"],
)
def test_calibration_data_comes_in_many_forms(calibration):
    graph, _ = converted(seeded(Blocks), IMAGES[0], Recipe.static(calibration=calibration))
    q = graph.ops[0].output.quantization
    low, high = min(float(x.min()) for x in IMAGES), max(float(x.max()) for x in IMAGES)
    assert q.scales.item() == pytest.approx((high - low) / 255)


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ([], "calibration data is empty"),
        ([samples(1, 3, 16, 17)], "batch 0: input 'args_0' has shape [1, 3, 16, 17]"),
        ([IMAGES[0], (IMAGES[0], IMAGES[0])], "batch 1 has 2 inputs"),
        ([{"x": IMAGES[0]}], "has inputs x; signature 'serving_default' takes args_0"),
        ([IMAGES[0] * np.nan], "batch 0: input 'args_0' has NaN"),
    ],
)
def test_calibration_data_that_does_not_fit(calibration, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        converted(seeded(Blocks), IMAGES[0], Recipe.static(calibration=calibration))


class Root(nn.Module):
    def forward(self, x):
        return nn.functional.softmax(torch.sqrt(x), -1)


def test_nan_inside_the_model_is_named():
    with pytest.raises(InvalidInputError, match="computes NaN from calibration batch 0"):
        converted(Root(), samples(2, 8), Recipe.static(calibration=[samples(2, 8)]))


@pytest.mark.parametrize("name", ["percentile", "mse"])
def test_observers_leave_out_what_is_rare(name):
    observer = ranges.OBSERVERS[name]()
    rng = np.random.default_rng(0)
    for i in range(4):
        x = rng.normal(size=200_000).astype(np.float32)
        x[0] = 50 if i == 2 else 0
        observer.see(x)
    low, high = observer.range(DType.INT8)
    assert -6 < low < -2
    assert 2 < high < 30


def test_observers_widen_their_bins():
    observer = ranges.Percentile()
    observer.see(np.linspace(0, 1, 1000, dtype=np.float32))
    observer.see(np.linspace(-10, 10, 1000, dtype=np.float32))
    assert observer.counts.sum() == 2000
    low, high = observer.range(DType.INT8)
    assert low == pytest.approx(-10, abs=0.05)
    assert high == pytest.approx(10, abs=0.05)


def test_the_report_has_the_error_of_each_activation():
    module = seeded(Blocks)
    recipe = Recipe.static(calibration=IMAGES)
    graph, _ = converted(module, IMAGES[0], recipe)
    errors = list(recipe.report.activation_errors(IMAGES[1]))
    assert len(errors) == len([op for op in graph.ops if op.kind not in ("QUANTIZE", "DEQUANTIZE")])
    assert all(e.sqnr > 20 and e.cosine > 0.99 for e in errors)
    assert {e.name for e in errors} <= {e.name for e in recipe.report.entries}
