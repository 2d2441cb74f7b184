"""Softmax and normalizations."""

import pytest
import torch

from tests.op_case import assert_matches_torch, bools, f32, op_case, positive

aten = torch.ops.aten
image = f32(2, 6, 5, 4) * 2 + 0.7
w6, b6, mean6, var6 = f32(6), f32(6).flip(0), f32(6) * 0.5, positive(6)
partly = f32(3, 5).masked_fill(~bools(3, 5), -torch.inf)
partly[1] = -torch.inf

CASES = [
    op_case(aten.softmax.int, f32(3, 5), -1),
    op_case(aten.softmax.int, f32(3, 5) * 40, 0),
    op_case(aten.softmax.int, image, 1),
    op_case(aten.softmax.int, f32(2, 1, 3, 2, 5), 2),
    op_case(aten.softmax.int, f32(7), 0),
    op_case(aten.softmax.int, torch.tensor(3.0), 0),
    op_case(aten.softmax.int, partly, -1),
    op_case(aten.softmax.int, torch.arange(5), 0, torch.float32),
    op_case(aten._softmax.default, f32(3, 5), 1, False),
    op_case(aten.log_softmax.int, f32(3, 5) * 40, -1),
    op_case(aten.log_softmax.int, image, 1),
    op_case(aten.log_softmax.int, partly, 1),
    op_case(aten._log_softmax.default, f32(3, 5), 0, False),
    op_case(aten._safe_softmax.default, partly, 1),
    op_case(aten.batch_norm.default, image, w6, b6, mean6, var6, False, 0.1, 1e-3, True),
    op_case(aten.batch_norm.default, image, None, None, mean6, var6, False, 0.1, 1e-5, True),
    op_case(aten.batch_norm.default, image, w6, None, None, None, True, 0.1, 1e-5, True),
    op_case(aten.batch_norm.default, f32(4, 6), w6, b6, mean6, var6, False, 0.1, 1e-5, True),
    op_case(aten.batch_norm.default, f32(4, 6, 7), w6, b6, mean6, var6, False, 0.1, 1e-5, True),
    op_case(aten.layer_norm.default, f32(2, 3, 5), [5], f32(5), f32(5).flip(0)),
    op_case(aten.layer_norm.default, image, [5, 4], f32(5, 4), None, 1e-2),
    op_case(aten.native_layer_norm.default, f32(2, 3, 5), [3, 5], None, None, 1e-5),
    op_case(aten.rms_norm.default, f32(2, 3, 5), [5], f32(5)),
    op_case(aten.rms_norm.default, f32(2, 3, 5), [5], None, 1e-2),
    op_case(aten._fused_rms_norm.default, f32(2, 3, 5), [3, 5], f32(3, 5), 1e-3),
    op_case(aten.group_norm.default, image, 3, w6, b6),
    op_case(aten.group_norm.default, image, 1, w6, b6, 1e-2),
    op_case(aten.group_norm.default, f32(2, 6, 7), 2),
    op_case(aten.group_norm.default, f32(2, 6), 2, w6, b6),
    op_case(aten.group_norm.default, f32(1, 6, 2, 3, 4), 6, w6, b6),
    op_case(aten.native_group_norm.default, image, w6, b6, 2, 6, 20, 3, 1e-5),
    op_case(aten.instance_norm.default, image, w6, b6, None, None, True, 0.1, 1e-5, True),
    op_case(aten.instance_norm.default, image, w6, b6, mean6, var6, False, 0.1, 1e-5, True),
    op_case(
        aten.instance_norm.default, f32(2, 6, 7), None, None, None, None, True, 0.1, 1e-5, True
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def normalized(op, *arguments):
    """The first of the op's results, with everything but the image constant."""
    return op_case(lambda x: op(x, *arguments)[0], image)


BY_CONSTANTS = [
    op_case(
        lambda x: aten.batch_norm.default(x, w6, b6, mean6, var6, False, 0.1, 1e-3, True), image
    ),
    op_case(
        lambda x: aten.batch_norm.default(x, None, b6, mean6, var6, False, 0.1, 1e-3, True), image
    ),
    normalized(aten._native_batch_norm_legit_no_training.default, w6, None, mean6, var6, 0.1, 1e-3),
    normalized(aten._batch_norm_no_update.default, w6, b6, mean6, var6, 0.1, 1e-3),
]


@pytest.mark.parametrize("case", BY_CONSTANTS, ids=range(len(BY_CONSTANTS)))
def test_batch_norm_by_constants(case):
    assert_matches_torch(case, export=True)


def test_local_response_norm_through_torch_export():
    module = torch.nn.LocalResponseNorm(3, alpha=0.1)
    assert_matches_torch(op_case(module, image), export=True)
