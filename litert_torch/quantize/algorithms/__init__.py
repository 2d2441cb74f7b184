"""How the scales of weights are chosen, a file each.

A clipping algorithm takes rows of a weight, [scales, elements a scale], and gives a float32 scale
for each. `gptq` chooses the integers, too, from what the weights are multiplied by.
"""

from collections.abc import Callable

from litert_torch.converter.constants import Array
from litert_torch.quantize.algorithms.mean_square import least_error_scales
from litert_torch.quantize.algorithms.min_max import covering
from litert_torch.quantize.algorithms.octav import octav_scales
from litert_torch.quantize.algorithms.percentile import percentile_scales
from litert_torch.quantize.algorithms.stored import stored_scales
from litert_torch.quantize.numerics import Grid

Clipping = Callable[[Array, Grid], Array]

CLIPPING: dict[str, Clipping] = {
    "min_max": covering,
    "mse": least_error_scales,
    "octav": octav_scales,
    "percentile": percentile_scales,
    "stored": stored_scales,
}

CALIBRATED = ("gptq",)
"""Algorithms that need calibration data."""

NAMES = (*CLIPPING, *CALIBRATED)

__all__ = ["CALIBRATED", "CLIPPING", "NAMES", "Clipping"]
