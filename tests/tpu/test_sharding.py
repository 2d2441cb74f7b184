import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

from litert_torch import tpu
from litert_torch.errors import InvalidInputError
from litert_torch.tpu import sharding
from litert_torch.tpu.sharding_rules import resolve
from tests.tpu.models import Block

MESH = sharding.mesh_of({"data": 2, "model": 4}, 8)
WEIGHTS = {
    "layers.0.self_attn.q_proj.weight": (32, 16),
    "layers.0.self_attn.q_proj.bias": (32,),
    "layers.0.self_attn.o_proj.weight": (16, 32),
    "layers.0.mlp.down_proj.weight": (16, 30),
    "embed_tokens.weight": (40, 16),
    "norm.weight": (16,),
}


def test_eight_devices_compute_what_one_does(tmp_path):
    module = nn.Sequential(Block(), Block()).eval()
    x = torch.randn(4, 6, 32)
    tpu.export(module, (x,)).export(tmp_path / "m.tpu")
    np.save(tmp_path / "x.npy", x.numpy())
    cases = [
        ({"data": 2, "model": 4}, "transformer"),
        ({"data": 8}, "fsdp"),
        (
            {"data": 2, "model": 4},
            {"*.q_proj": "colwise", "0.o_proj.weight": (None, ["data", "model"])},
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.tpu.sharded_run", json.dumps([f"{tmp_path}/m.tpu", cases])],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
    )
    found = json.loads(done.stdout)
    assert [f["part"] for f in found] == [[8, 32], [4, 32], [8, 32]]
    want = module(x).detach().numpy()
    for f in found:
        np.testing.assert_allclose(np.array(f["y"]), want, rtol=1e-4, atol=1e-5)


def test_a_transformers_layers_are_found_by_name():
    state = {"kv_cache_k_0": (1, 8, 128, 16), "calls": (1,)}
    found = resolve("transformer", WEIGHTS, state, {"tokens": (2, 7)}, MESH)
    assert found.weights == {
        "layers.0.self_attn.q_proj.weight": ("model", None),
        "layers.0.self_attn.q_proj.bias": ("model",),
        "layers.0.self_attn.o_proj.weight": (None, "model"),
        "embed_tokens.weight": ("model", None),
    }  # down_proj's 30 does not divide by 4
    assert found.state == {"kv_cache_k_0": (None, "model", None, None)}
    assert found.inputs == {"tokens": ("data",)}


def test_fsdp_splits_the_longest_dimension():
    found = resolve("fsdp", WEIGHTS, {}, {}, MESH)
    assert found.weights["layers.0.self_attn.o_proj.weight"] == (None, "data")
    assert found.weights["embed_tokens.weight"] == ("data", None)


def test_rules_take_pytorchs_styles_and_axes():
    class RowwiseParallel:
        """As torch.distributed.tensor.parallel has."""

    rules = {
        "layers.*.q_proj": "colwise",
        "*.o_proj": RowwiseParallel(),
        "embed_tokens.weight": (("data", "model"), None),
        "inputs.x": (None, "data"),
    }
    found = resolve(rules, WEIGHTS, {}, {"x": (4, 6)}, MESH)
    assert found.weights == {
        "layers.0.self_attn.q_proj.weight": ("model", None),
        "layers.0.self_attn.q_proj.bias": ("model",),
        "layers.0.self_attn.o_proj.weight": (None, "model"),
        "embed_tokens.weight": (("data", "model"), None),
    }
    assert found.inputs == {"x": (None, "data")}


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"*.down_proj": "rowwise"},
            r"dimension 1 of 'layers\.0\.mlp\.down_proj\.weight' \(30\) does not divide into 4 "
            r"parts over 'model': 2 left over",
        ),
        ({"*.missing": "colwise"}, r"no weight matches '\*\.missing'; there are layers\.0"),
        ({"norm": (None, "model")}, "'norm.weight' has 1 dimensions, its sharding"),
        ({"norm": ("expert",)}, "the mesh has no axis 'expert'; it has data, model"),
        ({"norm": "diagonal"}, "not colwise, rowwise or axes"),
        ("megatron", "shardings are 'transformer', 'fsdp' or a dict"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rules, message):
    with pytest.raises(InvalidInputError, match=message):
        resolve(rules, WEIGHTS, {}, {}, MESH)


def test_transformer_needs_its_axis():
    mesh = sharding.mesh_of({"data": 8}, 8)
    with pytest.raises(InvalidInputError, match="an axis called 'model'; the mesh has data"):
        resolve("transformer", WEIGHTS, {}, {}, mesh)
