"""Complex numbers: each op against PyTorch, and what a whole model does with them."""

import pytest
import torch

import litert_torch
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.complex_parts import BY_PART
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, c64, f32, graph_of, in_numpy, op_case, positive

aten = torch.ops.aten

MAKING = [
    op_case(aten.view_as_complex.default, f32(3, 5, 2)),
    op_case(aten.view_as_real.default, c64(3, 5)),
    op_case(aten.complex.default, f32(3, 5), f32(1, 5)),
    op_case(aten.polar.default, positive(3, 5), f32(3, 5) * 4),
    op_case(aten.real.default, c64(3, 5)),
    op_case(aten.imag.default, c64(3, 5)),
    op_case(aten._conj.default, c64(3, 5)),
    op_case(aten.conj_physical.default, c64(3, 5)),
    op_case(aten.to.dtype, f32(3, 5), torch.complex64),
    op_case(aten._to_copy.default, c64(3, 5), dtype=torch.complex64),
    op_case(aten.zeros_like.default, c64(3, 5)),
    op_case(aten.ones_like.default, c64(3, 5), dtype=torch.int32),
    op_case(aten.new_zeros.default, c64(3, 5), [2, 4]),
    op_case(aten.full.default, [2, 3], 1.5 - 2j),
]

FUNCTIONS = [
    op_case(aten.abs.default, c64(3, 5)),
    op_case(aten.angle.default, c64(3, 5)),
    op_case(aten.sgn.default, torch.cat([c64(3, 5), torch.zeros(1, 5, dtype=torch.complex64)])),
    op_case(aten.exp.default, c64(3, 5)),
    op_case(aten.log.default, c64(3, 5)),
    op_case(aten.sqrt.default, c64(3, 5)),
    op_case(aten.reciprocal.default, c64(3, 5)),
    op_case(aten.square.default, c64(3, 5)),
    op_case(aten.pow.Tensor_Scalar, c64(3, 5), 3),
    op_case(aten.pow.Tensor_Scalar, c64(3, 5), -2),
    op_case(aten.eq.Tensor, c64(3, 5), c64(3, 5).real.to(torch.complex64)),
]

ARITHMETIC = [
    op_case(aten.add.Tensor, c64(3, 5), c64(5), alpha=-2),
    op_case(aten.add.Tensor, f32(3, 5), c64(5)),
    op_case(aten.add.Tensor, c64(3, 5), 2.5),
    op_case(aten.sub.Tensor, c64(3, 5), f32(3, 1)),
    op_case(aten.rsub.Scalar, c64(3, 5), 1 - 2j),
    op_case(aten.neg.default, c64(3, 5)),
    op_case(aten.mul.Tensor, c64(3, 5), c64(4, 1, 5)),
    op_case(aten.mul.Tensor, f32(3, 5), c64(5)),
    op_case(aten.mul.Tensor, c64(3, 5), f32(3, 1)),
    op_case(aten.mul.Tensor, c64(3, 5), 1j),
    op_case(aten.mul.Tensor, f32(3, 5), -2j),
    op_case(aten.mul.Tensor, f32(3, 5), 1 + 2j),
    op_case(aten.div.Tensor, c64(3, 5), c64(5)),
    op_case(aten.div.Tensor, c64(3, 5), positive(3, 1)),
    op_case(aten.div.Tensor, f32(3, 5), c64(5)),
    op_case(aten.div.Tensor, c64(3, 5), 2 - 1j),
    op_case(aten.matmul.default, c64(2, 3, 4), c64(4, 5)),
    op_case(aten.bmm.default, c64(2, 3, 4), c64(2, 4, 5)),
    op_case(aten.mv.default, c64(3, 4), c64(4)),
    op_case(aten.linear.default, c64(2, 3), c64(5, 3), c64(5)),
]

PARTS = [
    op_case(aten.view.default, c64(2, 3, 4), [6, -1]),
    op_case(aten.permute.default, c64(2, 3, 4), [2, 0, 1]),
    op_case(aten.slice.Tensor, c64(5, 7), 1, -6, 6, 2),
    op_case(aten.select.int, c64(2, 3, 4), 1, -1),
    op_case(aten.index.Tensor, c64(5, 3), [torch.tensor([3, 0, 3])]),
    op_case(aten.expand.default, c64(3, 1), [2, 3, 4]),
    op_case(aten.cat.default, [c64(2, 3), f32(1, 3)], 0),
    op_case(aten.stack.default, [c64(2, 3), c64(2, 3) * 2], 1),
    op_case(aten.split.Tensor, c64(5, 3), 2),
    op_case(aten.roll.default, c64(2, 5), [2], [1]),
    op_case(aten.sum.dim_IntList, c64(2, 3, 4), [1, 2]),
    op_case(aten.mean.dim, c64(2, 3), [0], True),
    op_case(aten.where.self, f32(2, 3) > 0, c64(2, 3), f32(2, 3)),
    op_case(aten.where.ScalarOther, f32(2, 3) > 0, c64(2, 3), 7.5),
    op_case(aten.constant_pad_nd.default, c64(2, 3), [1, 2], 4.0),
    op_case(aten.pad.default, c64(1, 2, 5), [2, 1], "reflect"),
    op_case(aten.pad.default, c64(2, 3), [1, 0], "constant", -2.0),
    op_case(aten.slice_scatter.default, c64(4, 3), f32(2, 3), 0, 1, 3),
    op_case(aten.masked_fill.Scalar, c64(2, 3), f32(2, 3) > 0, 3.0),
]


@pytest.mark.parametrize("case", [*MAKING, *FUNCTIONS, *ARITHMETIC, *PARTS], ids=str)
def test_values(case):
    assert_matches_torch(case, rtol=2e-5, atol=2e-5)


def test_every_op_done_by_parts_has_a_lowering_for_real_tensors():
    assert not set(BY_PART) - set(lowers.all())


@pytest.mark.parametrize("power", [0.5, 9, 0])
def test_powers_that_are_not_products_are_refused(power):
    with pytest.raises(UnsupportedCaseError, match="whole powers"):
        graph_of(op_case(aten.pow.Tensor_Scalar, c64(3), power))


class Rotation(torch.nn.Module):
    """A rotary embedding as complex products, with complex inputs, constants and results."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(3.0), torch.tensor([1.0, 0.1]))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x, z):
        rotated = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * self.turns
        return torch.view_as_real(rotated).flatten(-2), z * self.turns.conj(), z.abs() ** 2


def test_a_model_with_complex_inputs_constants_and_results():
    args = (f32(2, 3, 4), c64(3, 2))
    model = litert_torch.convert(Rotation().eval(), args)
    got = model(*map(in_numpy, args))
    for g, w in zip(got, Rotation()(*args), strict=True):
        torch.testing.assert_close(torch.from_numpy(g), torch.from_numpy(in_numpy(w)))
    assert model.signatures["serving_default"].inputs[1].shape == (3, 2, 2)


class SpectralLayer(torch.nn.Module):
    """A Fourier neural operator's layer: complex weights, low modes written into zeros."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(c64(3, 4, 5))

    def forward(self, x):
        modes = torch.fft.rfft(x)
        low = torch.zeros(x.shape[0], 4, modes.shape[-1], dtype=torch.cfloat)
        low[:, :, :5] = torch.einsum("bix,iox->box", modes[:, :, :5], self.weight)
        return torch.fft.irfft(low, n=x.shape[-1])


def test_a_spectral_layer_for_any_batch():
    batch = torch.export.Dim("batch", max=8)
    module = SpectralLayer().eval()
    model = litert_torch.convert(module, (f32(2, 3, 16),), dynamic_shapes={"x": {0: batch}})
    x = f32(4, 3, 16)
    torch.testing.assert_close(torch.from_numpy(model(x.numpy())), module(x).detach())


def test_verification_takes_complex_tensors():
    litert_torch.convert(Rotation().eval(), (f32(2, 3, 4), c64(3, 2)), verify=True)
