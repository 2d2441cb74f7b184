"""Weights that are integers, whoever made them so: the file keeps them, and says what it did."""

import io
import warnings

import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from rich.console import Console
from torch import nn

import litert_torch
from litert_torch.quantize import Recipe, int8
from litert_torch.quantize.quant_config import QuantConfig
from tests.cases.whole_model import assert_converts, assert_same, op_names, random, seeded


def stored(edge):
    """The types of all tensors with contents of more than 100 bytes, and the file's size."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(edge.model_content(), 0))
    names = {v: k for k, v in vars(schema.TensorType).items() if not k.startswith("_")}
    buffers = [b.data for b in model.buffers]
    large = [t for t in model.subgraphs[0].tensors if np.size(buffers[t.buffer]) > 100]
    return sorted(names[t.type] for t in large)


def two_layers():
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 34))


@pytest.fixture(scope="module")
def torchao():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip("torchao.quantization")
        from torchao.quantization import granularity
    found.blocks = granularity.PerGroup(32)
    found.rows = granularity.PerAxis(0)
    return found


TORCHAO = {
    "int8 rows": (lambda ao: ao.Int8WeightOnlyConfig(), "INT8"),
    "int8 blocks": (lambda ao: ao.Int8WeightOnlyConfig(granularity=ao.blocks), "INT8"),
    "int4 rows": (
        lambda ao: ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=ao.rows),
        "INT4",
    ),
    "int4 blocks": (
        lambda ao: ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=ao.blocks),
        "INT4",
    ),
    "int8 by int8": (lambda ao: ao.Int8DynamicActivationInt8WeightConfig(), "INT8"),
    "int8 by int4": (
        lambda ao: ao.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=ao.blocks
        ),
        "INT4",
    ),
}


@pytest.mark.parametrize("kind", TORCHAO)
def test_weights_that_torchao_quantized_stay_integers(torchao, kind):
    make, dtype = TORCHAO[kind]
    net = seeded(two_layers)
    torchao.quantize_(net, make(torchao))
    edge = assert_converts(net, random(3, 64), tolerance=1e-3)
    assert [t for t in stored(edge) if t != "FLOAT32"] == [dtype, dtype]


class ScaledAfter(nn.Module):
    """An int8 product scaled afterwards, as gpt-fast writes it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (32, 64), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(32) / 100)

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(x.dtype)) * self.scales


class ScaledBefore(ScaledAfter):
    def forward(self, x):
        weight = self.weight.float() * self.scales[:, None]
        return x @ weight.T + weight.sum(1)


@pytest.mark.parametrize("make", [ScaledAfter, ScaledBefore])
def test_weights_that_a_layer_scales_itself_stay_integers(make):
    edge = assert_converts(seeded(make), random(3, 64))
    assert stored(edge).count("INT8") == 1
    assert op_names(edge).count("DEQUANTIZE") == 1
    assert len(edge.model_content()) < 5000


def test_an_int8_table_that_is_no_weight_is_folded():
    table = torch.arange(-60, 60, dtype=torch.int8).reshape(4, 30).repeat(10, 1)
    edge = assert_converts(lambda x: x * (table.float() * 0.5), random(40, 30))
    assert op_names(edge) == ["MUL"]


class Separable(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.each = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        y = torch.relu(self.first(x))
        y = y + nn.functional.relu6(self.point(self.each(y)))
        return self.last(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


@pytest.mark.filterwarnings("ignore")
def test_static_quantization_leaves_no_island_of_floats():
    pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")
    from litert_torch.quantize.pt2e_quantizer import (
        PT2EQuantizer,
        get_symmetric_quantization_config,
    )

    x = random(1, 3, 16, 12)
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=False)
    quantizer = PT2EQuantizer().set_global(config)
    net = pt2e.prepare_pt2e(torch.export.export(seeded(Separable), (x,)).module(), quantizer)
    for seed in range(8):
        net(random(1, 3, 16, 12, seed=seed))
    net = pt2e.convert_pt2e(net, fold_quantize=False)
    edge = litert_torch.convert(net, (x,), quant_config=QuantConfig(pt2e_quantizer=quantizer))
    assert_same(edge(x.numpy()), net(x), tolerance=0.05)
    names = op_names(edge)
    assert (names.count("QUANTIZE"), names.count("DEQUANTIZE")) == (1, 1)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2)
        self.each = nn.Conv2d(16, 16, 3, groups=16)
        self.wide = nn.Linear(16, 64)
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        y = nn.functional.hardswish(self.each(self.first(x))).mean((2, 3))
        return self.last(nn.functional.gelu(self.wide(y)))


def test_a_dynamic_recipe_says_what_became_of_each_weight():
    net, x = seeded(Mixed), random(1, 3, 17, 23)
    recipe = Recipe.named("dynamic_wi8_afp32").rule(op="CONV_2D", weights=int8(), compute="dynamic")
    recipe = recipe.rule(op="DEPTHWISE_CONV_2D", weights=int8(), compute="weight_only")
    edge = litert_torch.convert(net, (x,), quant_config=recipe)
    assert_same(edge(x.numpy()), net(x), tolerance=0.03)
    assert stored(edge).count("INT8") == 4
    forms = {e.module: (e.form, e.weights) for e in recipe.report.entries if e.weights}
    assert forms == {
        "first": ("dynamic", "int8 per channel"),
        "each": ("weight_only", "int8 per channel"),
        "wide": ("dynamic", "int8 per channel"),
        "last": ("dynamic", "int8 per channel"),
    }
    page = io.StringIO()
    Console(file=page, width=200).print(recipe.report.table())
    assert "dB" in page.getvalue() or "SQNR" in page.getvalue()
