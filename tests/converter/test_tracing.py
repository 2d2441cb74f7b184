"""What torch.export alone would refuse, or would run for nothing."""

import pytest
import torch
from torch import nn

import litert_torch
from litert_torch.converter.frontends.module import traceable
from litert_torch.errors import ExportError
from tests.op_case import assert_matches_torch, f32, integers, op_case, positive

LOGS = torch.log_softmax(f32(6, 3, 5) * 3, -1)
TARGETS = torch.tensor([[1, 1, 3, 2], [4, 2, 0, 0], [1, 2, 3, 4]])
LENGTHS = torch.tensor([6, 4, 3]), torch.tensor([3, 0, 4])  # the last does not fit


def ctc(log_probs, targets, input_lengths, target_lengths, **options):
    return nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, **options)


CASES = [
    op_case(ctc, LOGS, TARGETS, *LENGTHS, reduction="none"),
    op_case(ctc, LOGS, TARGETS, *LENGTHS, zero_infinity=True),
    op_case(ctc, LOGS, TARGETS.flip(1), [6, 6, 5], [2, 3, 1], reduction="sum", blank=4),
    op_case(torch.cov, f32(3, 7)),
    op_case(torch.cov, f32(7), correction=2),
    op_case(torch.cov, f32(3, 5), fweights=integers(5, low=1, high=4, dtype=torch.int64)),
    op_case(
        torch.cov,
        f32(3, 5),
        correction=0,
        fweights=integers(5, low=1, high=4, dtype=torch.int64),
        aweights=positive(5),
    ),
    op_case(torch.corrcoef, f32(3, 7)),
    op_case(torch.narrow, f32(3, 7, 2), 1, torch.tensor(2), 4),
    op_case(torch.narrow, f32(3, 7, 2), -2, torch.tensor(-5), 3),
    op_case(nn.functional.gaussian_nll_loss, f32(3, 4), f32(4, 3).reshape(3, 4), positive(3, 4)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case, export=True)


class Checked(nn.Module):
    """Checks of values in the forms that people write them."""

    def forward(self, x):
        if torch.any(x > 100):
            raise ValueError("too large")
        if not torch.isfinite(x).all():
            message = "not finite"
            raise ValueError(message)
        assert (x > -100).all(), "too small"
        return x * 2


def test_checks_that_only_raise_are_passed():
    x = f32(2, 3)
    model = litert_torch.convert(Checked().eval(), (x,))
    torch.testing.assert_close(torch.from_numpy(model(x.numpy())), x * 2)


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x


class RaisesOrNot(nn.Module):
    def forward(self, x):
        if x.sum() > 0 or x.min() > 3:
            raise ValueError("a check of two values is not looked through")
        return x


@pytest.mark.parametrize("make", [Branches, RaisesOrNot])
def test_other_branches_on_values_are_refused(make):
    with pytest.raises(ExportError, match=r"test_tracing\.py:\d+"):
        litert_torch.convert(make().eval(), (f32(2, 3),))


def test_eager_keeps_its_own_code():
    checked = Checked().eval()
    with traceable(), pytest.raises(ValueError, match="too large"):
        checked(torch.full((2,), 200.0))
    before = torch.Tensor.__bool__
    with traceable():
        assert torch.Tensor.__bool__ is not before
    assert torch.Tensor.__bool__ is before
    assert torch.ops.aten.cov.default.py_kernels == {}
