import numpy as np
import pytest
import torch

from tests.op_case import assert_matches_torch, f32, integers, op_case, positive

aten = torch.ops.aten

INFINITY, NAN = float("inf"), float("nan")
WIDE = torch.tensor([-40.0, -8.5, -3.0, -1.0, -0.25, 0.0, 0.25, 1.0, 2.0, 5.0, 8.0, 8.5, 40.0])
DEGREES = torch.tensor([-1.0, 0, 1, 2, 7, 9])
EDGES = torch.tensor([-INFINITY, -2.0, -0.5, 0.0, 1.0, INFINITY, NAN])


def longs(*shape):
    return integers(*shape, dtype=torch.int64)


SHAPES = torch.tensor([0.0, 0.3, 1.0, 4.5, 9.5, 12.0, 80.0, INFINITY, -1.0])
POINTS = torch.tensor([0.0, 0.2, 1.5, 5.0, 11.0, 75.0, 95.0, INFINITY, -2.0, NAN])

UNARY = [
    aten.i0.default,
    aten.special_i0e.default,
    aten.special_i1.default,
    aten.special_i1e.default,
    aten.special_modified_bessel_k0.default,
    aten.special_modified_bessel_k1.default,
    aten.special_scaled_modified_bessel_k0.default,
    aten.special_scaled_modified_bessel_k1.default,
    aten.special_bessel_j0.default,
    aten.special_bessel_j1.default,
    aten.special_bessel_y0.default,
    aten.special_bessel_y1.default,
    aten.special_spherical_bessel_j0.default,
    aten.special_airy_ai.default,
    aten.special_erfcx.default,
    aten.lgamma.default,
    aten.digamma.default,
]
POLYNOMIALS = [
    aten.special_chebyshev_polynomial_t,
    aten.special_chebyshev_polynomial_u,
    aten.special_chebyshev_polynomial_v,
    aten.special_chebyshev_polynomial_w,
    aten.special_shifted_chebyshev_polynomial_t,
    aten.special_shifted_chebyshev_polynomial_w,
    aten.special_hermite_polynomial_h,
    aten.special_hermite_polynomial_he,
    aten.special_laguerre_polynomial_l,
    aten.special_legendre_polynomial_p,
]
ROWS = [
    *(op_case(op, x) for op in UNARY for x in (WIDE, f32(2, 3) * 4, integers(3, low=1, high=9))),
    *(op_case(aten.polygamma.default, n, f32(3, 5) * 4) for n in range(4)),
    op_case(aten.polygamma.default, 1, torch.tensor([-2.5, 0.0, 0.5, 30.0])),
    op_case(aten.special_zeta.default, positive(3, 1) + 1.5, positive(5) * 9),
    op_case(aten.special_zeta.default, torch.tensor([0.5, 1.0, 2.0, 2.5]), torch.tensor(-1.5)),
    *(op_case(op, SHAPES[:, None], POINTS) for op in (aten.igamma.default, aten.igammac.default)),
    op_case(aten.special_gammainc.default, integers(3, 1, low=1, high=9), positive(2, 1, 4) * 5),
    op_case(aten.special_ndtri.default, torch.tensor([0.0, 1e-30, 1e-7, 0.01, 0.5, 0.99, 1.0])),
    *(op_case(p.default, WIDE[3:9, None], DEGREES) for p in POLYNOMIALS),
    *(op_case(p.n_scalar, f32(2, 3), 4) for p in POLYNOMIALS),
    op_case(aten.gcd.default, integers(4, 1, low=-60, high=60), integers(7, low=-60, high=60)),
    op_case(aten.lcm.default, integers(5, low=-30, high=30, dtype=torch.int64), torch.tensor(12)),
    op_case(aten.frexp.Tensor, torch.tensor([0.0, -0.75, 1.0, 3e38, -12.5, 0.3])),
    op_case(aten.nextafter.default, f32(2, 1, 3), f32(4, 1)),
    op_case(aten.nextafter.default, torch.tensor([0.0, 0.0, 1.0]), torch.tensor([1.0, -1.0, 1.0])),
    op_case(aten.histc.default, f32(3, 17), 7, -1.5, 1.0),
    op_case(aten.histc.default, f32(40), 5),
    op_case(aten.histogram.bin_ct, f32(41), 6, weight=positive(41), density=True),
    op_case(aten._histogramdd_bin_edges.default, f32(7, 2), [3, 2], range=[-1.0, 1, 0, 2.5]),
    op_case(aten._histogramdd_from_bin_cts.default, f32(4, 5, 2), [3, 2], weight=positive(4, 5)),
    op_case(
        aten._histogramdd_from_bin_tensors.default,
        f32(9, 2),
        [torch.tensor([-1.0, 0.0, 0.5, 2.0]), torch.tensor([-2.0, 0.3, 1.0])],
        density=True,
    ),
    op_case(aten.histogram.bins_tensor, f32(41), torch.tensor([-1.0, 0.0, 0.3, 2.0])),
    op_case(aten.nanmedian.dim, torch.tensor([[1.0, NAN, -2.0, 5.0], [NAN, 4.0, NAN, NAN]]), 1),
    op_case(aten.nanmedian.default, torch.tensor([3.0, NAN, -2.0, 5.0])),
    op_case(aten.nonzero_static.default, integers(3, 4, low=0, high=2), size=5),
    op_case(aten.nonzero_static.default, integers(2, 3, low=0, high=2), size=9, fill_value=-7),
    op_case(aten.as_strided_scatter.default, f32(3, 4), f32(2, 2), [2, 2], [5, 2], 1),
    op_case(aten.bilinear.default, f32(2, 3, 4), f32(2, 3, 5), f32(6, 4, 5), f32(6)),
    op_case(aten._pdist_forward.default, f32(5, 3), 1.5),
    op_case(aten.embedding_renorm.default, f32(6, 3), torch.tensor([1, 4, 1]), 0.7, 2.0),
    op_case(aten.take_along_dim.default, f32(3, 4), torch.tensor([[-1, 0], [1, -4], [3, 2]]), 1),
    op_case(
        aten.hypot.default,
        torch.tensor([3e38, INFINITY, 0.0, -3.0]),
        torch.tensor([1e38, NAN, 0.0, 4.0]),
    ),
    op_case(
        aten.pow.Tensor_Tensor,
        torch.tensor([2, -1, 1, -1, 3, 0]),
        torch.tensor([-1, -3, -2, -4, 5, 0]),
    ),
    op_case(aten.pow.Tensor_Tensor, integers(3, 4), integers(4, low=-2, high=4)),
    op_case(aten.logit.default, torch.tensor([0.1, 0.45, 0.5, 0.65, 0.9]), 0.6),
    op_case(aten.avg_pool2d.default, longs(2, 7, 8), [3, 2], [2, 2], [1, 1], True, False),
    op_case(aten.conv1d.default, longs(2, 4, 9), longs(6, 2, 3), longs(6), [2], [1], [2], 2),
    op_case(aten.conv_transpose1d.default, longs(2, 4, 5), longs(4, 3, 3), None, [2], [1], [1], 2),
    op_case(
        aten.repeat_interleave.self_Tensor, f32(3, 2), torch.tensor([2, 0, 3]), 0, output_size=5
    ),
]


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case, rtol=5e-5, atol=1e-5)


@pytest.mark.parametrize("op", [aten.lgamma.default, aten.special_i0e.default, aten.angle.default])
def test_infinity_and_nan(op):
    assert_matches_torch(op_case(op, EDGES))


def test_matrix_exponential():
    assert_matches_torch(op_case(aten.linalg_matrix_exp.default, f32(2, 3, 3) * 2), rtol=1e-4)


def test_geometric_counts_trials():
    from tests.op_case import lowered_alone, run

    x = torch.zeros(4000, dtype=torch.int32)
    (drawn,) = run(lowered_alone(op_case(aten.geometric.default, x, 0.25)), x)
    assert drawn.min() == 1
    np.testing.assert_allclose(drawn.mean(), 4, rtol=0.1)
