"""Attention: masks of both kinds, rows that see nothing, causal with L != S, shared key heads."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.op_case import assert_matches_torch, f32, lowered_alone, op_case, run

aten = torch.ops.aten
sdpa = aten.scaled_dot_product_attention.default
flash = aten._scaled_dot_product_flash_attention_for_cpu.default

q, k, v = f32(2, 4, 5, 8), f32(2, 4, 7, 8).flip(0), f32(2, 4, 7, 6).flip(1)
seen = f32(5, 7) > -0.4
seen[2] = False
hidden = torch.zeros(5, 7).masked_fill(~seen, -torch.inf)
finite = torch.zeros(5, 7).masked_fill(~seen, torch.finfo(torch.float32).min)

CASES = [
    op_case(sdpa, q, k, v),
    op_case(sdpa, q[0], k[0], v[0], scale=0.3),
    op_case(sdpa, q[0, 0], k[0, 0], v[0, 0]),
    op_case(sdpa, q, k, v, None, 0.0, True),
    op_case(sdpa, k, q, q, None, 0.0, True),
    op_case(sdpa, q, k, v, seen),
    op_case(sdpa, q, k, v, seen.expand(2, 1, 5, 7).contiguous()),
    op_case(sdpa, q, k, v, hidden),
    op_case(sdpa, q, k, v, finite, scale=-2.0),
    op_case(sdpa, q, k, v, f32(2, 4, 5, 7)),
    op_case(sdpa, q, k[:, :2], v[:, :2], enable_gqa=True),
    op_case(sdpa, q, k[:, :1], v[:, :1], None, 0.0, True, enable_gqa=True),
    op_case(sdpa, q, k[:, :2], v[:, :2], seen, enable_gqa=True),
    op_case(sdpa, q[:, :1], k, v),
    op_case(sdpa, q[None], k[None], v[None], hidden),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


@pytest.mark.parametrize("mask", [seen, hidden, finite], ids=["bool", "float", "finite"])
def test_constant_mask(mask):
    def attend(q, k, v):
        return sdpa(q, k, v, mask)

    assert_matches_torch(op_case(attend, q, k, v), export=True)


def test_flash_attention_for_cpu():
    assert_matches_torch(op_case(flash, q, k, k * 2, 0.0, True))


def test_dropout_zeroes_weights_and_keeps_their_mean():
    v = torch.eye(40)[None]
    q, k = f32(1, 40, 8), f32(1, 40, 8).flip(1)
    (got,) = run(lowered_alone(op_case(sdpa, q, k, v, None, 0.25)), q, k, v)
    weights = torch.softmax(q @ k.mT / 8**0.5, -1).numpy() / 0.75
    is_kept = got != 0
    assert abs(is_kept.mean() - 0.75) < 0.05
    np.testing.assert_allclose(got[is_kept], weights[is_kept], rtol=1e-5)


def attention_module():
    torch.manual_seed(0)
    module = nn.MultiheadAttention(12, 3, batch_first=True).eval()
    for p in module.parameters():
        nn.init.normal_(p, std=0.4)
    return module


@pytest.mark.parametrize("need_weights", [False, True])
def test_multihead_attention_module(need_weights):
    module = attention_module()

    def attend(x, padding):
        y, weights = module(x, x, x, key_padding_mask=padding, need_weights=need_weights)
        return (y, weights) if need_weights else y

    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[1, 4:] = True
    with torch.no_grad():
        assert_matches_torch(op_case(attend, f32(2, 6, 12), padding), export=True)
