import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from litert_torch.converter.dtypes import DType
from litert_torch.converter.flatbuffer.write import pack_bits
from litert_torch.quantize import numerics
from litert_torch.quantize.algorithms import CLIPPING
from litert_torch.quantize.algorithms.gptq import SecondMoment, with_compensation
from litert_torch.quantize.algorithms.squant import balanced
from litert_torch.quantize.numerics import Layout, grid_of
from litert_torch.quantize.weights import as_float16

INTEGERS = (DType.INT8, DType.INT4, DType.INT2)

floats = st.floats(-1e4, 1e4, width=32)
matrices = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=floats
)
quick = settings(max_examples=60, deadline=None)


def unpacked(data, bits, count):
    lanes = [(data >> (bits * i)) & ((1 << bits) - 1) for i in range(8 // bits)]
    flat = np.stack(lanes, -1).reshape(-1)[:count].astype(np.int16)
    return np.where(flat >= 1 << (bits - 1), flat - (1 << bits), flat)


@quick
@given(st.sampled_from((DType.INT4, DType.INT2)), st.data())
def test_packed_integers_come_back(dtype, data):
    low, high = -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    shapes = hnp.array_shapes(max_dims=3, max_side=7)
    x = data.draw(hnp.arrays(np.int8, shapes, elements=st.integers(low, high)))
    packed = pack_bits(x, dtype.bits)
    assert packed.nbytes == dtype.bytes_of(x.size)
    np.testing.assert_array_equal(unpacked(packed, dtype.bits, x.size), x.reshape(-1))


@quick
@given(matrices, st.sampled_from(INTEGERS))
def test_covering_scales_saturate_nothing(rows, dtype):
    grid = grid_of(dtype)
    scales = CLIPPING["min_max"](rows, grid)
    restored = numerics.rounded(rows, scales, grid) * scales[:, None]
    step = scales[:, None] * (0.5 + 1e-3)
    assert (np.abs(restored - rows) <= step + 1e-30).all()


@quick
@given(matrices, st.sampled_from(INTEGERS))
def test_the_least_error_is_no_worse_than_covering(rows, dtype):
    grid = grid_of(dtype)

    def error(scales):
        return np.square(numerics.rounded(rows, scales, grid) * scales[:, None] - rows).sum(1)

    covering, best = (
        error(CLIPPING[name](rows, grid).astype(np.float64)) for name in ("min_max", "mse")
    )
    assert (best <= covering * (1 + 1e-3) + 1e-6 * np.square(rows).max()).all()


@quick
@given(matrices, st.sampled_from(sorted(CLIPPING)), st.sampled_from(INTEGERS))
def test_scales_are_positive_numbers(rows, name, dtype):
    scales = CLIPPING[name](rows, grid_of(dtype))
    assert scales.dtype == np.float32
    assert scales.shape == (len(rows),)
    assert (np.isfinite(scales) & (scales > 0)).all()


@quick
@given(floats, floats, st.sampled_from((DType.INT8, DType.UINT8, DType.INT16)))
def test_affine_parameters_hold_the_range_and_zero(a, b, dtype):
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    scale, zero_point = numerics.affine(low, high, dtype)
    smallest, largest = numerics.activation_limits(dtype)
    assert smallest <= zero_point <= largest
    ends = (np.array([smallest, largest]) - zero_point) * float(scale)
    assert ends[0] <= low + scale
    assert ends[1] >= high - scale
    zero = numerics.as_integers(np.zeros(1, np.float32), scale, zero_point, dtype)
    assert zero.item() == zero_point


@quick
@given(hnp.arrays(np.float32, (2, 3, 64, 5)), st.sampled_from((0, 1, 2, 3, None)))
def test_rows_come_back(w, axis):
    layout = Layout(axis)
    np.testing.assert_array_equal(layout.restored(layout.rows(w), w.shape), w)
    assert len(layout.rows(w)) == np.prod(layout.scale_shape(w.shape))


def test_blocks_are_runs_of_the_last_axis():
    w = np.arange(3 * 64).reshape(3, 64)
    layout = Layout(0, 32)
    np.testing.assert_array_equal(layout.rows(w)[3], np.arange(64 + 32, 128))
    assert layout.scale_shape(w.shape) == (3, 2)


@quick
@given(st.integers(1, 4), st.sampled_from((1, 4, 9)), st.integers(0, 2**32 - 1))
def test_balanced_rounding_leaves_sums_within_a_half(kernels, positions, seed):
    units = np.random.default_rng(seed).uniform(-120, 120, (5, kernels * positions))
    errors = balanced(units, kernels, grid_of(DType.INT8)) - units
    assert np.abs(errors).max() < 1 + 1e-9
    slack = 0.5 if kernels == 1 else 1.0  # a kernel that gave one element to its row
    assert np.abs(errors.reshape(5, kernels, -1).sum(2)).max() <= slack + 1e-6
    assert np.abs(errors.sum(1)).max() <= 0.5 * max(1, kernels) ** 0.5 + 1e-6


def test_balanced_rounding_stays_on_the_grid():
    units = np.full((1, 9), 127.4)
    assert balanced(units, 1, grid_of(DType.INT8)).max() == 127


def test_compensated_rounding_keeps_products_better():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 8)) @ rng.normal(size=(8, 64)) + 0.1 * rng.normal(size=(500, 64))
    x, w = x.astype(np.float32), rng.normal(size=(24, 64)).astype(np.float32)
    grid = grid_of(DType.INT4)
    scales = CLIPPING["mse"](w, grid)[:, None]

    def error(integers):
        return np.square(x @ (integers * scales - w).T).sum()

    nearest = error(numerics.rounded(w, scales[:, 0], grid))
    moment = SecondMoment((x.T @ x)[None], len(x))
    assert error(with_compensation(w, scales, grid, moment)) < nearest / 10


def test_scales_of_blocks_are_float16_numbers_above_zero():
    scales = as_float16(np.array([1e-12, 0.1, 1e9], np.float32))
    assert (scales > 0).all()
    assert np.isfinite(scales).all()
    np.testing.assert_array_equal(scales, scales.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_rows_of_zeros_have_scale_one(dtype):
    for clipping in CLIPPING.values():
        assert clipping(np.zeros((2, 8), np.float32), grid_of(dtype)).tolist() == [1, 1]


def test_signal_to_noise():
    assert numerics.sqnr(np.array([3.0, 4.0]), np.array([3.0, 4.5])) == pytest.approx(20)
    assert numerics.sqnr(np.ones(3), np.ones(3)) == np.inf
    assert numerics.cosine(np.array([1.0, 0]), np.array([1.0, 1])) == pytest.approx(0.5**0.5)
