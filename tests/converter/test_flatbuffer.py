import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from litert_torch.converter import flatbuffer
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import from_array, from_tensor
from litert_torch.converter.dtypes import DType
from litert_torch.converter.flatbuffer import write
from litert_torch.errors import InvalidGraphError, OutputError
from tests.converter.graphs import build, random, weights
from tests.op_case import run


def two_layers(g, x):
    y = tfl.fully_connected(g, x, weights(40, 33), weights(40, seed=2))
    return tfl.fully_connected(g, y, weights(17, 40, seed=3), None)


def buffers(content):
    """(offset, bytes) of each constant, however the file stores it."""
    model = schema.Model.GetRootAs(content, 0)
    found = []
    for i in range(model.BuffersLength()):
        buffer = model.Buffers(i)
        if buffer.Size():
            found.append((buffer.Offset(), content[buffer.Offset() :][: buffer.Size()]))
        elif buffer.DataLength():
            start = buffer._tab.Vector(buffer._tab.Offset(4))
            found.append((start, content[start : start + buffer.DataLength()]))
    return found


@pytest.mark.parametrize("far", [False, True])
def test_constants_are_aligned_and_found(monkeypatch, far):
    if far:
        monkeypatch.setattr(write, "_VECTOR_LIMIT", 0)
    content = flatbuffer.to_bytes([build(two_layers, (3, 33))])
    starts, data = zip(*buffers(content), strict=True)
    assert all(start % write.ALIGNMENT == 0 for start in starts)
    stored = set(data)
    for constant in (random(40, 33) * np.float32(0.3), random(40, seed=2) * np.float32(0.3)):
        assert constant.tobytes() in stored
    x = random(3, 33)
    (got,) = run(content, torch.from_numpy(x))
    hidden = x @ (random(40, 33) * 0.3).T + random(40, seed=2) * 0.3
    np.testing.assert_allclose(got, hidden @ (random(17, 40, seed=3) * 0.3).T, rtol=1e-4, atol=1e-4)


def test_the_same_graph_gives_the_same_bytes():
    graphs = [build(two_layers, (3, 33)) for _ in range(2)]
    assert flatbuffer.to_bytes(graphs[:1]) == flatbuffer.to_bytes(graphs[1:])


def test_one_storage_is_one_buffer_across_signatures():
    weight = torch.randn(64, 64)

    def function(g, x):
        return tfl.fully_connected(g, x, tfl.const(from_tensor(weight)), None)

    graphs = [build(function, (n, 64)) for n in (1, 7)]
    graphs[0].name, graphs[1].name = "one", "seven"
    sizes = [len(data) for _, data in buffers(flatbuffer.to_bytes(graphs))]
    assert sizes == [64 * 64 * 4]


def test_transposed_views_of_a_storage_are_different_constants():
    weight = torch.randn(3, 3)
    assert from_tensor(weight).key != from_tensor(weight.t()).key
    assert from_tensor(weight).transpose([1, 0]).key == from_tensor(weight).transpose([1, 0]).key


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_constant_in_chunks_is_the_constant(dtype):
    tensor = torch.randn(7, 3, 5, 2).to(dtype)
    whole = from_tensor(tensor).transpose([0, 2, 3, 1]).astype(DType.FLOAT32).reshape((7, 30))
    chunks = list(whole.chunks(250))
    assert [c.shape for c in chunks] == [(2, 30), (2, 30), (2, 30), (1, 30)]
    np.testing.assert_array_equal(np.concatenate(chunks), whole.read())
    want = tensor.float().permute(0, 2, 3, 1).reshape(7, 30)
    np.testing.assert_array_equal(whole.read(), want)


def test_lazy_conjugates_and_negations_are_different_constants():
    z = torch.complex(torch.randn(3), torch.randn(3))
    assert from_tensor(z).key != from_tensor(z.conj()).key
    assert from_tensor(z.imag).key != from_tensor(z.conj().imag).key


def test_a_constant_whose_rows_depend_on_each_other_is_read_whole():
    moved = from_tensor(torch.randn(6, 5)).transpose([1, 0])
    assert [c.shape for c in moved.chunks(8)] == [(5, 6)]


def test_two_signatures_need_two_names():
    with pytest.raises(InvalidGraphError, match="two signatures have one name"):
        flatbuffer.to_bytes([build(two_layers, (3, 33)), build(two_layers, (4, 33))])


def test_a_failed_write_leaves_nothing(tmp_path):
    def broken():
        raise OSError(28, "No space left on device")

    graph = build(two_layers, (3, 33))
    good = from_array(random(40, 33), "float32")
    graph.ops[0].inputs[1] = tfl.const(good.derive("broken", lambda _: broken()))
    target = tmp_path / "out.tflite"
    with pytest.raises(OutputError, match=r"cannot write .*out\.tflite: No space left on device"):
        flatbuffer.to_file([graph], target)
    assert list(tmp_path.iterdir()) == []


def test_writing_replaces_the_whole_file(tmp_path):
    target = tmp_path / "deep" / "out.tflite"
    for shape in ((3, 33), (2, 33)):
        flatbuffer.to_file([build(two_layers, shape)], target)
    assert target.read_bytes() == flatbuffer.to_bytes([build(two_layers, (2, 33))])
    assert [p.name for p in target.parent.iterdir()] == ["out.tflite"]


def test_an_unwritable_folder_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        flatbuffer.to_file([build(two_layers, (3, 33))], tmp_path / "file" / "out.tflite")


@given(
    bits=st.sampled_from([2, 4]),
    values=st.lists(st.integers(-2, 1), min_size=1, max_size=33),
)
@settings(max_examples=40, deadline=None)
def test_packed_bits_unpack_to_the_same(bits, values):
    packed = write.pack_bits(np.array(values, np.int8), bits)
    per_byte = 8 // bits
    unpacked = [(int(packed[i // per_byte]) >> (bits * (i % per_byte))) for i in range(len(values))]
    mask = (1 << bits) - 1
    assert [u & mask for u in unpacked] == [v & mask for v in values]
    assert packed.nbytes == -(-len(values) * bits // 8)


def test_a_bfloat16_tensor_is_read_exactly():
    tensor = torch.tensor([1.5, -2.25, 3e38], dtype=torch.bfloat16)
    constant = from_tensor(tensor)
    assert constant.dtype == "bfloat16"
    np.testing.assert_array_equal(constant.astype(DType.FLOAT32).read(), tensor.float())


@pytest.mark.sweep
def test_a_file_over_two_gigabytes_runs(tmp_path):
    rows = 9000
    big = [torch.zeros(rows, 16384) for _ in range(4)]  # 590 MB each, untouched pages
    for i, w in enumerate(big):
        w[i + 1, i + 2] = 2.0 + i

    def function(g, x):
        parts = [tfl.fully_connected(g, x, tfl.const(from_tensor(w)), None) for w in big]
        return tfl.concatenation(g, parts, axis=1)

    path = tmp_path / "big.tflite"
    flatbuffer.to_file([build(function, (1, 16384))], path)
    assert path.stat().st_size > 2**31
    from litert_torch.runtime_bindings import LiteRTModel

    x = np.arange(16384, dtype=np.float32)[None]
    got = LiteRTModel.load(path)(x)
    for i in range(4):
        assert got[0, i * rows + i + 1] == (2.0 + i) * (i + 2)
