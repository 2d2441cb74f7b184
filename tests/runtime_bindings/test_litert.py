import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch

import litert_torch
from litert_torch.errors import InvalidInputError, InvalidModelFileError, OutputError
from litert_torch.runtime_bindings import LiteRTModel
from tests.runtime_bindings import small_files as small


def relu_product(x):
    return np.maximum(np.asarray(x, np.float32) @ small.WEIGHTS.T, 0)


def x(rows):
    return np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32)


def test_runs_without_importing_torch():
    code = (
        "import sys, litert_torch.runtime_bindings, litert_torch.runtime_bindings.compiled;"
        "import litert_torch.runtime_bindings.benchmark, litert_torch.runtime_bindings.devices;"
        "import litert_torch.runtime_bindings.inspection, litert_torch.runtime_bindings.execution;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_positional_and_named_inputs():
    model = small.model(small.dense())
    np.testing.assert_allclose(model(x(2)), relu_product(x(2)), rtol=1e-5)
    np.testing.assert_allclose(model(args_0=x(2)), relu_product(x(2)), rtol=1e-5)


def test_more_than_ten_positional_inputs_keep_their_order():
    values = [np.array([i + 0.5, -i], np.float32) for i in range(12)]
    outputs = small.model(small.named())(*values)
    want = sum(v * (i + 1) for i, v in enumerate(values))
    np.testing.assert_allclose(outputs["sum"], want, rtol=1e-6)
    np.testing.assert_allclose(outputs["first"], 2 * values[0])
    assert list(outputs) == ["sum", "first"]


def test_sizes_may_change_from_call_to_call():
    model = small.model(small.dense(small.batch()))
    assert model.signatures["serving_default"].inputs[0].shape == (-1, 6)
    for rows in (1, 5, 3, 8, 1):
        np.testing.assert_allclose(model(x(rows)), relu_product(x(rows)), rtol=1e-5)


def test_int64_is_exact_and_takes_int32():
    model = small.model(small.add_int64())
    big = np.full((2, 3), 2**41, np.int64)
    assert model(big).tolist() == (big + np.array([1, 2, 2**40])).tolist()
    assert model(np.ones((2, 3), np.int32)).tolist() == [[2, 3, 2**40 + 1]] * 2
    assert model([[1, 2, 3], [4, 5, 6]]).dtype == np.int64


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.bool_], ids=str
)
def test_casts_that_lose_nothing_or_are_between_floats(dtype):
    given = x(2).astype(dtype)
    got = small.model(small.dense())(given)
    np.testing.assert_allclose(got, relu_product(given.astype(np.float32)), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_takes_torch_tensors(dtype):
    given = torch.from_numpy(x(2)).to(dtype).requires_grad_()
    want = relu_product(given.detach().float().numpy())
    np.testing.assert_allclose(small.model(small.dense())(given), want, rtol=1e-5)


WRONG_INPUTS = [
    ("missing", (), {}, "takes 1 input: args_0 float32.2,6.; 0 given, args_0 missing"),
    ("surplus", (x(2), x(2)), {}, "args_1 unknown"),
    ("name", (), {"image": x(2)}, "args_0 missing and image unknown"),
    ("twice", (x(2),), {"args_0": x(2)}, "args_0 is given twice"),
    ("size", (x(3),), {}, r"args_0 float32.2,6. got an array of shape \[3, 6\]"),
    ("rank", (x(2)[None],), {}, r"shape \[1, 2, 6\]"),
    ("lossy", (x(2).astype(np.int32),), {}, r"int32.*astype\('float32'\)"),
    ("complex", (x(2).astype(np.complex64),), {}, "got complex64"),
    ("text", ([["a"] * 6] * 2,), {}, "got <U1"),
]


@pytest.mark.parametrize(("args", "kwargs", "message"), [c[1:] for c in WRONG_INPUTS])
def test_wrong_inputs_are_named(args, kwargs, message):
    with pytest.raises(InvalidInputError, match=message):
        small.model(small.dense())(*args, **kwargs)


def test_a_fixed_axis_of_a_dynamic_input_is_checked():
    with pytest.raises(InvalidInputError, match=r"\[\?,6\].*shape \[2, 5\]; \? may be any size"):
        small.model(small.dense(small.batch()))(np.ones((2, 5), np.float32))


def test_python_numbers_must_fit():
    with pytest.raises(InvalidInputError, match="int64"):
        small.model(small.dense())([[2**60 + 1] * 6] * 2)


def test_sizes_that_do_not_go_together_are_refused_and_leave_the_model_usable():
    import sympy

    rows = [small.Dim(sympy.Symbol(s, positive=True, integer=True)) for s in "ab"]
    types = {f"args_{i}": ((r, 3), "float32") for i, r in enumerate(rows)}
    graph = small.graph_of(
        types,
        lambda g, a, b: {
            "output_0": g.emit("ADD", [a, b], small.TensorType((rows[0], 3), a.dtype))
        },
    )
    model = small.model(graph)
    ones = [np.ones((n, 3), np.float32) for n in (2, 3)]
    with pytest.raises(InvalidInputError, match=r"args_0 \[2, 3\], args_1 \[3, 3\]"):
        model(*ones)
    assert model(ones[1], ones[1]).tolist() == [[2.0] * 3] * 3


def test_unknown_signature_lists_those_there_are():
    model = small.model(small.dense(2, "a"), small.dense(3, "b"))
    with pytest.raises(InvalidInputError, match="no signature 'c'; the model has: a, b"):
        model(x(2), signature_name="c")
    np.testing.assert_allclose(model(x(3), signature_name="b"), relu_product(x(3)), rtol=1e-5)


def test_state_stays_until_reset():
    model = small.model(*small.counter())
    model(signature_name="init")
    one = np.array([1.0, -2.0], np.float32)
    assert model(one, signature_name="add").tolist() == [1, -2]
    assert model(one, signature_name="add").tolist() == [2, -4]
    model.reset()
    model(signature_name="init")
    assert model(one, signature_name="add").tolist() == [1, -2]


def test_a_file_without_signatures_runs():
    data = small.without_signatures(small.content(small.dense(small.batch())))
    model = LiteRTModel(data)
    for rows in (2, 4):
        outputs = model(x(rows))
        np.testing.assert_allclose(next(iter(outputs.values())), relu_product(x(rows)), rtol=1e-5)


def test_export_and_load_keep_the_bytes(tmp_path):
    model = small.model(small.dense())
    path = tmp_path / "made" / "folders" / "m.tflite"
    model.export(path)
    loaded = litert_torch.load(path)
    assert loaded.model_content() == model.model_content()
    loaded.export(path)  # onto itself
    np.testing.assert_allclose(loaded(x(2)), relu_product(x(2)), rtol=1e-5)
    assert [p.name for p in path.parent.iterdir()] == ["m.tflite"]


@pytest.mark.parametrize("target", ["/dev/full", "/dev/null", ".", "file/m.tflite", "/proc/m"])
def test_export_to_what_is_no_file_is_refused(tmp_path, target):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OutputError, match="cannot write"):
        small.model(small.dense()).export(tmp_path / target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    old = tmp_path / "m.tflite"
    old.write_bytes(b"before")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        small.model(small.dense()).export(old)
    assert old.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["m.tflite"]


def test_a_link_is_followed(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    small.model(small.dense()).export(link)
    assert link.is_symlink()
    assert litert_torch.load(real).signatures


def test_the_interpreter_builder_is_used():
    from ai_edge_litert.interpreter import Interpreter

    model = small.model(small.dense())
    built = []

    def build():
        built.append(Interpreter(model_content=model.model_content()))
        return built[-1]

    model.set_interpreter_builder(build)
    model(x(2))
    model(x(2))
    assert len(built) == 1
    assert model._get_interpreter() is built[0]


def test_a_file_that_the_runtime_refuses_is_named(tmp_path):
    from ai_edge_litert import schema_py_generated as schema

    data = bytearray(small.content(small.dense()))
    code = schema.Model.GetRootAs(data, 0).OperatorCodes(0)._tab
    at = code.Pos + code.Offset(8)  # the version
    data[at] = 99
    path = tmp_path / "future.tflite"
    path.write_bytes(data)
    with pytest.raises(InvalidModelFileError, match=r"future\.tflite.*version"):
        litert_torch.load(path)(x(2))
