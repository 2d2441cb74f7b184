"""Biases that make up for what rounded weights add on average.

(Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias Correction",
section 4.2, with the inputs' mean measured on calibration data.)
"""

from __future__ import annotations

import numpy as np

from litert_torch.converter.constants import Array, Constant, combined_key
from litert_torch.converter.ir import Value
from litert_torch.quantize.weights import restored


def corrected(bias: Constant, kind: str, w: Constant, small: Value, mean: Array) -> Constant:
    """The bias plus the mean of (w - small) x, computed when it is read.

    Args:
        bias: float32 [output channels].
        kind: FULLY_CONNECTED, CONV_2D or DEPTHWISE_CONV_2D.
        w: The float weights.
        small: The same weights quantized.
        mean: float32 [input channels]; what padding adds to it is neglected.
    """
    assert small.const is not None

    def correct(b: Array, weights: Array) -> Array:
        return (b + _mean_error(kind, weights - restored(small), mean)).astype(np.float32)

    key = combined_key("corrected", kind, small.const.key, mean.tobytes())
    return bias.derive(key, correct, w)


def _mean_error(kind: str, error: Array, mean: Array) -> Array:
    """What (w - small) x is on average, for each output channel."""
    if kind == "FULLY_CONNECTED":
        return np.asarray(error @ mean)
    if kind == "DEPTHWISE_CONV_2D":
        total = error.sum(axis=(0, 1, 2))
        return np.asarray(total * np.repeat(mean, total.size // mean.size))
    total = error.sum(axis=(1, 2))  # [output channels, input channels of a group]
    groups = mean.size // total.shape[1]
    means = np.repeat(mean.reshape(groups, -1), len(total) // groups, axis=0)
    return np.asarray(np.einsum("oi,oi->o", total, means))
