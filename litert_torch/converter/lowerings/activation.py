"""Activations, in the forms that delegates take."""

import math

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.arithmetic import clamp, number, scaled
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.random_numbers import between

aten = torch.ops.aten

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
_EXACT_SOFTPLUS = 15  # from here on softplus(x) is x in float32


@lowers(aten.relu.default)
def relu(g: Graph, x: Value) -> Value:
    """x where positive, else 0."""
    return clamp(g, x, 0)


@lowers(aten.relu6.default)
def relu6(g: Graph, x: Value) -> Value:
    """x within 0 and 6."""
    return clamp(g, x, 0, 6)


@lowers(aten.hardtanh.default)
def hardtanh(g: Graph, x: Value, min_val: float = -1, max_val: float = 1) -> Value:
    """x within its bounds, in x's dtype."""
    return tfl.cast(g, clamp(g, x, min_val, max_val), x.dtype)


@lowers(aten.sigmoid.default, aten.special_expit.default)
def sigmoid(g: Graph, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return tfl.logistic(g, as_float(g, x))


@lowers(aten.tanh.default)
def tanh(g: Graph, x: Value) -> Value:
    """The hyperbolic tangent."""
    return tfl.tanh(g, as_float(g, x))


@lowers(aten.gelu.default)
def gelu(g: Graph, x: Value, approximate: str = "none") -> Value:
    """x * Phi(x), by erf ("none") or by tanh ("tanh")."""
    return tfl.gelu(g, x, approximate=approximate == "tanh")


@lowers(aten.silu.default)
def silu(g: Graph, x: Value) -> Value:
    """x * sigmoid(x)."""
    return tfl.mul(g, x, tfl.logistic(g, x))


@lowers(aten.mish.default)
def mish(g: Graph, x: Value) -> Value:
    """x * tanh(softplus(x)) = x * n / (n + 2) with n = e * (e + 2), e = exp(x).

    From exp(20) on the fraction is 1 in float32, so larger x, whose n would overflow, are cut.
    """
    e = tfl.exp(g, tfl.minimum(g, f32(20.0), x))
    n = tfl.mul(g, e, tfl.add(g, e, f32(2.0)))
    return tfl.mul(g, x, tfl.div(g, n, tfl.add(g, n, f32(2.0))))


@lowers(aten.hardsigmoid.default)
def hardsigmoid(g: Graph, x: Value) -> Value:
    """relu6(x + 3) / 6."""
    return scaled(g, tfl.relu6(g, tfl.add(g, x, f32(3.0))), 1 / 6)


@lowers(aten.hardswish.default)
def hardswish(g: Graph, x: Value) -> Value:
    """x * relu6(x + 3) / 6."""
    return tfl.hard_swish(g, x)


@lowers(aten.elu.default)
def elu(g: Graph, x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    """Scale * x where positive, else scale * alpha * (exp(input_scale * x) - 1)."""
    if alpha == 1 and input_scale == 1:
        return scaled(g, tfl.elu(g, x), scale)
    below = tfl.elu(g, scaled(g, tfl.minimum(g, f32(0.0), x), input_scale))
    return tfl.add(g, scaled(g, tfl.relu(g, x), scale), scaled(g, below, scale * alpha))


@lowers(aten.selu.default)
def selu(g: Graph, x: Value) -> Value:
    """ELU with the constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return elu(g, x, _SELU_ALPHA, _SELU_SCALE)


@lowers(aten.celu.default)
def celu(g: Graph, x: Value, alpha: float = 1.0) -> Value:
    """x where positive, else alpha * (exp(x / alpha) - 1)."""
    return elu(g, x, alpha, 1, 1 / alpha)


@lowers(aten.leaky_relu.default)
def leaky_relu(g: Graph, x: Value, negative_slope: float = 0.01) -> Value:
    """x where positive, else negative_slope * x."""
    return tfl.leaky_relu(g, x, alpha=float(negative_slope))


@lowers(aten.rrelu.default)
def rrelu(
    g: Graph,
    x: Value,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: object = None,
) -> Value:
    """Leaky ReLU with the mean of the slopes; in training with random ones between them."""
    if training:
        slopes = between(g, x.shape, lower, upper)
        scaled = tfl.mul(g, x, slopes)
        return tfl.select_v2(g, tfl.greater(g, x, f32(0.0)), x, scaled)
    return leaky_relu(g, x, (lower + upper) / 2)


@lowers(aten.prelu.default)
def prelu(g: Graph, x: Value, weight: Value) -> Value:
    """x where positive, else weight * x, with one weight in all or one a channel (axis 1)."""
    if not x.rank:
        row = tfl.reshape(g, x, (1,))
        return tfl.reshape(g, prelu_kernel(g, row, tfl.reshape(g, weight, (1,))), ())
    if x.rank > 1 and dims.numel(weight.shape) != 1:
        weight = tfl.reshape(g, weight, (weight.shape[0], *(1,) * (x.rank - 2)))
    return prelu_kernel(g, x, weight)


@lowers(aten._prelu_kernel.default)
def prelu_kernel(g: Graph, x: Value, weight: Value) -> Value:
    """PRELU where the weight is a constant, which delegates want; it broadcasts to x."""
    if weight.const is not None:
        return tfl.prelu(g, x, weight)
    below = tfl.mul(g, weight, tfl.minimum(g, f32(0.0), x))
    return tfl.add(g, tfl.relu(g, x), below)


@lowers(aten.softplus.default)
def softplus(g: Graph, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    """log(1 + exp(beta * x)) / beta, and x where beta * x exceeds the threshold."""
    y = scaled(g, _softplus(g, scaled(g, x, beta)), 1 / beta)
    if threshold >= _EXACT_SOFTPLUS:
        return y
    return tfl.select_v2(g, tfl.greater(g, scaled(g, x, beta), f32(threshold)), x, y)


def _softplus(g: Graph, x: Value) -> Value:
    """relu(x) + log(1 + exp(-|x|)); what 1 + exp rounds off is added back."""
    e = tfl.exp(g, tfl.neg(g, tfl.abs(g, x)))
    u = tfl.add(g, e, f32(1.0))
    lost = tfl.sub(g, e, tfl.sub(g, u, f32(1.0)))
    return tfl.add(g, tfl.relu(g, x), tfl.add(g, tfl.log(g, u), lost))


@lowers(aten.log_sigmoid.default)
def log_sigmoid(g: Graph, x: Value) -> Value:
    """log(sigmoid(x)) = -softplus(-x)."""
    return tfl.neg(g, _softplus(g, tfl.neg(g, x)))


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(g: Graph, x: Value) -> list[Value]:
    """log(sigmoid(x)), and exp(-|x|), which PyTorch keeps for the backward."""
    return [log_sigmoid(g, x), tfl.exp(g, tfl.neg(g, tfl.abs(g, x)))]


@lowers(aten.hardshrink.default)
def hardshrink(g: Graph, x: Value, lambd: float = 0.5) -> Value:
    """0 within [-lambd, lambd], else x."""
    inside = tfl.less_equal(g, tfl.abs(g, x), f32(lambd))
    return tfl.select_v2(g, inside, f32(0.0), x)


@lowers(aten.softshrink.default)
def softshrink(g: Graph, x: Value, lambd: float = 0.5) -> Value:
    """x moved by lambd towards 0, and 0 within."""
    return tfl.sub(g, x, clamp(g, x, -lambd, lambd))


@lowers(aten.threshold.default)
def threshold(g: Graph, x: Value, threshold: float, value: float) -> Value:
    """x where above the threshold, else `value`."""
    if threshold == value == 0:
        return relu(g, x)
    return tfl.select_v2(g, tfl.less_equal(g, x, number(x, threshold)), number(x, value), x)


@lowers(aten.glu.default)
def glu(g: Graph, x: Value, dim: int = -1) -> Value:
    """The first half along `dim` times the sigmoid of the second."""
    value, gate = tfl.split(g, x, 2, axis=dim)
    return tfl.mul(g, value, tfl.logistic(g, gate))


@lowers(aten.logit.default)
def logit(g: Graph, x: Value, eps: float | None = None) -> Value:
    """log(x / (1 - x)), of x kept eps away from 0 and 1."""
    x = as_float(g, x)
    if eps is not None:
        low, high = f32(eps), f32(1 - eps)
        if eps <= 0.5:
            x = clamp(g, x, eps, 1 - eps)
        else:  # eager takes the lower bound first, then the upper one, which is less
            capped = tfl.select_v2(g, tfl.greater(g, x, high), high, x)
            x = tfl.select_v2(g, tfl.less(g, x, low), low, capped)
    return tfl.log(g, tfl.div(g, x, tfl.sub(g, f32(1.0), x)))


@lowers(aten.sinc.default)
def sinc(g: Graph, x: Value) -> Value:
    """sin(pi x) / (pi x), and 1 at 0."""
    x = as_float(g, x)
    angle = tfl.mul(g, x, f32(math.pi))
    ratio = tfl.div(g, tfl.sin(g, angle), angle)
    return tfl.select_v2(g, tfl.equal(g, x, f32(0.0)), f32(1.0), ratio)
