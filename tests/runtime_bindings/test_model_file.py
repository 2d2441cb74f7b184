import contextlib
import random
import struct
import time
import tracemalloc

import numpy as np
import pytest

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.flatbuffer import write
from litert_torch.converter.ir import const
from litert_torch.errors import InvalidModelFileError
from litert_torch.runtime_bindings import schema_layout
from litert_torch.runtime_bindings.model_file import ModelFile
from tests.runtime_bindings import small_files as small


def loop():
    """A WHILE, so that there are subgraphs that call each other."""
    scalar = {"i": ((1,), "int32")}

    def less(g, i):
        return {"o": tfl.less(g, i, const([5], DType.INT32))}

    def more(g, i):
        return {"o": tfl.add(g, i, const([1], DType.INT32))}

    def outputs(g, i):
        cond, body = small.graph_of(scalar, less, "cond"), small.graph_of(scalar, more, "body")
        return {"output_0": tfl.while_(g, [i], cond, body)[0]}

    return small.graph_of(scalar, outputs)


FILES = {
    "dense": lambda: small.content(small.dense(small.batch())),
    "named": lambda: small.content(small.named()),
    "state": lambda: small.content(*small.counter()),
    "loop": lambda: small.content(loop()),
}


def visit(data):
    """Read all there is, as the runtime would."""
    file = ModelFile(data)
    for i in range(file.model.SubgraphsLength()):
        names = [name for name, _ in file.operators(i)]
        assert all(isinstance(name, str) for name in names)
        for tensor in file.tensors(i):
            assert str(tensor)
            assert file.buffer(tensor.buffer).nbytes == file.buffer_nbytes(tensor.buffer)
    assert file.signatures
    return file


@pytest.mark.parametrize("kind", FILES)
def test_whole_files_are_read(kind):
    visit(FILES[kind]())


def test_the_contents_of_a_file():
    file = visit(FILES["dense"]())
    (spec,) = file.signatures.values()
    assert [str(t) for t in (*spec.inputs, *spec.outputs)] == [
        "args_0 float32[?,6]",
        "output_0 float32[?,5]",
    ]
    assert [name for name, _ in file.operators(0)] == ["FULLY_CONNECTED", "RELU"]
    (weights,) = [t for t in file.tensors(0) if t.buffer]
    stored = file.buffer(weights.buffer).view(np.float32).reshape(weights.shape)
    assert stored.tolist() == small.WEIGHTS.tolist()


def test_buffers_behind_the_metadata_are_read(monkeypatch):
    monkeypatch.setattr(write, "_VECTOR_LIMIT", 0)  # as in a file above 2 GB
    data = FILES["dense"]()
    file = visit(data)
    (weights,) = [t for t in file.tensors(0) if t.buffer]
    assert file.model.Buffers(weights.buffer).Offset() > 1
    assert file.buffer(weights.buffer).view(np.float32)[0] == -15
    with pytest.raises(InvalidModelFileError, match="cut short"):
        ModelFile(data[:-64])


@pytest.mark.parametrize("kind", FILES)
def test_every_truncation_is_refused(kind):
    data = FILES[kind]()
    end = max(i for i, byte in enumerate(data) if byte) + 1  # zeros at the end are only padding
    for size in range(0, end, 3):
        with pytest.raises(InvalidModelFileError):
            ModelFile(data[:size])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", FILES)
def test_damaged_files_are_refused_or_read(kind, seed):
    whole, rng = FILES[kind](), random.Random(f"{kind}{seed}")
    slowest, refused = 0.0, 0
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        start = time.process_time()
        try:
            visit(bytes(data))
        except InvalidModelFileError as error:
            refused += "\n" not in str(error)
        slowest = max(slowest, time.process_time() - start)
    assert refused > 20
    assert slowest < 1


def test_impossible_lengths_allocate_nothing():
    whole = FILES["dense"]()
    tracemalloc.start()
    for at in range(0, len(whole) - 4, 4):
        data = bytearray(whole)
        data[at : at + 4] = b"\xf0\xff\xff\x7f"
        with contextlib.suppress(InvalidModelFileError):
            visit(bytes(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


FOREIGN = {
    "empty": (b"", "is empty"),
    "short": (b"TFL3", "not a LiteRT model"),
    "zeros": (bytes(64), "not a LiteRT model"),
    "zip": (b"PK\x03\x04" + bytes(60), "zip archive"),
    "page": (b"\n<!DOCTYPE html>" + bytes(60), "web page"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "only the mark": (b"\x1c\0\0\0TFL3" + bytes(64), "truncated or damaged"),
    "self-pointing": (b"\x04\0\0\0TFL3" + bytes(64), "truncated or damaged"),
}


@pytest.mark.parametrize(("data", "message"), FOREIGN.values(), ids=FOREIGN)
def test_foreign_files_are_named(tmp_path, data, message):
    path = tmp_path / "x.tflite"
    path.write_bytes(data)
    with pytest.raises(InvalidModelFileError, match=f"x.tflite.*{message}"):
        ModelFile.open(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(InvalidModelFileError, match="No such file"):
        ModelFile.open(tmp_path / "nothing")
    with pytest.raises(InvalidModelFileError, match="directory"):
        ModelFile.open(tmp_path)


def test_tables_that_overlap_end_soon():
    """A vector of 100,000 offsets to vectors that overlap: quadratic for a naive reader."""
    count = 100_000
    data = bytearray(small.content(small.dense()))
    from ai_edge_litert import schema_py_generated as schema

    root = schema.Model.GetRootAs(data, 0)._tab
    at = root.Pos + root.Offset(8)  # subgraphs
    start = len(data)
    data[at : at + 4] = struct.pack("<I", start - at)
    target = schema.Model.GetRootAs(small.content(small.dense()), 0).Subgraphs(0)._tab.Pos
    data += struct.pack("<I", count)
    for i in range(count):  # offsets are unsigned: subgraphs must lie behind
        data += struct.pack("<I", 4 * (count - i))
    data += data[target : target + 64]
    begin = time.process_time()
    with pytest.raises(InvalidModelFileError):
        ModelFile(bytes(data))
    assert time.process_time() - begin < 5


def _patched(data, accessor, slot, value, kind="<i"):
    """The file with one scalar field of one table changed."""
    from ai_edge_litert import schema_py_generated as schema

    data = bytearray(data)
    table = accessor(schema.Model.GetRootAs(data, 0))._tab
    offset = table.Offset(4 + 2 * slot)
    assert offset, "the field is absent"
    struct.pack_into(kind, data, table.Pos + offset, value)
    return bytes(data)


def _patched_vector(data, accessor, slot, value):
    """The file with the first element of an int32 vector changed."""
    from ai_edge_litert import schema_py_generated as schema

    data = bytearray(data)
    table = accessor(schema.Model.GetRootAs(data, 0))._tab
    struct.pack_into("<i", data, table.Vector(table.Offset(4 + 2 * slot)), value)
    return bytes(data)


def _slot(table, name):
    return next(f.slot for f in schema_layout.tables()[table] if f.name == name)


def test_indices_out_of_range_are_refused():
    dense, looped = FILES["dense"](), FILES["loop"]()
    cases = [
        (_patched(dense, lambda m: m.Subgraphs(0).Operators(1), 0, 7), "number 7 of 2 codes"),
        (
            _patched(dense, lambda m: m.Subgraphs(0).Tensors(1), _slot("Tensor", "Buffer"), 9),
            "buffers",
        ),
        (_patched(dense, lambda m: m.SignatureDefs(0).Outputs(0), 1, 77), "refer to tensor 77"),
        (_patched_vector(dense, lambda m: m.Subgraphs(0), 1, -1), "refer to tensor -1"),
        (
            _patched_vector(dense, lambda m: m.Subgraphs(0).Operators(0), 1, 40),
            "refer to tensor 40",
        ),
        (_patched_vector(dense, lambda m: m.Subgraphs(0).Tensors(1), 0, 6), "needs 144 bytes"),
        (_patched_vector(dense, lambda m: m.Subgraphs(0).Tensors(0), 0, -6), "impossible shape"),
        (_patched(dense, lambda m: m, 0, 4), "schema version 4"),
    ]
    for data, message in cases:
        with pytest.raises(InvalidModelFileError, match=message):
            ModelFile(data)
    assert ModelFile(looped)


def test_subgraphs_that_run_themselves_are_refused():
    from ai_edge_litert import schema_py_generated as schema

    def options(model):
        table = schema.WhileOptions()
        union = model.Subgraphs(0).Operators(0).BuiltinOptions()
        table.Init(union.Bytes, union.Pos)
        return table

    body = _slot("WhileOptions", "BodySubgraphIndex")
    with pytest.raises(InvalidModelFileError, match="number 8 of 3 subgraphs"):
        ModelFile(_patched(FILES["loop"](), options, body, 8))
    cond = _slot("WhileOptions", "CondSubgraphIndex")
    own = _patched(FILES["loop"](), options, cond, 0)
    with pytest.raises(InvalidModelFileError, match="subgraph 0 runs itself"):
        ModelFile(own)


def test_the_layout_covers_the_whole_schema():
    tables = schema_layout.tables()
    from ai_edge_litert import schema_py_generated as schema

    unions = (schema.BuiltinOptions, schema.BuiltinOptions2, schema.QuantizationDetails)
    for union in unions:
        members = {k for k, v in vars(union).items() if isinstance(v, int) and k != "NONE"}
        assert members <= tables.keys()
    fields = {f.name: f for f in tables["Tensor"]}
    assert fields["Shape"].element_size == 4
    assert fields["Name"].is_string
    assert fields["Quantization"].table == "QuantizationParameters"
    assert {f.name: f.slot for f in tables["SignatureDef"]}["SubgraphIndex"] == 4
    assert [f.element_size for f in tables["QuantizationParameters"] if f.name == "ZeroPoint"] == [
        8
    ]
