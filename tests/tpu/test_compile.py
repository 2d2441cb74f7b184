import importlib.util
import math

import pytest
import torch
from torch import nn

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

from litert_torch import tpu
from litert_torch.errors import DoesNotFitError, InvalidInputError
from litert_torch.tpu.compilation import topologies
from litert_torch.tpu.compilation.aot import Measured, _collectives
from litert_torch.tpu.compilation.report import Compiled, table
from litert_torch.tpu.planning import plan
from litert_torch.tpu.planning import table as plan_table
from litert_torch.tpu.sharding import Mesh
from tests.tpu.models import Block, perceptron

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="compiling needs libtpu"
)


def wide(layers):
    """16 KiB vectors through matrices of half a GiB, without contents."""
    size = 16384
    options = {"device": "meta", "dtype": torch.bfloat16, "bias": False}
    module = nn.Sequential(*(nn.Linear(size, size, **options) for _ in range(layers))).eval()
    return module, (torch.empty(8, size, device="meta", dtype=torch.bfloat16),)


@needs_compiler
@pytest.mark.parametrize("topology", ["v5e:1x1", "v6e:1x1", "tpu7x:1x1x1"])
def test_each_family_compiles(topology):
    batch = torch.export.Dim("batch")
    program = tpu.export(perceptron(), (torch.randn(4, 6),), dynamic_shapes=({0: batch},))
    found = tpu.compile(program, topology, sizes={"dim_0": 8}, level="O0")
    assert found.topology.name == topology
    assert 0 < found.hbm_share < 0.01
    assert found.measured.arguments >= 4 * (6 * 8 + 8 + 8 * 4 + 4)
    assert found.step_seconds > 0


@needs_compiler
def test_what_does_not_fit_says_why_and_where_it_would():
    program = tpu.export(*wide(33))
    with pytest.raises(DoesNotFitError) as caught:
        tpu.compile(program, "v5e:1x1", level="O0")
    text = str(caught.value)
    assert "needs 16.50 GiB of the 15.75 GiB" in text
    assert "512.0 MiB  0.weight bfloat16[16384,16384]" in text
    assert text.endswith("smallest topology that fits: v6e:1x1")


@needs_compiler
def test_a_transformer_is_split_and_sums_over_devices(tmp_path):
    module = nn.Sequential(Block(), Block()).eval()
    tpu.export(module, (torch.randn(4, 6, 32),)).export(tmp_path / "m.tpu")
    found = tpu.compile(
        tmp_path / "m.tpu",
        "v5e:2x2",
        mesh={"model": 4},
        shardings="transformer",
        level="O0",
        save=tmp_path / "executable",
    )
    assert found.measured.collectives == {"all-reduce": 4}  # after o and down, twice
    assert (tmp_path / "executable").stat().st_size > 1000


@needs_compiler
def test_a_plan_compiles_only_what_may_fit():
    program = tpu.export(*wide(70))
    rows = list(plan({"bfloat16": program}, ["v5e:1x1", "v6e:1x1"], shardings=None))
    assert [r.why for r in rows] == ["weights alone are 35.00 GiB a device"] * 2
    lines = list(plan_table(rows))
    assert lines[1].split()[:4] == ["bfloat16", "v5e:1x1", "1", "no"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("v5e:3x1", "did you mean v5e:1x1"),
        ("v7x:2x2", r"did you mean tpu7x:2x2x1\?"),
        ("ironwood:4x4x4", r"did you mean tpu7x:4x4x4\?"),
        ("h100", r"no TPU topology 'h100': There are v5e:\{1x1, 2x2"),
    ],
)
def test_unknown_topologies_have_near_names(name, near):
    with pytest.raises(InvalidInputError, match=near):
        topologies.parse(name)


def test_a_chip_of_tpu7x_is_two_devices():
    topology = topologies.parse("tpu7x:2x2x1")
    assert (topology.chips, topology.devices) == (4, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"sizes that vary need a number: dim_0; .* args_0 \['dim_0', 6\]"),
        ({"sizes": {"dim_0": 2, "dim_9": 1}}, "no size varies that is called dim_9"),
        (
            {"sizes": {"dim_0": 2}, "mesh": {"data": 3}},
            "the mesh data 3 has 3 devices, the topology 1",
        ),
        ({"signature": "train"}, "no signature 'train'; the model has: serving_default"),
    ],
)
@needs_compiler
def test_wrong_arguments_are_refused_before_compiling(options, message):
    batch = torch.export.Dim("batch")
    program = tpu.export(perceptron(), (torch.randn(4, 6),), dynamic_shapes=({0: batch},))
    with pytest.raises(InvalidInputError, match=message):
        tpu.compile(program, "v5e:1x1", **options)


def test_compile_takes_artifacts_only():
    with pytest.raises(InvalidInputError, match="not Linear"):
        tpu.compilation.source_of(nn.Linear(2, 2))


def test_the_roofline_is_the_slower_of_arithmetic_and_memory():
    topology = topologies.parse("v5e:1x1")
    many = Measured(1.0, 100, 20, 30, 4, 197e12, 819e6, {})
    found = Compiled("serving_default", topology, Mesh({"data": 1}), many)
    assert found.hbm_bytes == 154
    assert math.isclose(found.step_seconds, 1.0)
    assert found.bound_by == "compute"
    slow = Measured(1.0, 100, 20, 30, 4, 197e9, 819e9, None)
    found = Compiled("serving_default", topology, Mesh({"data": 1}), slow)
    assert math.isclose(found.step_seconds, 1.0)
    assert found.bound_by == "memory"
    assert list(table([found]))[1].split()[-3:] == ["1000.000", "ms", "memory"]


def test_collectives_are_counted_in_the_programs_text():
    text = """
  %a = f32[8]{0} all-reduce(%x), channel_id=1
  %b = (f32[8]{0}, f32[8]{0}) all-gather-start(%a), channel_id=2
  %c = f32[8]{0} all-gather-done(%b)
"""
    assert _collectives(lambda: text) == {"all-reduce": 1, "all-gather": 1}

    def fails():
        raise RuntimeError("cannot print")

    assert _collectives(fails) is None
