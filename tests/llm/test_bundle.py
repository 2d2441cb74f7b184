"""The container's bytes, as the engine's own builder lays them out."""

import struct

import pytest

from litert_torch.errors import InvalidModelFileError, OutputError
from litert_torch.llm import bundle
from litert_torch.llm.bundle import Kind, Place, Section
from litert_torch.llm.metadata import Metadata

BLOCK = bundle.BLOCK
SECTIONS = [
    Section.of_bytes(Kind.METADATA, b"m" * 20000),
    Section(Kind.MODEL, lambda s: s.write(b"tfl%d" % s.tell()), {"model_type": "x", "b": "ü"}),
    Section.of_bytes(Kind.HF_TOKENIZER, b""),
]


def test_layout(tmp_path):
    path = tmp_path / "deep" / "a.litertlm"
    bundle.write(path, SECTIONS)
    data = path.read_bytes()
    assert data[:8] == b"LITERTLM"
    assert struct.unpack_from("<4I", data, 8) == (1, 7, 0, 0)
    (end,) = struct.unpack_from("<Q", data, 24)
    assert 32 < end < BLOCK
    assert set(data[end:BLOCK]) == {0}
    assert bundle.read(path) == [
        Place(Kind.METADATA, BLOCK, BLOCK + 20000, {}),
        Place(Kind.MODEL, 3 * BLOCK, 3 * BLOCK + 4, {"model_type": "x", "b": "ü"}),
        Place(Kind.HF_TOKENIZER, 4 * BLOCK, 4 * BLOCK, {}),
    ]
    assert bundle.contents(path, Kind.METADATA) == b"m" * 20000
    assert bundle.contents(path, Kind.MODEL) == b"tfl0"


def test_whole_or_not_at_all(tmp_path):
    def fails(stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="No space left"):
        bundle.write(tmp_path / "a", [*SECTIONS, Section(Kind.BINARY, fails)])
    assert list(tmp_path.iterdir()) == []


def test_damaged_files(tmp_path):
    path = tmp_path / "a.litertlm"
    with pytest.raises(InvalidModelFileError, match="cannot read"):
        bundle.read(path)
    bundle.write(path, SECTIONS)
    whole = path.read_bytes()
    with pytest.raises(InvalidModelFileError, match="no section of kind WEIGHTS"):
        bundle.contents(path, Kind.WEIGHTS)
    for data, message in [
        (b"", "is not a"),
        (b"TFL3" + whole[4:], "is not a"),
        (whole[: 2 * BLOCK], "truncated"),
        (whole[:32] + b"\xff" * 200 + whole[232:], "damaged|truncated"),
        (whole[:24] + struct.pack("<Q", 40) + whole[32:], "damaged"),
    ]:
        path.write_bytes(data)
        with pytest.raises(InvalidModelFileError, match=message):
            bundle.read(path)


def test_metadata_bytes():
    """As protoc encodes start_token {ids: 1}, stop_tokens {ids: 300}, 4096, qwen3 {}, "ü"."""
    metadata = Metadata(4096, [300], start_token=1, template="ü", kind="qwen3")
    assert metadata.to_bytes() == bytes.fromhex(
        "0a 05 0a 03 0a 01 01  12 06 0a 04 0a 02 ac 02  28 80 20  32 02 2a 00  3a 02 c3 bc"
    )


def test_unknown_kinds_are_generic():
    assert Metadata(5, [2]).to_bytes() == bytes.fromhex("12 05 0a 03 0a 01 02  28 05  32 02 0a 00")
