"""The regularized incomplete gamma functions.

Below x = a + 1 the power series of P converges, above it Lentz' continued fraction of Q
(Abramowitz and Stegun 6.5.29, 6.5.31). Both run for as long as an element changes, so that the
file does not grow with the arguments.
"""

import math
from collections.abc import Callable, Sequence

import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.elementwise import f32, log1p
from litert_torch.converter.lowerings.gamma_functions import lgamma
from litert_torch.converter.lowerings.indices import flattened
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.lowerings.series import reciprocal

aten = torch.ops.aten

_MOST_STEPS = 2000
_SMALL = 3e-7  # of a step: what float32 does not see
_TINY = 1e-30
_LARGE_A = 10.0  # from where on Stirling's series is used

Step = Callable[[Graph, Value, list[Value]], list[Value]]


@lowers(aten.igamma.default, aten.special_gammainc.default)
def igamma(g: Graph, x: Value, other: Value) -> Value:
    """P(x, other), the lower one: 0 at other = 0, 1 at infinity."""
    return _either(g, x, other, upper=False)


@lowers(aten.igammac.default, aten.special_gammaincc.default)
def igammac(g: Graph, x: Value, other: Value) -> Value:
    """Q(x, other) = 1 - P(x, other), the upper one."""
    return _either(g, x, other, upper=True)


def _either(g: Graph, a: Value, x: Value, *, upper: bool) -> Value:
    shape = dims.broadcast(a.shape, x.shape)
    a, x = (flattened(g, tfl.broadcast_to(g, as_float(g, v), shape)) for v in (a, x))
    is_low = tfl.less(g, x, tfl.add(g, a, f32(1.0)))
    density = _density(g, a, x)
    low = tfl.mul(g, density, _series(g, a, tfl.select_v2(g, is_low, x, f32(0.0))))
    beyond = tfl.select_v2(g, is_low, tfl.add(g, a, f32(2.0)), x)
    high = tfl.mul(g, tfl.mul(g, density, a), _fraction(g, a, beyond))
    complement = [tfl.sub(g, f32(1.0), v) for v in (low, high)]
    first, second = (complement[0], high) if upper else (low, complement[1])
    value = tfl.select_v2(g, is_low, first, second)
    return tfl.reshape(g, _at_limits(g, a, x, value, upper=upper), shape)


def _at_limits(g: Graph, a: Value, x: Value, value: Value, *, upper: bool) -> Value:
    """The value where an argument is 0, infinite, negative or NaN."""
    zero, infinity, nan = f32(0.0), f32(math.inf), f32(math.nan)
    none, all_ = (f32(1.0), zero) if upper else (zero, f32(1.0))
    endless_x, endless_a = (tfl.equal(g, v, infinity) for v in (x, a))
    value = tfl.select_v2(g, tfl.not_equal(g, x, x), nan, value)
    value = tfl.select_v2(g, endless_x, all_, value)
    value = tfl.select_v2(g, endless_a, tfl.select_v2(g, endless_x, nan, none), value)
    is_zero = tfl.equal(g, x, zero)
    value = tfl.select_v2(g, is_zero, none, value)
    at_zero = tfl.select_v2(g, tfl.greater(g, x, zero), all_, nan)
    value = tfl.select_v2(g, tfl.equal(g, a, zero), at_zero, value)
    negative = tfl.logical_or(g, tfl.less(g, x, zero), tfl.less(g, a, zero))
    is_invalid = tfl.logical_or(g, negative, tfl.not_equal(g, a, a))
    return tfl.select_v2(g, is_invalid, nan, value)


def _density(g: Graph, a: Value, x: Value) -> Value:
    """x**a exp(-x) / gamma(a + 1); of large a by Stirling's series, which keeps the digits."""
    plain = tfl.sub(g, tfl.mul(g, a, tfl.log(g, x)), x)
    plain = tfl.sub(g, plain, lgamma(g, tfl.add(g, a, f32(1.0))))
    offset = tfl.div(g, tfl.sub(g, x, a), a)
    exponent = tfl.mul(g, a, tfl.sub(g, log1p(g, offset), offset))
    inverse = reciprocal(g, a)
    exponent = tfl.sub(g, exponent, tfl.mul(g, inverse, f32(1 / 12)))
    exponent = tfl.add(g, exponent, tfl.mul(g, tfl.log(g, inverse), f32(0.5)))
    large = tfl.sub(g, exponent, f32(0.5 * math.log(2 * math.pi)))
    is_large = tfl.greater(g, a, f32(_LARGE_A))
    return tfl.exp(g, tfl.select_v2(g, is_large, large, plain))


def _series(g: Graph, a: Value, x: Value) -> Value:
    """The sum of x**n / ((a + 1) ... (a + n)) over n >= 0."""

    def step(body: Graph, n: Value, state: list[Value]) -> list[Value]:
        term, total, _, a, x = state
        term = tfl.mul(body, term, tfl.div(body, x, tfl.add(body, a, n)))
        total = tfl.add(body, total, term)
        change = tfl.div(body, term, total)
        return [term, total, change, a, x]

    one = _ones(g, a)
    return _repeated(g, step, [one, one, one, a, x], 2)[1]


def _fraction(g: Graph, a: Value, x: Value) -> Value:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...))."""

    def step(body: Graph, n: Value, state: list[Value]) -> list[Value]:
        b, c, d, total, _, a = state
        factor = tfl.mul(body, tfl.neg(body, n), tfl.sub(body, n, a))
        b = tfl.add(body, b, f32(2.0))
        d = _not_zero(body, tfl.add(body, tfl.mul(body, factor, d), b))
        c = _not_zero(body, tfl.add(body, b, tfl.div(body, factor, c)))
        d = reciprocal(body, d)
        ratio = tfl.mul(body, d, c)
        total = tfl.mul(body, total, ratio)
        return [b, c, d, total, tfl.abs(body, tfl.sub(body, ratio, f32(1.0))), a]

    b = tfl.sub(g, tfl.add(g, x, f32(1.0)), a)
    d = reciprocal(g, b)
    one = _ones(g, a)
    return _repeated(g, step, [b, tfl.mul(g, one, f32(1 / _TINY)), d, d, one, a], 4)[3]


def _not_zero(g: Graph, x: Value) -> Value:
    return tfl.select_v2(g, tfl.less(g, tfl.abs(g, x), f32(_TINY)), f32(_TINY), x)


def _ones(g: Graph, like: Value) -> Value:
    return tfl.broadcast_to(g, f32(1.0), like.shape)


def _repeated(g: Graph, step: Step, state: Sequence[Value], change_at: int) -> list[Value]:
    """`step` with n = 1, 2, ... while its result number `change_at` is not small."""
    carried = [f32(1.0), *state]
    graphs = [
        Graph(name=name, inputs=[Value(v.type) for v in carried]) for name in ("condition", "step")
    ]
    condition, body = graphs
    n, *rest = condition.inputs
    change = rest[change_at]
    moving = tfl.reduce_any(condition, tfl.greater(condition, change, f32(_SMALL)), [0], False)
    in_time = tfl.less(condition, n, f32(float(_MOST_STEPS)))
    condition.outputs = [tfl.logical_and(condition, moving, in_time)]
    n, *rest = body.inputs
    body.outputs = [tfl.add(body, n, f32(1.0)), *step(body, n, rest)]
    return tfl.while_(g, carried, condition, body)[1:]
