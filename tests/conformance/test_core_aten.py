"""Every op of the Core ATen opset has a lowering, or a decomposition into ops that have one."""

import pytest
import torch

from litert_torch.converter import decompositions, functionalize
from litert_torch.converter.lowerings import lowers, lowers_complex

GRADIENTS = {
    "aten._adaptive_avg_pool2d_backward.default",
    "aten.avg_pool2d_backward.default",
    "aten.convolution_backward.default",
}
A_NUMBER = {"aten._local_scalar_dense.default"}
"""`Tensor.item()`: its result is no tensor, and a file has no place for what it would decide."""


def core_overloads():
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if namespace == "aten":
            found = getattr(getattr(torch.ops.aten, packet), overload or "default")
            if torch.Tag.core in found.tags:
                yield found


def is_covered(op):
    target = functionalize.functional_form(op) or op
    tables = (lowers.all(), lowers_complex.all())
    return any(target in table for table in tables) or decompositions.has_decomposition(target)


def test_the_opset_is_found():
    assert len(list(core_overloads())) > 180


@pytest.mark.parametrize("op", list(core_overloads()), ids=str)
def test_core_op_converts(op):
    expected = str(op) not in GRADIENTS | A_NUMBER
    assert is_covered(op) == expected
