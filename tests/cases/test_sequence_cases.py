"""Attention, recurrence, caches, spectra and language models."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.whole_model import (
    Calls,
    assert_converts,
    highest_rank,
    op_names,
    random,
    seeded,
    whole_numbers,
)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 12, batch_first=True)
        self.lstm = nn.LSTM(12, 10, batch_first=True)

    def forward(self, x):
        y, state = self.gru(x)
        return self.lstm(y)[0], state


def test_long_sequences_are_not_unrolled():
    edge = assert_converts(seeded(Recurrent), random(1, 128, 8))
    assert len(op_names(edge)) < 200


def attention_mask():
    mask = random(5, 7, seed=3) > -0.3
    mask[2] = False
    mask[:2, 0] = mask[3:, 0] = True
    return mask


@pytest.mark.parametrize(
    "attend",
    [
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        lambda q, k, v, m: F.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.zeros(m.shape).masked_fill(~m, float("-inf")), scale=0.3
        ),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    ],
    ids=["a row that sees nothing", "infinite scores", "causal, uneven", "grouped queries"],
)
def test_attention(attend):
    q, k, v = random(2, 4, 5, 8), random(2, 4, 7, 8, seed=1), random(2, 4, 7, 6, seed=2)
    assert_converts(attend, q, k, v, attention_mask())


class TwoAttentions(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.MultiheadAttention(12, 3)
        self.across = nn.MultiheadAttention(
            12, 4, kdim=5, vdim=7, batch_first=True, add_bias_kv=True
        )
        for p in self.parameters():
            nn.init.normal_(p, std=0.4)

    def forward(self, x, k, v, mask):
        y, weights = self.own(x, x, x, key_padding_mask=mask)
        z, each = self.across(x.transpose(0, 1), k, v, average_attn_weights=False)
        return y, weights, z, each


def test_attention_modules_with_their_weights():
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[1, 4:] = True
    inputs = random(6, 2, 12), random(2, 9, 5), random(2, 9, 7), mask
    assert highest_rank(assert_converts(seeded(TwoAttentions), *inputs)) <= 4


def test_repeated_key_heads_need_no_rank_5_and_no_copies():
    def scores(q, k):
        b, n, t, d = k.shape
        repeated = k[:, :, None].expand(b, n, 2, t, d).reshape(b, n * 2, t, d)
        return (q @ repeated.transpose(2, 3)).softmax(-1)

    edge = assert_converts(scores, random(1, 6, 5, 8), random(1, 3, 7, 8, seed=1))
    assert highest_rank(edge) <= 4
    assert "BROADCAST_TO" not in op_names(edge)


def test_cache_is_written_at_the_position_given():
    def step(q, k, v, at, keys, values):
        keys = keys.index_copy(2, at, k)
        values = values.clone()
        values[:, :, at] = v
        mask = torch.arange(keys.shape[2])[None] <= at[:, None]
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask), keys, values

    def inputs(at):
        rows = [random(1, 3, 2, 4, seed=s) for s in range(3)]
        caches = [random(1, 3, 10, 4, seed=s) for s in (3, 4)]
        return (*rows, torch.tensor(at), *caches)

    assert_converts(step, *inputs([5, 6]), others=[inputs([8, 9])])


def test_softmax_with_rows_of_nothing():
    mask = random(4, 6, seed=1) > -0.2
    mask[1] = False

    def masked(x, m):
        y = x.masked_fill(~m, float("-inf"))
        z = y.softmax(-1)
        lowest = torch.finfo(torch.float32).min
        return (
            z,
            torch.nan_to_num(z, nan=0.0),
            y.max(-1).values,
            y.log_softmax(-1),
            torch.isinf(y),
            torch.isnan(z),
            (y * 0).nan_to_num(5.0),
            lowest * m.float() + x,
        )

    assert_converts(masked, random(4, 6), mask)


def test_spectral_filter():
    kernel = torch.view_as_complex(random(17, 2, seed=1))

    def filtered(x):
        spectrum = torch.fft.rfft(x, dim=-1) * kernel
        return torch.fft.irfft(spectrum, n=32, dim=-1), torch.fft.fft2(x[:, :6]).real

    assert_converts(filtered, random(2, 6, 32))


def test_rotary_embedding_by_complex_numbers():
    angles = torch.outer(torch.arange(7.0), 1.0 / 100 ** (torch.arange(0, 8, 2) / 8.0))
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]

    def rotated(q):
        pairs = torch.view_as_complex(q.reshape(*q.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(-2)

    assert_converts(rotated, random(2, 7, 3, 8))


def test_vocoder_tail():
    conv = seeded(lambda: nn.Conv1d(4, 18, 3, padding=1))
    window = torch.hann_window(16)

    def wave(x):
        size, phase = conv(x).chunk(2, 1)
        spectrum = torch.complex(size.exp() * phase.cos(), size.exp() * phase.sin())
        return torch.istft(spectrum, 16, hop_length=4, win_length=16, window=window, center=True)

    assert_converts(wave, random(1, 4, 12), tolerance=1e-3)


def tiny_llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def tiny_whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=60,
        num_mel_bins=8,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_source_positions=20,
        max_target_positions=12,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
    )
    return WhisperForConditionalGeneration(config)


def test_decoder_of_a_library():
    model = seeded(tiny_llama)
    forward = Calls(lambda ids: model(input_ids=ids, use_cache=False).logits)
    forward.model = model
    assert_converts(forward.eval(), whole_numbers(0, 97, 1, 9))


def test_encoder_and_decoder_of_a_library():
    model = seeded(tiny_whisper)
    forward = Calls(
        lambda sound, ids: (
            model(input_features=sound, decoder_input_ids=ids, use_cache=False).logits
        )
    )
    forward.model = model
    assert_converts(forward.eval(), random(1, 8, 40), whole_numbers(4, 60, 1, 6))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 4, bias=False)
        self.up = nn.Parameter(torch.randn(4, 6, 8) * 0.4)
        self.down = nn.Parameter(torch.randn(4, 8, 6) * 0.4)

    def forward(self, x):
        share, chosen = torch.topk(self.gate(x).softmax(-1), 2, -1)
        share = share / share.sum(-1, keepdim=True)
        weights = torch.zeros_like(self.gate(x)).scatter(-1, chosen, share)
        all_experts = F.silu(torch.einsum("td,edh->teh", x, self.up))
        dense = (torch.einsum("teh,ehd->ted", all_experts, self.down) * weights[..., None]).sum(1)
        routed = torch.zeros_like(x)
        for k in range(2):
            inner = F.silu(x[:, None] @ self.up[chosen[:, k]]) @ self.down[chosen[:, k]]
            routed = routed + share[:, k, None] * inner[:, 0]
        return dense, routed, chosen


def test_mixture_of_experts():
    assert_converts(seeded(Experts), random(5, 6))


def test_branches_and_loops_depend_on_data():
    from torch._higher_order_ops.while_loop import while_loop

    def decide(x):
        y = torch.cond(x.sum() > 0, lambda t: t * 2 + 1, lambda t: t.sin() - 3, (x,))
        _, z = while_loop(
            lambda i, z: (i < 5) & (z.abs().max() < 50),
            lambda i, z: (i + 1, z * 1.7 + 0.1),
            (torch.tensor(0), x),
        )
        return y, z

    positive = random(3, 4).abs()
    assert_converts(decide, positive, others=[(-positive,), (random(3, 4, seed=1) * 20,)])
