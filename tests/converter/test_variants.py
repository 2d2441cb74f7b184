"""Entry points that share one trace, at sizes of their own."""

import pytest
import torch
from torch.export import Dim

from litert_torch import converter
from litert_torch.converter import Signature, Variant, flatbuffer
from litert_torch.errors import InvalidInputError
from litert_torch.runtime_bindings import LiteRTModel


class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 4)

    def forward(self, x, bias):
        y = self.linear(x)
        ramp = torch.arange(x.shape[1], dtype=torch.float32)
        flat = y.reshape(2, 2 * x.shape[1], 2) * x.shape[1]
        return {"flat": flat, "sum": y.sum(-1) + ramp + bias}


@pytest.fixture
def traced():
    count = Dim("count", min=2, max=64)
    samples = (torch.randn(2, 5, 6), torch.randn(5))
    return Signature("any", Scores().eval(), samples, {}, ({1: count}, {0: count}))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_each_size_is_right(traced, count):
    variants = [Variant("fixed", {("args_0", 1): count}), Variant("any")]
    model = LiteRTModel(flatbuffer.to_bytes(converter.convert_variants(traced, variants)))
    x, bias = torch.randn(2, count, 6), torch.randn(count)
    expected = traced.module(x, bias)
    for name in ("fixed", "any"):
        got = model(x, bias, signature_name=name)
        for key, value in expected.items():
            torch.testing.assert_close(torch.from_numpy(got[key]), value)
    assert [t.shape for t in model.signatures["fixed"].inputs] == [(2, count, 6), (count,)]
    assert model.signatures["any"].inputs[0].shape == (2, -1, 6)


def test_outputs_can_be_left_out(traced):
    (graph,) = converter.convert_variants(
        traced, [Variant("sum", {("args_0", 1): 3}, without={"flat"})]
    )
    assert graph.output_names == ["sum"]
    assert [v.shape for v in graph.outputs] == [(2, 3)]
    assert "RESHAPE" not in [op.kind for op in graph.ops]


def test_static_axes_cannot_be_fixed(traced):
    with pytest.raises(InvalidInputError, match="axis 2 of input x is 6, not a dynamic size"):
        converter.convert_variants(traced, [Variant("a", {("args_0", 2): 3})])
