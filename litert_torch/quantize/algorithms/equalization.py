"""Cross-layer equalization: channels that one scale serves badly are scaled to use it alike.

before: conv_2d(relu(conv_2d(x, w, b)), v)
after:  conv_2d(relu(conv_2d(x, w * f, b * f)), v / f), which computes the same

(After Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction",
section 4.1; here rows of weights have a scale each, so that what is balanced is the rounding of
activations against that of the weights that read them, both predicted from calibration data.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.ir import Op, Value
from litert_torch.quantize.planning import weight_of
from litert_torch.quantize.streams import Stream, columns

STRENGTHS = (0.25, 0.5, 0.75, 1.0)
_ROOM = 1.0
_LARGEST = 64.0
_LEVELS = 255
_WEIGHT_LEVELS = 127


@dataclass(frozen=True)
class ChannelRanges:
    """What calibration saw of an activation's channels.

    Attributes:
        low, high: The ends of each channel's range.
        square: Its mean square.
    """

    low: Array
    high: Array
    square: Array


def factors(stream: Stream, seen: Mapping[Value, ChannelRanges]) -> Array | None:
    """The factor of each channel that leaves the least noise; None where 1 does.

    Noise is what rounding the stream and its readers' weights adds to the readers' results,
    relative to them, as if the errors were independent.
    """
    ranges = [seen[v] for v in stream.values]
    if not ranges:
        return None
    largest = np.max([np.maximum(r.high, -r.low) for r in ranges], axis=0)
    if not largest.any() or not np.isfinite(largest).all():
        return None
    weights = [
        (op.kind, where, np.square(w), np.abs(w))
        for op in stream.readers
        for where, w in columns(op, _weights(op))
    ]
    best, least = None, _noise(np.ones_like(largest), ranges, weights)
    for strength in STRENGTHS:
        tried = _candidate(stream, largest, strength)
        noise = _noise(tried, ranges, weights)
        if noise < least:
            best, least = tried, noise
    return best


def _weights(op: Op) -> Array:
    weight = weight_of(op)
    assert weight is not None
    return weight.read()


def _candidate(stream: Stream, largest: Array, strength: float) -> Array:
    top = float(largest.max())
    if stream.limit is not None:
        top = min(stream.limit, top * _ROOM)
    room = np.where(largest > 0, top / np.maximum(largest * _ROOM, 1e-30), 1)
    wanted = np.minimum(room**strength, _LARGEST)
    return np.where(largest > 0, np.maximum(wanted, 1), 1).astype(np.float32)


def _noise(f: Array, ranges: Sequence[ChannelRanges], weights: Sequence[Any]) -> float:
    """Of the results, where channels are multiplied by f; weights as `factors` lists them."""
    steps = 0.0
    for r in ranges:
        span = max((r.high * f).max(), 0) - min((r.low * f).min(), 0)
        steps += (span / _LEVELS) ** 2 / 12
    square = ranges[-1].square
    total = 0.0
    for kind, where, energy, height in weights:
        each = energy.sum(axis=1)  # [outputs, channels]
        g, s = f[where], square[where]
        rounding = steps * float((each / g**2).sum())
        if kind != "DEPTHWISE_CONV_2D":
            peaks = (height / g).max(axis=(1, 2)) / _WEIGHT_LEVELS
            rounding += float(np.square(peaks).sum() / 12 * (s * g**2).sum() * height.shape[1])
        total += rounding / max(float((each * s).sum()), 1e-30)
    return total
