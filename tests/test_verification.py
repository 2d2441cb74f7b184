import math

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch import errors
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.lowerings import lowers
from litert_torch.testing import model_coverage
from litert_torch.testing.export import export_with_tensor_inputs_only
from litert_torch.verification import bound_of, compare_arrays

Y = np.array([3.0, -4.0, 0.0], np.float32)


def test_errors_are_measured_against_the_largest_value():
    found = compare_arrays("y", Y + np.float32([0, 0.5, 0]), Y)
    assert found.max_abs_error == 0.5
    assert found.relative_error == 0.125
    assert found.snr_db == pytest.approx(10 * math.log10(25 / 0.25))


def test_equal_outputs_have_no_noise():
    found = compare_arrays("y", Y, Y.copy())
    assert (found.max_abs_error, found.relative_error, found.snr_db) == (0, 0, math.inf)


def test_the_same_nan_and_infinity_are_equal_and_others_are_not():
    y = np.array([np.nan, np.inf, -np.inf, 2], np.float32)
    assert compare_arrays("y", y.copy(), y).max_abs_error == 0
    assert compare_arrays("y", np.float32([0, np.inf, -np.inf, 2]), y).relative_error == math.inf
    assert compare_arrays("y", np.float32([np.nan, np.inf, np.inf, 2]), y).snr_db == -math.inf


def test_integers_and_booleans_must_be_equal():
    found = compare_arrays("y", np.array([1, 2, 3, 5]), np.array([1, 2, 3, 4]))
    assert found.relative_error == 0.25
    assert not found.within(None)
    assert found.within(0.25)
    assert not compare_arrays("y", np.array([True, False]), np.array([True, True])).within(None)


def test_bounds_follow_the_dtype():
    y = np.array([1.0, 0.5])
    assert not compare_arrays("y", np.float32(y + 0.001), np.float32(y)).within(None)
    assert compare_arrays("y", np.float16(y + 0.001), np.float16(y)).within(None)


@pytest.mark.parametrize("other", [Y[:2], Y.astype(np.float64)])
def test_other_shapes_and_dtypes_are_errors(other):
    with pytest.raises(errors.VerificationError, match="but PyTorch gives float32"):
        compare_arrays("y", other, Y)


def test_what_verify_means():
    assert bound_of(True, quantized=False) is None
    assert bound_of(True, quantized=True) == math.inf
    assert bound_of(0.01, quantized=True) == 0.01
    assert bound_of(0, quantized=False) == 0.0


class Doubles(torch.nn.Module):
    def forward(self, x, y):
        x += 1  # a sample that eager changes must not reach LiteRT changed
        return {"sum": x + y, "sign": x > 0}


ARGS = (torch.tensor([-1.5, 2.0]), torch.tensor([0.25, 3.0]))


def test_compare_reports_every_output_by_name():
    model = litert_torch.convert(Doubles().eval(), ARGS)
    report = litert_torch.compare(model, Doubles().eval(), ARGS)
    assert [o.name for o in report.outputs] == ["sum", "sign"]
    assert report.within()
    assert "sum float32[2]: max abs error 0" in str(report)
    assert ARGS[0][0] == -1.5


def test_compare_sees_another_module():
    model = litert_torch.convert(Doubles().eval(), ARGS)

    class Other(torch.nn.Module):
        def forward(self, x, y):
            return {"sum": x - y, "sign": x > 0}

    assert not litert_torch.compare(model, Other().eval(), ARGS).within()
    with pytest.raises(errors.VerificationError, match="has the outputs sign, sum, but PyTorch"):
        litert_torch.compare(model, torch.nn.Bilinear(2, 2, 1), ARGS)


def test_verify_compares_with_the_bound_given():
    class Tanh(torch.nn.Module):
        def forward(self, x):
            return torch.tanh(x)

    lowers.all()
    near = lowers.only_within(
        torch.ops.aten.tanh.default,
        lambda g, x: tfl.mul(g, tfl.tanh(g, x), tfl.const(1.01, "float32")),
    )
    with near:
        litert_torch.convert(Tanh().eval(), ARGS[:1], verify=0.02)
        with pytest.raises(errors.VerificationError, match=r"above the bound of 0\.005"):
            litert_torch.convert(Tanh().eval(), ARGS[:1], verify=0.005)


def test_compare_tflite_torch_says_yes_and_no():
    model = litert_torch.convert(Doubles().eval(), ARGS)
    tanh = litert_torch.convert(torch.nn.Tanh().eval(), ARGS[:1])
    assert model_coverage.compare_tflite_torch(
        tanh, torch.tanh, lambda: (torch.randn(2),), num_valid_inputs=3
    )
    assert not model_coverage.compare_tflite_torch(model, lambda x, y: x, ARGS)
    assert not model_coverage.compare_tflite_torch(tanh, torch.sigmoid, ARGS[:1])


def test_export_takes_only_tensors_as_inputs():
    def scaled(x, factor, rest):
        return x * factor + rest["y"]

    program = export_with_tensor_inputs_only(scaled, (ARGS[0], 3), {"rest": {"y": ARGS[1]}})
    assert len(program.graph_signature.user_inputs) == 2
    torch.testing.assert_close(program.module()(*ARGS), ARGS[0] * 3 + ARGS[1])
