import numpy as np
import pytest

from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.runtime_bindings.compiled import CompiledModel
from tests.runtime_bindings import small_files as small


def test_sizes_may_change_from_call_to_call(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(small.content(small.dense(small.batch())))
    model = CompiledModel(path)
    assert model.is_fully_accelerated
    for rows in (1, 4, 2):
        x = np.linspace(-1, 1, rows * 6, dtype=np.float32).reshape(rows, 6)
        got = model(x)["output_0"]
        np.testing.assert_allclose(got, np.maximum(x @ small.WEIGHTS.T, 0), rtol=1e-5, atol=1e-5)


def test_int64_is_exact():
    model = CompiledModel(small.content(small.add_int64()))
    given = np.array([[1, 2, 3], [-4, 2**40, 0]], np.int64)
    got = model(args_0=given)["output_0"]
    assert got.dtype == np.int64
    assert got.tolist() == (given + np.array([1, 2, 2**40])).tolist()


def test_what_falls_back_shows():
    assert not CompiledModel(small.content(small.half_delegated())).is_fully_accelerated


def test_more_than_ten_inputs_keep_their_names():
    values = [np.array([i + 0.5, -i], np.float32) for i in range(12)]
    outputs = CompiledModel(small.content(small.named()))(*values)
    want = sum(v * (i + 1) for i, v in enumerate(values))
    np.testing.assert_allclose(outputs["sum"], want, rtol=1e-6)


def test_wrong_use_is_refused():
    data = small.content(small.dense(2, "a"))
    with pytest.raises(InvalidInputError, match="no signature 'b'; the model has: a"):
        CompiledModel(data)(np.ones((2, 6)), signature_name="b")
    with pytest.raises(InvalidInputError, match="shape"):
        CompiledModel(data)(np.ones((3, 6)))
    with pytest.raises(InvalidInputError, match="not cuda"):
        CompiledModel(data, accelerators=["cuda"])
    with pytest.raises(InvalidModelFileError):
        CompiledModel(data[:100])
