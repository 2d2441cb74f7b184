"""The scaled complementary error function and quantiles of the normal distribution."""

import math

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings import series_coefficients as fit
from litert_torch.converter.lowerings.elementwise import erfinv, f32
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.series import chebyshev_sum, linear

aten = torch.ops.aten


@lowers(aten.special_erfcx.default)
def erfcx(g: Graph, x: Value) -> Value:
    """exp(x * x) erfc(x), which neither overflows nor vanishes for x > 0."""
    x = as_float(g, x)
    size = tfl.minimum(g, f32(1e30), tfl.abs(g, x))
    y = tfl.div(g, tfl.sub(g, size, f32(2.0)), tfl.add(g, size, f32(2.0)))
    value = tfl.div(g, chebyshev_sum(g, y, fit.ERFCX), linear(g, size, 2.0, 1.0))
    mirrored = tfl.sub(g, tfl.mul(g, tfl.exp(g, tfl.square(g, x)), f32(2.0)), value)
    return tfl.select_v2(g, tfl.less(g, x, f32(0.0)), mirrored, value)


@lowers(aten.special_ndtri.default)
def ndtri(g: Graph, x: Value) -> Value:
    """Where the normal distribution function is x: by erfinv, and by a series in the tails."""
    x = as_float(g, x)
    centred = linear(g, x, 2.0, -1.0)
    centre = tfl.mul(g, erfinv(g, centred), f32(math.sqrt(2)))
    smaller = tfl.minimum(g, x, tfl.sub(g, f32(1.0), x))
    w = tfl.log(g, tfl.mul(g, tfl.mul(g, smaller, f32(4.0)), tfl.sub(g, f32(1.0), smaller)))
    s = tfl.sqrt(g, tfl.neg(g, w))
    low, high = math.sqrt(5), 9.5
    s = tfl.minimum(g, f32(high), tfl.maximum(g, f32(low), s))
    scale = 2 / (high - low)
    tail = chebyshev_sum(g, linear(g, s, scale, -1 - low * scale), fit.NDTRI_TAIL)
    tail = tfl.mul(g, tail, tfl.sign(g, centred))
    in_tail = tfl.logical_and(g, tfl.less(g, w, f32(-5.0)), tfl.greater(g, smaller, f32(0.0)))
    return tfl.select_v2(g, in_tail, tail, centre)
