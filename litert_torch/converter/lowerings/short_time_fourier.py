"""torch.stft and torch.istft: frames by SLICE and CONCATENATION, their transforms by matrices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.complex_values import ComplexValue, interleaved
from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers, lowers_complex
from litert_torch.converter.lowerings.dft import Transform, transformed
from litert_torch.converter.lowerings.fourier import fft_c2r
from litert_torch.converter.lowerings.padding import pad
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_MOST_SLICES = 16  # of a frame; more pieces are picked by a GATHER
_MOST_JOINED = 5  # operands of a CONCATENATION that XNNPACK takes
_NO_WINDOW_HERE = 1e-11  # below, PyTorch refuses to divide by the windows' sum


@dataclass(frozen=True)
class Framing:
    """`count` frames of `size` elements, each `hop` elements after the one before."""

    size: int
    hop: int
    count: int

    @property
    def pieces(self) -> int:
        """Runs of `hop` elements that cover a frame."""
        return -(-self.size // self.hop)

    @property
    def blocks(self) -> int:
        """Runs of `hop` elements that cover the signal."""
        return self.count + self.pieces - 1


@lowers(aten.stft.default)  # where the result is real, as return_complex=False asks
@lowers_complex(aten.stft.default)
def stft(
    g: Graph,
    x: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> ComplexValue | Value:
    """Of x [B, L] or [L]: [B, K, T] or [K, T] with K = n_fft // 2 + 1, or n_fft if not onesided."""
    if isinstance(x, ComplexValue) or isinstance(window, ComplexValue):
        raise UnsupportedCaseError(
            "takes a complex signal or window: transform its parts by themselves"
        )
    if align_to_window:
        raise UnsupportedCaseError("align_to_window is not supported: pad the signal instead")
    signal = tfl.reshape(g, x, (1, *x.shape)) if x.rank == 1 else x
    hop = hop_length or n_fft // 4
    framing = Framing(n_fft, hop, 1 + (int(x.shape[-1]) - n_fft) // hop)
    frames = _framed(g, signal, framing)
    weights = _centred(g, window, win_length or n_fft, n_fft)
    if weights is not None:
        frames = tfl.mul(g, frames, weights)
    results = n_fft // 2 + 1 if onesided in (None, True) else n_fft
    scale = n_fft**-0.5 if normalized else 1.0
    real, imag = transformed(g, (frames, None), Transform(n_fft, results, -1, scale))
    assert imag is not None
    z = ComplexValue(real, imag).map(lambda v: tfl.transpose(g, v, (0, 2, 1)))
    if x.rank == 1:
        z = z.map(lambda v: tfl.reshape(g, v, v.shape[1:]))
    return interleaved(g, z) if return_complex is False else z


@lowers(aten.stft.center)
@lowers_complex(aten.stft.center)
def stft_center(
    g: Graph,
    x: Value,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> ComplexValue | Value:
    """As `stft`; `center` first pads by half a frame on both sides."""
    if center:
        signal = tfl.reshape(g, x, (1, *([1] * (x.rank == 1)), *x.shape))
        signal = pad(g, signal, [n_fft // 2] * 2, pad_mode)
        x = tfl.reshape(g, signal, (*x.shape[:-1], signal.shape[-1]))
    rest = (window, normalized, onesided, return_complex, align_to_window)
    return stft(g, x, n_fft, hop_length, win_length, *rest)


@lowers_complex(aten.istft.default)
def istft(
    g: Graph,
    x: ComplexValue,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Value | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Value:
    """Of x [B, K, T] or [K, T]: overlapping frames added up, over the sum of squared windows."""
    if return_complex or isinstance(window, ComplexValue):
        raise UnsupportedCaseError("gives a complex signal, or takes a complex window")
    z = x if x.rank == 3 else x.map(lambda v: tfl.reshape(g, v, (1, *v.shape)))
    by_frame = z.map(lambda v: tfl.transpose(g, v, (0, 2, 1)))
    framing = Framing(n_fft, hop_length or n_fft // 4, int(z.shape[2]))
    frames = fft_c2r(g, by_frame, [2], 1 if normalized else 2, n_fft)
    weights = _centred(g, window, win_length or n_fft, n_fft)
    if weights is not None:
        frames = tfl.mul(g, frames, weights)
    whole = n_fft + framing.hop * (framing.count - 1)
    start = n_fft // 2 if center else 0
    end = whole - start if length is None else start + int(length)
    stop = min(end, whole)
    y = _overlapped(g, frames, framing, slice(start, stop))
    y = tfl.mul(g, y, _envelope(g, weights, framing, slice(start, stop)))
    y = tfl.pad(g, y, [(0, 0), (0, end - stop)])
    return tfl.reshape(g, y, y.shape[1:]) if x.rank == 2 else y


def _centred(g: Graph, window: Value | None, length: int, size: int) -> Value | None:
    """The window [length], or ones, between zeros: [1, size]; None where it is all ones."""
    if window is None and length == size:
        return None
    values = const(np.ones(length), DType.FLOAT32) if window is None else window
    before = (size - length) // 2
    after = size - length - before
    row = tfl.reshape(g, values, (1, length))
    if row.const is None or length == size:
        return tfl.pad(g, row, [(0, 0), (before, after)])
    pads = ((0, 0), (before, after))
    key = ("pad", pads)
    return const(row.const.derive(key, lambda w: np.pad(w, pads), shape=(1, size)))


def _framed(g: Graph, x: Value, framing: Framing) -> Value:
    """x [B, L] as frames [B, T, size]."""
    batch, length = x.shape
    wanted = framing.blocks * framing.hop
    x = tfl.slice(g, x, (0, 0), (batch, min(int(length), wanted)))
    x = tfl.pad(g, x, [(0, 0), (0, wanted - int(x.shape[1]))])
    blocks = tfl.reshape(g, x, (batch, framing.blocks, framing.hop))
    if framing.pieces > _MOST_SLICES:
        at = np.arange(framing.count)[:, None] + np.arange(framing.pieces)
        picked = tfl.gather(g, blocks, const(at, DType.INT32), axis=1)
        frames = tfl.reshape(g, picked, (batch, framing.count, framing.pieces * framing.hop))
    else:
        part = (batch, framing.count, framing.hop)
        pieces = [tfl.slice(g, blocks, (0, i, 0), part) for i in range(framing.pieces)]
        frames = _side_by_side(g, pieces)
    return tfl.slice(g, frames, (0, 0, 0), (batch, framing.count, framing.size))


def _side_by_side(g: Graph, values: list[Value]) -> Value:
    while len(values) > 1:
        groups = [values[i : i + _MOST_JOINED] for i in range(0, len(values), _MOST_JOINED)]
        values = [tfl.concatenation(g, group, axis=-1) for group in groups]
    return values[0]


def _overlapped(g: Graph, frames: Value, framing: Framing, kept: slice) -> Value:
    """Frames [B, T, size] added up where they overlap, cut to `kept`: [B, N]."""
    batch = frames.shape[0]
    missing = framing.pieces * framing.hop - framing.size
    frames = tfl.pad(g, frames, [(0, 0), (0, 0), (0, missing)])
    total = None
    for i in range(framing.pieces):
        part = (batch, framing.count, framing.hop)
        piece = tfl.slice(g, frames, (0, 0, i * framing.hop), part)
        placed = tfl.pad(g, piece, [(0, 0), (i, framing.pieces - 1 - i), (0, 0)])
        total = placed if total is None else tfl.add(g, total, placed)
    assert total is not None
    line = tfl.reshape(g, total, (batch, framing.blocks * framing.hop))
    return tfl.slice(g, line, (0, kept.start), (batch, kept.stop - kept.start))


def _envelope(g: Graph, weights: Value | None, framing: Framing, kept: slice) -> Value:
    """One over the sum of the squares of overlapping windows: [1, N]."""
    shape = (1, kept.stop - kept.start)
    weights = const(np.ones((1, framing.size)), DType.FLOAT32) if weights is None else weights
    if weights.const is not None:
        key = ("envelope", framing, kept.start, kept.stop)
        function = _inverse_envelope(framing, kept)
        return const(weights.const.derive(key, function, shape=shape))
    squares = tfl.reshape(g, tfl.square(g, weights), (1, 1, framing.size))
    every = tfl.broadcast_to(g, squares, (1, framing.count, framing.size))
    return tfl.div(g, const(1.0, DType.FLOAT32), _overlapped(g, every, framing, kept))


def _inverse_envelope(framing: Framing, kept: slice) -> Callable[[Array], Array]:
    def compute(window: Array) -> Any:
        total = np.zeros(framing.size + framing.hop * (framing.count - 1))
        for i in range(framing.count):
            total[i * framing.hop : i * framing.hop + framing.size] += window[0].astype("f8") ** 2
        part = total[kept]
        return 1 / np.where(part > _NO_WINDOW_HERE, part, np.inf)

    return compute
