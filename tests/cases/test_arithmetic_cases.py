"""Arithmetic whose meaning converters changed: integers, rounding, NaN, omitted factors."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.whole_model import assert_converts, random, seeded, whole_numbers

INT32 = torch.int32


def test_powers():
    def powers(x, n, e):
        positive = x.abs()
        return (
            x**2, x**3, positive**e, 2.0**x, n**2, 2 ** n.clamp(min=0),
            torch.pow(x, n.float()), positive**-0.5, x**0,
        )  # fmt: skip

    assert_converts(
        powers, random(3, 5), whole_numbers(-3, 4, 3, 5, dtype=INT32), random(3, 5, seed=1)
    )


def test_factors_are_kept():
    def scaled(x, y, b):
        return (
            torch.add(x, y, alpha=-3),
            torch.sub(x, y, alpha=2.5),
            torch.rsub(x, y, alpha=4),
            torch.addmm(b, x, y.t(), beta=0.5, alpha=-2),
            torch.addcmul(x, x, y, value=-0.7),
            torch.addcdiv(x, y, y.abs() + 1, value=3),
            torch.add(x, 2, alpha=5),
            torch.baddbmm(b[None], x[None], y.t()[None], beta=-1, alpha=0.25),
        )

    assert_converts(scaled, random(4, 6), random(4, 6, seed=1), random(4, 4))


def test_floats_from_integers():
    def functions(n, x):
        return (
            torch.log2(n), torch.log10(n.float() + 1), torch.log1p(x.abs()), torch.expm1(x * 1e-4),
            torch.sqrt(n), n / 4, n.float().mean(), n.sum(), torch.sigmoid(n), torch.exp2(n),
        )  # fmt: skip

    assert_converts(functions, whole_numbers(1, 9, 3, 5, dtype=INT32), random(3, 5), tolerance=1e-5)


def test_scalars_keep_rank_0():
    def scalars(x, t):
        low = torch.full((), -1e9)
        w = torch.where(torch.ones(5, 5, dtype=torch.bool).tril(), x, low)
        return w.softmax(-1), w.max(), x[2, 3] * t, torch.where(x > t, 1, 0), (x >= x.mean()).sum()

    assert_converts(scalars, random(5, 5), torch.tensor(0.3))


def test_bounded_activations():
    edges = torch.tensor(
        [[-9.0, -3.0, -1.0, -0.5, 0.0, 0.1, 0.5], [1.0, 2.5, 3.0, 5.9, 6.0, 7.0, 40.0]]
    )

    def activations(x):
        return (
            F.hardtanh(x, 0, 1), F.hardsigmoid(x), F.hardswish(x), F.relu6(x),
            F.hardtanh(x, -2, 0.5), x.clamp(min=-1), x.clamp(max=2.5), F.threshold(x, 0.1, -7),
            F.hardshrink(x), F.softshrink(x), F.tanhshrink(x),
            torch.clamp(x, x * 0 - 1, x.abs() + 1),
        )  # fmt: skip

    assert_converts(activations, edges)


def test_smooth_activations():
    prelu = nn.PReLU(4)
    prelu.weight.data = torch.tensor([0.1, -0.3, 2.0, 0.7])

    def activations(x):
        return (
            prelu(x), F.glu(x, 1), F.softplus(x, beta=3.0, threshold=2.0), F.gelu(x),
            F.gelu(x, approximate="tanh"), F.mish(x), F.celu(x, 0.7), F.selu(x), F.elu(x, 1.7),
            torch.erf(x), torch.erfinv(x / 20), torch.logit(x.sigmoid(), 1e-3),
            F.logsigmoid(x * 20), F.silu(x), F.leaky_relu(x, -0.2), F.rrelu(x),
        )  # fmt: skip

    assert_converts(activations, random(2, 4, 3, 5) * 3)


def test_bits_and_booleans():
    def logic(a, b, n):
        return (
            a & b, a ^ b, ~a, a.any(0), b.all(1, keepdim=True), a.cumsum(1), a.sum(),
            torch.logical_or(a, n > 1), n & 6, n | 1, n ^ 3, ~n, n << 2, n >> 1, a.float() * 2,
            a.to(INT32) - b.to(INT32), a == b, torch.count_nonzero(n, 1),
        )  # fmt: skip

    numbers = whole_numbers(-9, 9, 3, 5, dtype=INT32)
    assert_converts(logic, random(3, 5) > 0, random(3, 5, seed=1) > -0.5, numbers)


def test_division_of_negative_numbers():
    def quotients(n, d, x):
        return (
            n // d, n % d, torch.div(n, d, rounding_mode="trunc"), torch.fmod(n, d),
            torch.remainder(x, 1.5), torch.fmod(x, 1.5), x // 0.7,
            torch.div(x, 0.7, rounding_mode="trunc"),
        )  # fmt: skip

    n, d = torch.tensor([[-7, 7, -7, 7, -8, 0]]), torch.tensor([[2, -2, -2, 2, 4, 3]])
    assert_converts(quotients, n, d, random(2, 6) * 4)


def test_rounding_and_casts():
    values = [-3.5, -2.5, -1.5, -0.5, -0.49, 0.0, 0.25, 0.5, 1.5, 2.5, 2.75, -3.99]

    def rounded(x):
        return (
            x.round(), x.round(decimals=1), x.trunc(), x.frac(), x.ceil(), x.floor(), x.sign(),
            x.to(INT32), (x * 30).to(torch.int8), x.abs().to(torch.uint8), x.to(torch.int64),
        )  # fmt: skip

    assert_converts(rounded, torch.tensor([values]))


def test_integers_beyond_32_bits_stay_exact():
    large = torch.tensor([2**33 + 7, -5])

    def arithmetic(n):
        return n * 3 + 1, (n * 2654435761) % 1000003, n + large[0], (n > 2**32).float()

    assert_converts(arithmetic, torch.tensor([[5, -9, 3_000_000_000, 2**40 + 11]]))


def test_products_of_integer_matrices():
    weight = whole_numbers(-9, 9, 5, 4, dtype=INT32, seed=1)

    def products(x):
        return x @ weight, (x[:, :, None] * weight[None]).sum(1), x @ x.t()

    assert_converts(products, whole_numbers(-50, 50, 3, 5, dtype=INT32))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Conv2d(2, 4, (3, 2), stride=2, padding=1, groups=2), (1, 2, 5, 6)),
        (lambda: nn.ConvTranspose1d(3, 2, 3, stride=2, padding=1), (2, 3, 5)),
    ],
    ids=["convolution", "transposed"],
)
def test_convolutions_of_integers(make, shape):
    module = seeded(make)
    for p in module.parameters():
        p.requires_grad_(False)
        p.data = (p.data * 20).to(torch.int64)
    assert_converts(module, whole_numbers(-50, 50, *shape))


def test_contractions():
    def products(a, b, v):
        return (
            torch.einsum("bhqd,bhkd->bhqk", a, b), torch.einsum("bhqd,bhkd->qbk", a, b),
            torch.einsum("bhqd,d->bqh", a, v), a @ v, torch.outer(v, v[:3]),
            torch.tensordot(a, b, dims=([3], [3])),
            a[:, None] @ b[:, :, None].transpose(-1, -2)[:, :1],
        )  # fmt: skip

    assert_converts(products, random(2, 3, 4, 5), random(2, 3, 6, 5, seed=1), random(5))


def test_statistics():
    def statistics(x):
        variance, mean = torch.var_mean(x, dim=(-1, 0), correction=2, keepdim=True)
        spread = x.var(1), x.std(unbiased=False), variance, mean
        extremes = x.amax((0, 2)), x.amin(-1, keepdim=True), torch.aminmax(x, dim=1).min
        return *spread, *extremes, x.prod(1), x.mean(), x.sum((0, -1)), x.argmax()

    assert_converts(statistics, random(3, 4, 5) + 10)


def test_small_linear_algebra():
    def solved(a, b):
        g = a @ a.transpose(1, 2) + torch.eye(3)
        return (
            torch.linalg.inv(g), torch.linalg.solve(g, b), torch.linalg.cholesky(g),
            torch.linalg.det(a), torch.cross(a, b, dim=-1),
        )  # fmt: skip

    assert_converts(solved, random(2, 3, 3), random(2, 3, 3, seed=1), tolerance=1e-3)


def test_nothing_is_simplified_that_may_be_infinite():
    infinity, nan = float("inf"), float("nan")

    def identities(x):
        return x * 0, x - x, x / x, 0 / x, x * 0.0 + 1, torch.where(x == x, 1.0, 2.0)

    assert_converts(identities, torch.tensor([[1.0, infinity, -infinity, nan, 0.0, -2.0]]))
