"""Inspection, benchmark, child processes, devices."""

import os

import numpy as np
import pytest

from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.runtime_bindings import child, devices
from litert_torch.runtime_bindings.benchmark import benchmark
from litert_torch.runtime_bindings.execution import run_file
from litert_torch.runtime_bindings.inspection import inspect
from tests.runtime_bindings import processes
from tests.runtime_bindings import small_files as small


@pytest.fixture
def path(tmp_path):
    def write(*graphs):
        target = tmp_path / "model.tflite"
        target.write_bytes(small.content(*graphs))
        return str(target)

    return write


def test_inspection_counts_shared_weights_once(path):
    found = inspect(path(small.dense(2, "a"), small.dense(small.batch(), "b")), delegation=False)
    assert [s.name for s in found.signatures] == ["a", "b"]
    assert found.ops == {"FULLY_CONNECTED": 2, "RELU": 2}
    weights = found.weights["float32"]
    assert (weights.tensors, weights.buffers, weights.nbytes) == (2, 1, 5 * 6 * 4)
    assert found.nbytes == os.path.getsize(found.path)
    assert found.delegation is None
    assert found.problem == ""


def test_delegation_tells_which_operators_xnnpack_takes(path):
    found = inspect(path(small.half_delegated())).delegation
    taken = [(node.kind, node.delegated) for node in found.nodes]
    assert taken == [("ADD", True), ("FLOOR_MOD", False), ("MUL", True)]
    assert found.partitions == 2
    assert found.delegated == 2
    assert found.by_kind() == {"ADD": (1, 1), "FLOOR_MOD": (0, 1), "MUL": (1, 1)}


def test_a_file_that_the_runtime_refuses_is_still_inspected(path):
    def outputs(g, x):
        return {"output_0": g.emit("CUSTOM", [x], x.type, custom_code="Mine")}

    found = inspect(path(small.graph_of({"args_0": ((2,), "float32")}, outputs)))
    assert found.ops == {"CUSTOM Mine": 1}
    assert found.delegation is None
    assert "Mine" in found.problem


def test_benchmark_measures_the_size_asked_for(path):
    file = path(small.dense(small.batch()))
    found = benchmark(file, runs=20, warmup=1, shapes={"args_0": (300, 6)})
    assert found.shapes == {"args_0": (300, 6)}
    assert 0 < found.min_ms <= found.median_ms <= found.p90_ms
    assert found.load_ms > 0
    assert found.first_ms > 0
    assert 10e6 < found.peak_bytes < 1e9
    small_one = benchmark(file, runs=20)
    assert small_one.min_ms < found.min_ms


def test_benchmark_takes_the_stored_size_where_none_is_asked_for(path):
    graph = small.dense(small.batch())
    (symbol,) = graph.inputs[0].shape[0].expr.free_symbols
    graph.least_sizes[symbol] = 5
    assert benchmark(path(graph), runs=2).shapes == {"args_0": (5, 6)}


def test_benchmark_runs_any_signature(path):
    file = path(small.dense(2, "a"), small.dense(3, "b"))
    assert benchmark(file, runs=2, signature_name="b").shapes == {"args_0": (3, 6)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "1 or more"),
        ({"runs": 0}, "1 or more"),
        ({"signature_name": "x"}, "no signature 'x'"),
        ({"shapes": {"y": (1,)}}, "no input y"),
        ({"shapes": {"args_0": (1, 5)}}, r"cannot have the shape \[1, 5\]"),
    ],
)
def test_benchmark_refuses(path, options, message):
    with pytest.raises(InvalidInputError, match=message):
        benchmark(path(small.dense(small.batch())), **options)


def test_run_file_makes_up_what_is_not_given(path):
    file = path(small.dense(2))
    with pytest.raises(InvalidInputError, match="args_0 missing"):
        run_file(file)
    ones = np.ones((2, 6), np.float32)
    assert (
        run_file(file, [ones])["output_0"].tolist()
        == np.maximum(ones @ small.WEIGHTS.T, 0).tolist()
    )
    assert run_file(file, made_up=True)["output_0"].shape == (2, 5)


def test_a_child_returns_and_raises():
    assert child.call(processes.add, a=2, b=3) == 5
    with pytest.raises(InvalidInputError, match="no"):
        child.call(processes.refuse)


def test_a_crash_is_an_error():
    with pytest.raises(child.ChildError, match="SIGSEGV"):
        child.call(processes.crash)
    with pytest.raises(child.ChildError, match=r"(?s)exit code 7.*the last words"):
        child.call(processes.leave)


def test_a_child_that_takes_too_long_is_ended():
    with pytest.raises(child.ChildError, match=r"longer than 0\.2 seconds"):
        child.call(processes.sleep, timeout=0.2)


def test_the_probe_runs_on_the_cpu_and_names_unknown_accelerators():
    devices.probe("cpu")
    with pytest.raises(InvalidInputError, match="cpu, gpu, npu, not tpu"):
        devices.probe("tpu")


def test_absent_compilers_come_with_a_remedy(monkeypatch):
    monkeypatch.setattr(devices, "NPU_COMPILERS", {"nobody": "no-such-package", "numpy": "numpy"})
    monkeypatch.setattr(devices, "_probed", lambda name, *_: devices.Device(name, True, ""))
    *_, absent, present = devices.devices()
    assert (absent.available, absent.remedy) == (False, "pip install no-such-package")
    assert present.available


def test_files_that_are_not_whole_are_refused_before_a_child_starts(tmp_path):
    (tmp_path / "cut").write_bytes(small.content(small.dense())[:200])
    for read in (inspect, benchmark, run_file):
        with pytest.raises(InvalidModelFileError, match="cut is truncated"):
            read(tmp_path / "cut")
