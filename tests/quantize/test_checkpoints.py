"""Checkpoints quantized elsewhere, made here from the definitions of their formats."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.quantize.algorithms.stored import stored_scales
from litert_torch.quantize.checkpoints import open_checkpoint
from litert_torch.quantize.numerics import Grid, sqnr
from tests.quantize.small_models import converted, run, samples, seeded

pytestmark = pytest.mark.filterwarnings("ignore")

N, K = 24, 128


def write_safetensors(path, tensors):
    header, data = {}, b""
    kinds = {"f2": "F16", "f4": "F32", "i4": "I32", "i8": "I64", "i1": "I8"}
    for name, x in tensors.items():
        x = np.ascontiguousarray(x)
        kind = "BF16" if x.dtype == ml_dtypes.bfloat16 else kinds[x.dtype.str[1:]]
        ends = [len(data), len(data) + x.nbytes]
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": ends}
        data += x.tobytes()
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def packed(q, bits, axis):
    """Unsigned integers in int32 words, the lowest bits first, along an axis."""
    q = np.moveaxis(q.astype(np.uint32), axis, -1)
    q = q.reshape(*q.shape[:-1], -1, 32 // bits)
    shifts = np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits)
    words = np.bitwise_or.reduce(q << shifts, axis=-1).astype(np.uint32).view(np.int32)
    return np.moveaxis(words, -1, axis)


def folder(path, config, tensors):
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"quantization_config": config}))
    write_safetensors(path / "model.safetensors", tensors)
    return path


def drawn(seed=0, bits=4, groups=K // 32, rows=N, columns=K):
    """Unsigned integers, and float16 scales, of which each group has one of the outermost."""
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 1 << bits, (rows, columns))
    q[:, :: columns // groups] = 0
    scales = (rng.uniform(0.5, 1.5, (rows, groups)) * 0.02).astype(np.float16)
    return q, scales


def real(q, zeros, scales):
    wide = np.repeat(scales.astype(np.float32), q.shape[1] // scales.shape[1], axis=1)
    return (q.astype(np.float32) - np.asarray(zeros, np.float32)) * wide


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(K, N, bias=False), nn.Linear(N, 8)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def integers_of(checkpoint):
    """The module with its numbers, what it stores in the file, and the file's output error."""
    module, x = seeded(Net), samples(3, K)
    checkpoint.load_into(module)
    recipe = checkpoint.recipe()
    graph, content = converted(module, x, recipe)
    w = next(op.inputs[1] for op in graph.ops if op.kind == "FULLY_CONNECTED")
    with torch.no_grad():
        error = sqnr(module(x).numpy(), run(content, x))
    return w, module.first.weight.detach().numpy(), recipe.report.notes, error


BIAS = {"last.bias": np.arange(8, dtype=np.float32)}


def gptq(path, q, scales, zeros, **config):
    tensors = {
        "first.qweight": packed(q.T, config.get("bits", 4), 0),
        "first.scales": scales.T,
        "first.qzeros": packed(zeros.T - 1, config.get("bits", 4), 1),
        "first.g_idx": config.pop("g_idx", np.arange(K) // (K // scales.shape[1])).astype("i4"),
        **BIAS,
    }
    return folder(path, {"quant_method": "gptq", **config}, tensors)


def awq(path, q, scales, zeros):
    def interleaved(x):
        order = [0, 2, 4, 6, 1, 3, 5, 7]  # what AWQ puts into the low bits first
        return packed(x.reshape(len(x), -1, 8)[:, :, order].reshape(len(x), -1), 4, 1)

    tensors = {
        "first.qweight": interleaved(q.T),
        "first.scales": scales.T,
        "first.qzeros": interleaved(zeros.T),
        **BIAS,
    }
    return folder(path, {"quant_method": "awq", "bits": 4}, tensors)


def compressed(path, q, scales, bits=4, **more):
    tensors = {
        "first.weight_packed": packed(q, bits, 1),
        "first.weight_scale": scales,
        "first.weight_shape": np.array([N, K], np.int64),
        **more,
        **BIAS,
    }
    return folder(path, {"quant_method": "compressed-tensors"}, tensors)


class Normed(Net):
    """The norm's weight goes into the layer behind it, where it would leave no grid."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(K)
        self.norm.weight.data = torch.rand(K) + 0.5

    def forward(self, x):
        return super().forward(self.norm(x)) + self.first(self.norm(x))[:, :8]


def test_weights_stay_on_their_grid_beside_a_norm(tmp_path):
    q, scales = drawn()
    checkpoint = open_checkpoint(compressed(tmp_path, q, scales))
    module, x = seeded(Normed), samples(3, K)
    checkpoint.load_into(module)
    graph, content = converted(module, x, checkpoint.recipe())
    weights = [op.inputs[1] for op in graph.ops if op.kind == "FULLY_CONNECTED"]
    for w in [w for w in weights if w.dtype == "int4"]:
        np.testing.assert_array_equal(w.read(), q - 8)
    assert [w.dtype for w in weights].count("int4") >= 1
    with torch.no_grad():
        assert sqnr(module(x).numpy(), run(content, x)) > 30


def middle(scales):
    return np.full(scales.shape, 8)


@pytest.mark.parametrize(
    "write",
    [
        lambda p, q, s: gptq(p, q, s, middle(s)),
        lambda p, q, s: awq(p, q, s, middle(s)),
        compressed,
        lambda p, q, s: compressed(p, q, s.astype(ml_dtypes.bfloat16)),
    ],
    ids=["gptq", "awq", "compressed", "bfloat16"],
)
def test_symmetric_int4_keeps_its_integers(tmp_path, write):
    q, scales = drawn()
    if write is not compressed and "bfloat16" in str(write.__code__.co_names):
        scales = scales.astype(ml_dtypes.bfloat16).astype(np.float16)
    checkpoint = open_checkpoint(write(tmp_path, q, scales))
    w, weight, notes, error = integers_of(checkpoint)
    np.testing.assert_allclose(weight, real(q, 8, scales), rtol=1e-6)
    assert (w.dtype, w.quantization.block_size, notes) == ("int4", 32, [])
    np.testing.assert_array_equal(w.read(), q - 8)
    np.testing.assert_array_equal(w.quantization.scales.reshape(scales.shape), scales)
    assert error > 30
    assert checkpoint.stored["first"].group == 32


def test_int4_a_channel(tmp_path):
    q, scales = drawn(groups=1)
    w, _, notes, _ = integers_of(open_checkpoint(compressed(tmp_path, np.maximum(q, 1), scales)))
    assert (w.dtype, w.quantization.block_size, notes) == ("int4", None, [])
    np.testing.assert_array_equal(w.read(), np.maximum(q, 1) - 8)
    w, _, notes, _ = integers_of(open_checkpoint(compressed(tmp_path, q, scales)))
    assert (w.quantization.block_size, notes) == (128, [])  # -8 is for kernels of blocks only
    np.testing.assert_array_equal(w.read(), q - 8)


def test_int8_a_channel(tmp_path):
    q, scales = drawn(bits=8, groups=1)
    q = np.maximum(q, 1)
    q[:, 0] = 255
    for path in (
        compressed(tmp_path / "packed", q, scales, bits=8),
        folder(
            tmp_path / "plain",
            {"quant_method": "compressed-tensors"},
            {"first.weight": (q - 128).astype("i1"), "first.weight_scale": scales, **BIAS},
        ),
        gptq(tmp_path / "gptq", q, scales, np.full(scales.shape, 128), bits=8),
    ):
        w, _, notes, error = integers_of(open_checkpoint(path))
        assert (w.dtype, notes) == ("int8", [])
        np.testing.assert_array_equal(w.read(), q - 128)
        np.testing.assert_allclose(w.quantization.scales, scales[:, 0], rtol=1e-6)
        assert error > 30


def check_anew(path, want, message, least=15):
    w, weight, notes, error = integers_of(open_checkpoint(path))
    np.testing.assert_allclose(weight, want, rtol=1e-5, atol=1e-7)
    assert notes == [notes[0]]
    assert notes[0].startswith("1 of 1 weights of ")
    assert message in notes[0]
    assert error > least
    return w


def test_zero_points_are_quantized_anew(tmp_path):
    q, scales = drawn()
    zeros = np.random.default_rng(1).integers(1, 16, scales.shape)
    want = real(q, np.repeat(zeros, 32, axis=1), scales)
    check_anew(gptq(tmp_path / "gptq", q, scales, zeros), want, "zero points")
    check_anew(awq(tmp_path / "awq", q, scales, zeros), want, "zero points")
    given = {"first.weight_zero_point": packed(zeros, 4, 0)}
    check_anew(compressed(tmp_path / "ct", q, scales, **given), want, "zero points")


def test_groups_of_scattered_columns_are_quantized_anew(tmp_path):
    q, scales = drawn()
    order = np.random.default_rng(2).permutation(np.arange(K) // 32)
    want = (q - 8) * scales.astype(np.float32)[:, order]
    path = gptq(tmp_path, q, scales, middle(scales), g_idx=order, desc_act=True)
    check_anew(path, want, "neighbouring columns")


def test_groups_that_litert_has_not(tmp_path):
    q, scales = drawn(groups=8)
    w = check_anew(gptq(tmp_path, q, scales, middle(scales)), real(q, 8, scales), "groups of 16")
    assert w.quantization.block_size == 32
    q, scales = drawn(bits=8)
    path = gptq(tmp_path, q, scales, np.full(scales.shape, 128), bits=8)
    w = check_anew(path, real(q, 128, scales), "no groups of 8-bit weights, as of 32", 30)
    assert w.dtype == "int8"


def gguf(path, tensors, arch="llama", **metadata):
    """A file of (name, type number, shape, bytes)."""

    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = [text("general.architecture") + struct.pack("<I", 8) + text(arch)]
    pairs += [text(k) + struct.pack("<II", 4, v) for k, v in metadata.items()]
    pairs += [text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")]
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(pairs)) + b"".join(pairs)
    data = b""
    for name, kind, shape, raw in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        head += struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
    return path


def blocks(q, d, m=None):
    """Q4 blocks: the first half of 32 in the low bits, the second in the high ones."""
    halves = q.reshape(-1, 2, 16)
    parts = [d.reshape(-1, 1).view("u1").reshape(-1, 2)]
    parts += [] if m is None else [m.reshape(-1, 1).view("u1").reshape(-1, 2)]
    parts += [(halves[:, 0] | halves[:, 1] << 4).astype("u1")]
    return np.concatenate(parts, axis=1).tobytes()


class Attention(nn.Module):
    """What has the names and the order of rows of transformers' Llama."""

    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(K, N, bias=False)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Module()
        self.model.layers = nn.ModuleList([nn.Module()])
        self.model.layers[0].self_attn = Attention()
        self.model.layers[0].mlp = nn.Module()
        self.model.layers[0].mlp.up_proj = nn.Linear(K, N, bias=False)

    def forward(self, x):
        layer = self.model.layers[0]
        return layer.self_attn.q_proj(x) * layer.mlp.up_proj(x)


HEADS = {"llama.attention.head_count": 3, "llama.attention.head_count_kv": 3}


def test_gguf_q4_0_keeps_what_fits(tmp_path):
    q, d = drawn()
    d[::2] *= -1  # by which +8 is there, which int4 has not
    raw = blocks(q, d)
    names = ("blk.0.attn_q.weight", "blk.0.ffn_up.weight")
    path = gguf(tmp_path / "m.gguf", [(n, 2, (N, K), raw) for n in names], **HEADS)
    checkpoint, module, x = open_checkpoint(path), seeded(Llama), samples(3, K)
    checkpoint.load_into(module)
    want = real(q, 8, d)
    up = module.model.layers[0].mlp.up_proj.weight.detach().numpy()
    np.testing.assert_allclose(up, want, rtol=1e-6)
    pairs = want.reshape(3, 4, 2, K)  # 3 heads of 8 channels, each with its neighbour
    turned = module.model.layers[0].self_attn.q_proj.weight.detach().numpy()
    np.testing.assert_allclose(turned.reshape(3, 2, 4, K), pairs.swapaxes(1, 2), rtol=1e-6)
    recipe = checkpoint.recipe()
    graph, content = converted(module, x, recipe)
    assert "50% of its groups have a negative scale" in recipe.report.notes[0]
    stored = [op.inputs[1] for op in graph.ops if op.kind == "FULLY_CONNECTED"]
    w = next(v for v in stored if np.array_equal(v.read()[1::2], q[1::2] - 8))
    assert w.quantization.block_size == 32
    with torch.no_grad():
        assert sqnr(module(x).numpy(), run(content, x)) > 18


def test_gguf_of_other_blocks(tmp_path):
    rng = np.random.default_rng(0)
    q, d = drawn()
    m = rng.uniform(-0.2, 0, d.shape).astype(np.float16)
    path = tmp_path / "m.gguf"
    gguf(path, [("blk.0.ffn_up.weight", 3, (N, K), blocks(q, d, m))], **HEADS)
    weight = open_checkpoint(path).stored["model.layers.0.mlp.up_proj"]
    want = real(q, 0, d) + np.repeat(m.astype(np.float32), 32, axis=1)
    np.testing.assert_allclose(weight.real(), want, rtol=1e-5, atol=1e-7)
    assert "least value for each group" in open_checkpoint(path).recipe().report.notes[0]
    signed = rng.integers(-127, 128, (N, K)).astype("i1")
    raw = np.concatenate([d.reshape(-1, 1).view("u1"), signed.reshape(-1, 32).view("u1")], axis=1)
    gguf(path, [("blk.0.ffn_up.weight", 8, (N, K), raw.tobytes())], **HEADS)
    weight = open_checkpoint(path).stored["model.layers.0.mlp.up_proj"]
    np.testing.assert_allclose(weight.real(), real(signed, 0, d), rtol=1e-6)
    floats = np.arange(K, dtype=np.float16)
    gguf(path, [("output_norm.weight", 1, (K,), floats.tobytes())], **HEADS)
    assert dict(open_checkpoint(path).tensors())["model.norm.weight"].tolist() == floats.tolist()


def test_scales_are_found_in_rows_that_are_on_a_grid():
    rng = np.random.default_rng(0)
    q = rng.integers(-7, 8, (50, 32))
    scales = rng.uniform(0.01, 2, 50).astype(np.float32)
    rows = (q * scales[:, None]).astype(np.float32)
    rows[3] = 0
    rows[4] = rng.normal(size=32)
    found = stored_scales(rows, Grid(-8, 7))
    others = np.delete(np.arange(50), [3, 4])
    np.testing.assert_allclose(found[others], scales[others], rtol=1e-6)
    assert found[3] == 1
    assert 0 < found[4] < np.abs(rows[4]).max() / 6


def test_what_is_no_checkpoint_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"no config\.json"):
        open_checkpoint(tmp_path)
    q, scales = drawn()
    path = compressed(tmp_path, q, scales)
    (path / "config.json").write_text('{"quantization_config": {"quant_method": "hqq"}}')
    with pytest.raises(UnsupportedCaseError, match="quantized by hqq; known: awq"):
        open_checkpoint(path)
    file = compressed(tmp_path, q, scales) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InvalidInputError, match="is not where the header says"):
        open_checkpoint(tmp_path)
    bad = tmp_path / "m.gguf"
    gguf(bad, [("blk.0.ffn_up.weight", 12, (N, K), b"")], **HEADS)
    with pytest.raises(UnsupportedCaseError, match="of type Q4_K"):
        open_checkpoint(bad)
    whole = gguf(bad, [("blk.0.ffn_up.weight", 2, (N, K), blocks(q, scales))], **HEADS).read_bytes()
    for size in (2, 30, 90, len(whole) - 500):
        bad.write_bytes(whole[:size])
        with pytest.raises(InvalidInputError, match=r"cannot read|truncated"):
            open_checkpoint(bad)
    gguf(bad, [], arch="mamba")
    with pytest.raises(UnsupportedCaseError, match="architecture 'mamba'"):
        open_checkpoint(bad)


def test_a_module_that_is_another_is_named(tmp_path):
    q, scales = drawn()
    checkpoint = open_checkpoint(compressed(tmp_path, q, scales))
    with pytest.raises(InvalidInputError, match=r"the module has no first\.weight"):
        checkpoint.load_into(nn.Linear(3, 3))
    other = Net()
    other.first = nn.Linear(K, N + 1)
    with pytest.raises(InvalidInputError, match=r"first\.weight has shape \[25, 128\]"):
        checkpoint.load_into(other)
