"""What surrounds the ops: dtypes, names, signatures, state, folding, errors."""

import os

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import litert_torch
from litert_torch.errors import UnsupportedCaseError, UnsupportedOpError
from tests.cases.whole_model import (
    Calls,
    assert_converts,
    assert_same,
    op_names,
    random,
    seeded,
    whole_numbers,
)


def test_half_precision_module():
    net = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(48, 5)
        )
    ).half()
    assert_converts(net, random(1, 3, 7, 9).half(), tolerance=5e-3)


class BrainFloats(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(11, 8), nn.RMSNorm(8)
        self.head = nn.Linear(8, 11, bias=False)

    def forward(self, i):
        return self.head(self.norm(self.table(i))).float()


def test_bfloat16_checkpoint():
    assert_converts(seeded(BrainFloats).bfloat16(), whole_numbers(0, 11, 2, 5), tolerance=3e-2)


class Nested(nn.Module):
    def forward(self, image, extra=None, *, state=None):
        y = image.mean(-1) + extra["b"] * 2 - extra["a"]
        return {"logits": y, "state": [state + 1, (state * 2, y.max(-1).values)]}


def test_names_come_from_keys():
    args = random(2, 3, 5), {"b": random(2, 3, seed=1), "a": random(2, 3, seed=2)}
    kwargs = {"state": random(4)}
    edge = litert_torch.convert(Nested().eval(), args, kwargs)
    outputs = [t.name for t in edge.signatures["serving_default"].outputs]
    assert outputs == ["logits", "state_0", "state_1_0", "state_1_1"]
    names = [t.name for t in edge.signatures["serving_default"].inputs]
    assert "state" in names
    values = {"args_0": args[0], "args_1": args[1]["b"], "args_2": args[1]["a"], **kwargs}
    got = edge(**{n: values[n].numpy() for n in names})
    assert_same(got, Nested()(*args, **kwargs))


def test_an_output_may_be_an_input_a_constant_or_another_output():
    constant = torch.arange(3.0)

    def forward(x, h):
        a = x + h
        return a.sum(1), a, a, x, constant.clone(), a.view(-1)

    assert_converts(forward, random(2, 5), random(2, 5, seed=1))


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = parametrizations.weight_norm(nn.Conv1d(3, 4, 3))
        self.linear = parametrizations.spectral_norm(nn.Linear(5, 6))
        self.table, self.head = nn.Embedding(7, 6), nn.Linear(6, 7, bias=False)
        self.head.weight = self.table.weight
        self.again = nn.Conv1d(4, 2, 1)

    def forward(self, x, i):
        return self.again(self.conv(x)), self.head(self.linear(x.mean(1)[:, :5]) + self.table(i))


def test_weights_that_are_computed_or_shared():
    assert_converts(seeded(Normalized), random(2, 3, 9), torch.tensor([1, 6]))


def test_a_shared_weight_is_stored_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(500, 64), nn.Linear(64, 500, bias=False)
            self.head.weight = self.table.weight

        def forward(self, i):
            return self.head(self.table(i))

    edge = assert_converts(seeded(Tied), torch.tensor([[3, 499]]))
    assert len(edge.model_content()) < 1.2 * 500 * 64 * 4


def test_signatures_share_weights():
    net = seeded(lambda: nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)))
    one = random(1, 128)
    edge = (
        litert_torch.signature("prefill", net, (random(8, 128),))
        .signature("decode", net, (one,))
        .convert()
    )
    assert set(edge.signatures) == {"prefill", "decode"}
    assert len(edge.model_content()) < 300_000
    assert_same(edge(one.numpy(), signature_name="decode"), net(one))


def test_what_depends_on_weights_only_is_folded():
    bank, query = random(5, 6), random(1, 1, 6, seed=1)

    def forward(x):
        angle = torch.arange(5.0)[:, None] * torch.exp(torch.arange(6.0) * -0.3)
        attention = (query @ bank.t()).softmax(-1) @ bank
        return x + torch.sin(angle) + attention * query.softmax(1)

    assert len(op_names(assert_converts(forward, random(1, 5, 6)))) <= 2


def test_calling_again_and_again_keeps_no_memory():
    edge = litert_torch.convert(seeded(lambda: nn.Conv2d(3, 16, 3)), (random(1, 3, 64, 64),))
    x = random(1, 3, 64, 64).numpy()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(50):
        edge(x)
    before = resident()
    for _ in range(300):
        edge(x)
    assert resident() - before < 20e6  # an output of 250 kB kept each time would be 75 MB


@torch.library.custom_op("cases::scaled", mutates_args=())
def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor + 1


@scaled.register_fake
def _(x, factor):
    return torch.empty_like(x)


class Scaled(nn.Module):
    def forward(self, x):
        return scaled(x, 2.5).relu()


def test_an_unknown_op_is_named_with_its_line():
    with pytest.raises(UnsupportedOpError, match=r"cases\.scaled\.default .*test_conversion_cases"):
        litert_torch.convert(Scaled().eval(), (random(2, 4),))


def test_boxes_as_many_as_the_data_decides_are_refused_with_a_way_out():
    from torchvision.ops import nms

    corner = random(12, 2).abs() * 10
    boxes = torch.cat([corner, corner + 2], 1)
    with pytest.raises(
        UnsupportedCaseError, match=r"torchvision::nms.*litert_torch\.detection\.nms"
    ):
        litert_torch.convert(Calls(lambda b, s: b[nms(b, s, 0.4)]).eval(), (boxes, random(12)))


class Cut(nn.Module):
    def forward(self, x, n):
        length = n.item()
        torch._check(length >= 1)
        torch._check(length <= x.shape[1])
        return x[:, :length] * 2


def test_a_length_that_the_data_decides_is_refused_with_its_line():
    with pytest.raises(UnsupportedCaseError, match=r"test_conversion_cases\.py:\d+.*size"):
        litert_torch.convert(Cut().eval(), (random(2, 9), torch.tensor(4)))


def test_numpy_results():
    edge = litert_torch.convert(Calls(lambda x: x + 1).eval(), (random(2, 3),))
    assert isinstance(edge(random(2, 3).numpy()), np.ndarray)
