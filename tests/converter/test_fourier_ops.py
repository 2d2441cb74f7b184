"""torch.fft and torch.stft against PyTorch."""

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch.converter.lowerings import dft
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, c64, f32, graph_of, in_numpy, op_case

aten = torch.ops.aten
fft = torch.fft

LONG = [129, 256, 400, 1009, 1024]

PRIMITIVES = [
    op_case(aten._fft_r2c.default, f32(2, 3, 10), [2], 0, True),
    op_case(aten._fft_r2c.default, f32(2, 3, 9), [2], 1, False),
    op_case(aten._fft_r2c.default, f32(4, 6, 5), [0, 1], 2, True),
    op_case(aten._fft_c2c.default, c64(2, 7), [1], 0, True),
    op_case(aten._fft_c2c.default, c64(3, 4, 5), [0, 2], 2, False),
    op_case(aten._fft_c2c.default, c64(2, 3), [], 2, False),
    op_case(aten._fft_c2r.default, c64(2, 6), [1], 2, 10),
    op_case(aten._fft_c2r.default, c64(2, 6), [1], 0, 11),
    op_case(aten._fft_c2r.default, c64(4, 3, 2), [2, 0], 1, 7),
    *(op_case(aten._fft_r2c.default, f32(2, n), [1], 0, True) for n in LONG),
    *(op_case(aten._fft_c2c.default, c64(2, n), [1], 0, False) for n in LONG),
    *(op_case(aten._fft_c2r.default, c64(2, n // 2 + 1), [1], 2, n) for n in LONG),
]


@pytest.mark.parametrize("case", PRIMITIVES, ids=str)
def test_primitives(case):
    assert_matches_torch(case, rtol=1e-5, atol=1e-4)


def _window(size):
    return torch.hamming_window(size, periodic=False)


SHORT_TIME = [
    op_case(aten.stft.default, f32(2, 100), 16, 4, 16, _window(16)),
    op_case(aten.stft.default, f32(83), 16, 6, 12, _window(12), True),
    op_case(aten.stft.default, f32(2, 60), 16, 5, onesided=False, return_complex=True),
    op_case(aten.stft.default, f32(2, 60), 16, 20, return_complex=False),
    op_case(aten.stft.default, f32(1, 60), 32, 1, return_complex=True),
    op_case(aten.stft.center, f32(2, 60), 16, 8, 16, _window(16), True, "reflect"),
    op_case(aten.stft.center, f32(60), 16, 8, 16, _window(16), True, "constant"),
    op_case(aten.istft.default, c64(2, 9, 12), 16, 4, 16, _window(16)),
    op_case(aten.istft.default, c64(9, 12), 16, 6, 12, _window(12), True, True),
    op_case(aten.istft.default, c64(2, 9, 12), 16, 5, 16, _window(16), False),
    op_case(aten.istft.default, c64(2, 16, 7), 16, 4, 16, _window(16), onesided=False),
    op_case(aten.istft.default, c64(2, 9, 12), 16, 4, 16, _window(16), length=37),
    op_case(aten.istft.default, c64(2, 9, 12), 16, 4, length=70),
]


@pytest.mark.parametrize("case", SHORT_TIME, ids=str)
def test_short_time(case):
    if case.kwargs.get("return_complex", True) and case.op is not aten.istft.default:
        case.kwargs["return_complex"] = True
    assert_matches_torch(case, rtol=1e-4, atol=1e-4)


class Everything(torch.nn.Module):
    """The parts of torch.fft that PyTorch makes of the three primitives."""

    def forward(self, x, z):
        return (
            *(fft.rfft(x), fft.rfft(x, n=5, dim=1, norm="ortho"), fft.fft(x), fft.ifft(z)),
            *(fft.fft2(x), fft.rfft2(x), fft.irfft2(z), fft.ifft2(z), fft.fftn(x), fft.irfft(z)),
            *(fft.hfft(x), fft.ihfft(x), fft.irfft(z, n=9), fft.fftshift(x), fft.ifftshift(z)),
            fft.irfftn(z, norm="forward"),
        )


def test_all_of_torch_fft():
    args = (f32(2, 3, 8), c64(2, 3, 5))
    got = litert_torch.convert(Everything().eval(), args)(*map(in_numpy, args))
    for g, w in zip(got, Everything()(*args), strict=True):
        np.testing.assert_allclose(g, in_numpy(w), rtol=1e-4, atol=1e-4)


class Denoiser(torch.nn.Module):
    """stft, a gain, istft, with a window that is a constant and a batch that is dynamic."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))

    def forward(self, x):
        z = torch.stft(x, 64, 16, window=self.window, return_complex=True)
        return torch.istft(z / (1 + z.abs()), 64, 16, window=self.window)


def test_a_model_around_a_spectrogram_for_any_batch():
    batch = torch.export.Dim("batch", max=8)
    model = litert_torch.convert(
        Denoiser().eval(), (f32(2, 320),), dynamic_shapes={"x": {0: batch}}
    )
    x = f32(3, 320)
    np.testing.assert_allclose(model(x.numpy()), Denoiser()(x).numpy(), rtol=1e-4, atol=1e-4)


def test_a_long_transform_is_two_short_ones():
    graph = graph_of(op_case(aten._fft_r2c.default, f32(1, 1024), [1], 0, True))
    weights = [op.inputs[1].shape for op in graph.ops if op.kind == "FULLY_CONNECTED"]
    assert weights == [(64, 32), (34, 64)]


def test_a_short_transform_and_one_of_prime_length_are_one_matrix():
    for size in (dft.DENSE_UP_TO, 1009):
        graph = graph_of(op_case(aten._fft_r2c.default, f32(1, size), [1], 0, True))
        assert sum(op.kind == "FULLY_CONNECTED" for op in graph.ops) == 1


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (op_case(aten.stft.default, c64(2, 60), 16, return_complex=True), "complex signal"),
        (
            op_case(aten.istft.default, c64(2, 16, 12), 16, 4, onesided=False, return_complex=True),
            "complex",
        ),
    ],
    ids=str,
)
def test_refused(case, reason):
    with pytest.raises(UnsupportedCaseError, match=reason):
        graph_of(case)
