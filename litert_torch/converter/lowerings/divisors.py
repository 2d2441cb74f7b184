"""Greatest common divisors and least common multiples."""

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.arithmetic import magnitude, number
from litert_torch.converter.lowerings.division import div_mode
from litert_torch.converter.lowerings.promotion import computed
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten


@lowers(aten.gcd.default)
def gcd(g: Graph, x: Value, other: Value) -> Value:
    """The greatest common divisor of integers, never negative."""
    return computed(g, _gcd, x, other)


@lowers(aten.lcm.default)
def lcm(g: Graph, x: Value, other: Value) -> Value:
    """The least common multiple of integers, never negative; 0 where one of them is 0."""
    return computed(g, _lcm, x, other)


def _gcd(g: Graph, x: Value, y: Value) -> Value:
    """Euclid's algorithm, until every remainder is 0."""
    shape = dims.broadcast(x.shape, y.shape)
    pair = [broadcast(g, magnitude(g, v), shape) for v in (x, y)]
    going = Graph(name="condition", inputs=[Value(v.type) for v in pair])
    left = tfl.not_equal(going, going.inputs[1], number(y, 0))
    flat = tfl.reshape(going, left, (dims.numel(shape),))
    going.outputs = [tfl.reduce_any(going, flat, [0], False)]
    step = Graph(name="step", inputs=[Value(v.type) for v in pair])
    a, b = step.inputs
    done = tfl.equal(step, b, number(y, 0))
    remainder = tfl.floor_mod(step, a, tfl.select_v2(step, done, number(y, 1), b))
    step.outputs = [tfl.select_v2(step, done, a, b), tfl.select_v2(step, done, b, remainder)]
    return tfl.while_(g, pair, going, step)[0]


def _lcm(g: Graph, x: Value, y: Value) -> Value:
    divisor = tfl.maximum(g, _gcd(g, x, y), number(x, 1))
    return magnitude(g, tfl.mul(g, div_mode(g, x, divisor, "trunc"), y))
