import json

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

import litert_torch
from litert_torch import tpu
from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.quantize import Recipe
from litert_torch.quantize.schemes import float32, int4, int8

WEIGHT_ONLY = Recipe().rule(weights=int8(), compute="weight_only")


def layers():
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 33)).eval()


def export(recipe, path, module=None, x=None):
    x = torch.randn(5, 64) if x is None else x
    tpu.export(module or layers(), (x,), quant_config=recipe).export(path)
    return tpu.load(path), x


def types(path):
    manifest = json.loads((path / "signature.json").read_text())
    weights = manifest["signatures"]["serving_default"]["weights"]
    return {w["name"]: (w["dtype"], w["shape"]) for w in weights}


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def test_int8_weights_are_those_of_the_tflite_file(tmp_path):
    model, x = export(WEIGHT_ONLY, tmp_path / "m.tpu")
    assert types(tmp_path / "m.tpu") == {
        "0.bias": ("float32", [96]),
        "0.weight": ("int8", [96, 64]),
        "0.weight.scales": ("float32", [96]),
        "2.bias": ("float32", [33]),
        "2.weight": ("int8", [33, 96]),
        "2.weight.scales": ("float32", [33]),
    }
    file = litert_torch.convert(layers(), (x,), quant_config=WEIGHT_ONLY)
    got, eager = model(x), layers()(x).detach().numpy()
    assert relative(got, file(x)) < 1e-5
    assert 1e-4 < relative(got, eager) < 0.02


def test_int4_blocks_are_packed_two_a_byte(tmp_path):
    recipe = Recipe().rule(weights=int4(block=32))
    model, x = export(recipe, tmp_path / "m.tpu")
    found = types(tmp_path / "m.tpu")
    assert found["0.weight"] == ("uint8", [96, 32])
    assert found["0.weight.scales"] == ("float32", [96, 2])
    eager = layers()(x).detach().numpy()
    assert 0.005 < relative(model(x), eager) < 0.2


def test_convolutions_have_a_scale_a_channel(tmp_path):
    torch.manual_seed(2)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
    x = torch.randn(1, 3, 9, 7)
    model, _ = export(WEIGHT_ONLY, tmp_path / "m.tpu", module, x)
    found = types(tmp_path / "m.tpu")
    assert found["0.weight"] == ("int8", [8, 3, 3, 3])
    assert found["0.weight.scales"] == ("float32", [8])
    assert relative(model(x), module(x).detach().numpy()) < 0.02


def test_rules_by_module_hold_and_must_match(tmp_path):
    recipe = WEIGHT_ONLY.rule(module="2", weights=float32())
    export(recipe, tmp_path / "m.tpu")
    found = types(tmp_path / "m.tpu")
    assert (found["0.weight"][0], found["2.weight"][0]) == ("int8", "float32")
    with pytest.raises(InvalidInputError, match="module='decoder' matches nothing"):
        export(WEIGHT_ONLY.rule(module="decoder"), tmp_path / "n.tpu")


def test_tied_weights_that_are_read_otherwise_stay_in_float(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 64)
            self.head = nn.Linear(64, 10, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(self.table(ids))

    ids = torch.tensor([[3, 9, 0]])
    model, _ = export(WEIGHT_ONLY, tmp_path / "m.tpu", Tied().eval(), ids)
    assert [t for t, _ in types(tmp_path / "m.tpu").values()] == ["float32"]
    assert model(ids).shape == (1, 3, 10)


def test_integer_activations_are_refused():
    recipe = Recipe().rule(compute="static")
    with pytest.raises(UnsupportedCaseError, match="this rule is static with int8 per channel"):
        tpu.export(layers(), (torch.randn(5, 64),), quant_config=recipe)
