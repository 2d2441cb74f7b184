"""Random numbers: their distribution, and that calls differ. Values are not PyTorch's."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import litert_torch
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import f32, graph_of, lowered_alone, op_case, run

aten = torch.ops.aten

COUNT = 40_000
ERROR = 6 / COUNT**0.5  # six standard errors of a mean, in standard deviations
X = torch.ones(200, 200)


def _drawn(case):
    (result,) = run(lowered_alone(case), *case.tensors)
    return result


DISTRIBUTIONS = [  # mean, standard deviation, smallest and largest possible value
    (op_case(aten.rand.default, [200, 200]), 0.5, 12**-0.5, 0, 1),
    (op_case(aten.rand_like.default, X), 0.5, 12**-0.5, 0, 1),
    (op_case(aten.randn.default, [200, 200]), 0, 1, -9, 9),
    (op_case(aten.randn_like.default, X), 0, 1, -9, 9),
    (op_case(aten.randint.default, 5, [200, 200]), 2, 2**0.5, 0, 4),
    (op_case(aten.randint.low, -3, 4, [200, 200]), 0, 2, -3, 3),
    (op_case(aten.randint_like.default, X, 5), 2, 2**0.5, 0, 4),
    (op_case(aten.randint_like.low_dtype, X, 2, 7), 4, 2**0.5, 2, 6),
    (op_case(aten.bernoulli.default, X * 0.3), 0.3, 0.21**0.5, 0, 1),
    (op_case(aten.bernoulli.p, X, 0.2), 0.2, 0.4, 0, 1),
    (op_case(aten.bernoulli.Tensor, X, X * 0.8), 0.8, 0.4, 0, 1),
    (op_case(aten.uniform.default, X, 2.0, 4.0), 3, 3**-0.5, 2, 4),
    (op_case(aten.normal.Tensor_float, X * 5, 2.0), 5, 2, -13, 23),
    (op_case(aten.normal.float_Tensor, -1.0, X * 3), -1, 3, -28, 26),
    (op_case(aten.normal.Tensor_Tensor, X, X * 0.5), 1, 0.5, -4, 6),
    (op_case(aten.normal.float_float, 4.0, 0.1, [200, 200]), 4, 0.1, 3, 5),
    (op_case(aten.normal_functional.default, X, 3.0, 2.0), 3, 2, -15, 21),
    (op_case(aten.exponential.default, X, 2.0), 0.5, 0.5, 0, 20),
    (op_case(aten.alpha_dropout.default, f32(200, 200), 0.25, True), 0, 1, -9, 9),
    (op_case(aten.dropout.default, X, 0.25, True), 1, 3**-0.5, 0, 4 / 3 + 1e-6),
]


@pytest.mark.parametrize(
    ("case", "mean", "deviation", "low", "high"),
    DISTRIBUTIONS,
    ids=[str(d[0]) for d in DISTRIBUTIONS],
)
def test_distribution(case, mean, deviation, low, high):
    values = _drawn(case).astype(np.float64)
    assert values.shape == (200, 200)
    assert abs(values.mean() - mean) < ERROR * deviation
    assert abs(values.std() - deviation) < 2 * ERROR * deviation
    assert low <= values.min() < values.max() <= high
    flat = values.reshape(-1)
    assert abs(np.corrcoef(flat[:-1], flat[1:])[0, 1]) < ERROR


@pytest.mark.parametrize("case", [d[0] for d in DISTRIBUTIONS], ids=str)
def test_dtype(case):
    torch.manual_seed(0)
    assert _drawn(case).dtype == case.op(*case.args, **case.kwargs).numpy().dtype


def test_a_permutation_has_each_index_once_and_is_random():
    drawn = [_drawn(op_case(aten.randperm.default, 50)) for _ in range(2)]
    assert all(sorted(d) == list(range(50)) for d in drawn)
    assert not np.array_equal(drawn[0], drawn[1])


def test_multinomial_with_replacement_draws_in_proportion():
    weights = torch.tensor([[1.0, 2.0, 3.0, 4.0, 0.0], [7.0, 1.0, 1.0, 1.0, 0.0]])
    drawn = _drawn(op_case(aten.multinomial.default, weights, 4000, True))
    assert drawn.dtype == np.int64
    for row, want in zip(drawn, weights.numpy() / 10, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=5) / 4000, want, atol=0.04)
        assert 4 not in row


def test_multinomial_without_replacement_draws_in_proportion_and_never_twice():
    weights = torch.tensor([0.5, 0.3, 0.2, 0.0]).expand(5000, 4)
    drawn = _drawn(op_case(aten.multinomial.default, weights, 2))
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert 3 not in drawn
    first = np.bincount(drawn[:, 0], minlength=4) / 5000
    np.testing.assert_allclose(first, [0.5, 0.3, 0.2, 0], atol=0.035)
    second = ((drawn == [0, 1]).all(1)).mean()
    np.testing.assert_allclose(second, 0.5 * 0.3 / 0.5, atol=0.035)


def test_dropout_of_channels_drops_whole_channels():
    values = _drawn(op_case(aten.feature_dropout.default, torch.ones(20, 50, 4, 3), 0.4, True))
    np.testing.assert_array_equal(values.min((2, 3)), values.max((2, 3)))
    assert 0.5 < (values > 0).mean() < 0.7


def test_native_dropout_says_what_it_kept():
    case = op_case(aten.native_dropout.default, X, 0.25, True)
    values, kept = run(lowered_alone(case), X)
    np.testing.assert_array_equal(values > 0, kept)


def test_dropout_in_evaluation_is_nothing():
    assert graph_of(op_case(aten.dropout.default, f32(3), 0.5, False)).ops == []


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (op_case(aten.randint.default, 1 << 30, [3]), "integers"),
    ],
    ids=str,
)
def test_refused(case, reason):
    with pytest.raises(UnsupportedCaseError, match=reason):
        graph_of(case)


class Noisy(torch.nn.Module):
    """In-place random ops, and one that no input reaches."""

    def forward(self, x):
        noise = torch.empty_like(x).normal_() + torch.empty_like(x).uniform_(2, 3)
        mask = torch.empty_like(x).bernoulli_(0.5)
        return x + noise, F.dropout(x, 0.5) * mask, torch.randn(4, 100)


def test_calls_of_a_model_differ_and_seeding_pytorch_does_not_matter():
    model = litert_torch.convert(Noisy().eval(), (X,))
    torch.manual_seed(0)
    first = model(X.numpy())
    torch.manual_seed(0)
    second = model(X.numpy())
    assert all(not np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert abs(first[0].mean() - 3.5) < 0.05
