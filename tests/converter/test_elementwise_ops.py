import pytest
import torch

from tests.op_case import assert_matches_torch, f32, integers, op_case, positive

aten = torch.ops.aten
WIDE = torch.linspace(-8, 8, 161)
UNIT = torch.linspace(-1, 1, 81)
TINY = torch.tensor([-1e-3, -1e-5, -1e-7, 0.0, 1e-7, 1e-5, 1e-3])
LIMITS = torch.tensor([float("inf"), -float("inf"), 0.0])

CASES = [
    *[
        op_case(op, x)
        for op in (
            aten.asinh.default,
            aten.atan.default,
            aten.cos.default,
            aten.cosh.default,
            aten.erf.default,
            aten.erfc.default,
            aten.exp.default,
            aten.exp2.default,
            aten.expm1.default,
            aten.sin.default,
            aten.sinh.default,
        )
        for x in (WIDE, TINY, f32(2, 3, 5), integers(2, 3))
    ],
    *[
        op_case(op, x)
        for op in (aten.asin.default, aten.acos.default, aten.atanh.default, aten.erfinv.default)
        for x in (UNIT, TINY, torch.tensor([1.5, -2.0]))
    ],
    *[
        op_case(op, x)
        for op in (aten.log.default, aten.log2.default, aten.log10.default)
        for x in (positive(2, 3), integers(2, 3, low=1), torch.tensor([0.0, -1.0]))
    ],
    *[
        op_case(op, LIMITS)
        for op in (aten.erf.default, aten.erfc.default, aten.expm1.default, aten.atan.default)
    ],
    op_case(aten.acosh.default, 1 + positive(2, 3)),
    op_case(aten.acosh.default, torch.tensor([1.0, 1.0001, 0.5])),
    op_case(aten.log1p.default, torch.tensor([-1.0, -0.9, -2.0, 0.0, 3.0, 1e30])),
    op_case(aten.log1p.default, TINY),
    op_case(aten.log1p.default, integers(2, 3, low=0)),
    op_case(aten.tan.default, f32(2, 3)),
    op_case(aten.atan2.default, f32(2, 3), f32(3)),
    op_case(aten.atan2.default, f32(2, 1), f32(4, 1, 3)),
    op_case(aten.atan2.default, torch.tensor([0.0, -0.0, 1.0]), torch.tensor([-1.0, -1.0, 0.0])),
    op_case(aten.atan2.default, torch.tensor([1.0, -1.0]), torch.tensor([[float("inf")]])),
    op_case(aten.atan2.default, integers(2, 3), f32(3)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case, atol=2e-6)


@pytest.mark.parametrize(
    ("op", "x"),
    [
        (aten.erf.default, TINY),
        (aten.erfc.default, torch.tensor([2.0, 3.0, 4.0, 5.0])),
        (aten.expm1.default, TINY),
        (aten.asin.default, TINY),
        (aten.sinh.default, TINY),
        (aten.asinh.default, TINY * 1e-3),
        (aten.atan.default, TINY),
        (aten.log1p.default, TINY * 1e-5),
    ],
    ids=str,
)
def test_small_results_keep_their_digits(op, x):
    assert_matches_torch(op_case(op, x), rtol=5e-6, atol=0)


@pytest.mark.xfail(strict=True, reason="XNNPACK's LOG gives 88.4 for infinity")
def test_log_of_infinity():
    assert_matches_torch(op_case(aten.log.default, LIMITS[:1]))


class Decomposed(torch.nn.Module):
    """Functions without lowerings of their own."""

    def forward(self, x, y):
        return (
            torch.erf(x),
            torch.logaddexp(x, y),
            torch.xlogy(x, y.abs()),
            torch.ldexp(x, torch.tensor([1, -2, 3])),
            torch.deg2rad(x),
            torch.special.entr(x.abs()),
            torch.special.ndtr(x),
            torch.float_power(x.abs(), 1.5),
            torch.isclose(x, y, atol=0.5),
            torch.nn.functional.softmin(x, -1),
        )


def test_through_torch_export():
    assert_matches_torch(op_case(Decomposed(), f32(2, 3), f32(2, 3) * -2), export=True, atol=2e-6)
