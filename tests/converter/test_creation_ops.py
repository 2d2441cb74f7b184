import numpy as np
import pytest
import sympy
import torch

import litert_torch
from litert_torch.converter.dims import Dim
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph
from litert_torch.converter.lowerings.creation import counted, filled
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, bools, f32, graph_of, integers, op_case

aten = torch.ops.aten
BIG = (300, 200)  # more than is stored as a constant

CASES = [
    op_case(aten.full_like.default, f32(2, 3), -1.5),
    op_case(aten.full_like.default, f32(*BIG), 7),
    op_case(aten.full_like.default, integers(2, 3), 4),
    op_case(aten.full_like.default, f32(2, 3), 2, dtype=torch.int64),
    op_case(aten.full_like.default, f32(), 3.5),
    op_case(aten.zeros_like.default, bools(2, 3)),
    op_case(aten.zeros_like.default, f32(2, 3), dtype=torch.int8),
    op_case(aten.ones_like.default, f32(*BIG)),
    op_case(aten.ones_like.default, f32(*BIG), dtype=torch.bool),
    op_case(aten.ones_like.default, integers(*BIG, dtype=torch.int16)),
    op_case(aten.new_zeros.default, integers(1), [2, 3]),
    op_case(aten.new_ones.default, f32(1), [2, 3]),
    op_case(aten.new_full.default, f32(1), [2, 3], 2),
    op_case(aten.new_full.default, f32(1), list(BIG), True, dtype=torch.bool),
    op_case(aten.zero.default, f32(2, 3)),
    op_case(aten.fill.Scalar, integers(2, 3), 5),
    op_case(aten.fill.Tensor, f32(2, 3), torch.tensor(5)),
    op_case(aten.full.default, [2, 3], 1.5),
    op_case(aten.full.default, [2, 3], 4),
    op_case(aten.full.default, [2, 3], True),
    op_case(aten.full.default, list(BIG), -1.5, dtype=torch.int32),
    op_case(aten.zeros.default, [0, 3]),
    op_case(aten.ones.default, list(BIG), dtype=torch.int64),
    op_case(aten.scalar_tensor.default, 2.5),
    op_case(aten.arange.default, 7),
    op_case(aten.arange.default, 7, dtype=torch.float32),
    op_case(aten.arange.start, -3, 7, dtype=torch.int32),
    op_case(aten.arange.start_step, 2, 15, 4),
    op_case(aten.arange.start_step, 15, 2, -4),
    op_case(aten.arange.start_step, 0.5, 3.1, 0.3),
    op_case(aten.arange.default, 4.5),
    op_case(aten.linspace.default, -1.0, 2.0, 7),
    op_case(aten.linspace.default, 3.0, 9.0, 1),
    op_case(aten.eye.default, 3),
    op_case(aten.eye.m, 3, 5, dtype=torch.int32),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


@pytest.mark.parametrize(
    "op", [aten.empty_like.default, aten.new_empty.default, aten.empty.memory_format], ids=str
)
def test_empty_has_the_shape(op):
    args = {aten.empty_like.default: [f32(2, 3)], aten.new_empty.default: [f32(1), [2, 3]]}
    graph = graph_of(op_case(op, *args.get(op, [[2, 3]])))
    assert str(graph.outputs[0].type) == "float32[2,3]"


def test_a_large_fill_is_not_stored():
    assert [op.kind for op in graph_of(op_case(aten.full.default, list(BIG), 1.5)).ops] == ["FILL"]
    assert graph_of(op_case(aten.full.default, [2, 3], 1.5)).ops == []


class Sized(torch.nn.Module):
    """Tensors whose sizes follow the batch `b` and the length `n`."""

    def forward(self, x):
        b, n = x.shape
        return (
            x + torch.zeros(b, 1) + torch.ones(n),
            torch.full((b, n), 2.5) * x,
            torch.arange(n) + x,
            torch.arange(1, n + 1, dtype=torch.float32) * x,
            torch.arange(n, 0, -1) * x,
            torch.arange(0, 2 * n, 2, dtype=torch.int32) * x,
            torch.full_like(x, 3),
            torch.eye(n) + x[:1],
            x.new_zeros(n, b) + x.t(),
            torch.full((b,), n)[:, None] + x,
        )


@pytest.fixture(scope="module")
def sized():
    dims = ({0: torch.export.Dim("b", min=2, max=64), 1: torch.export.Dim("n", min=2, max=64)},)
    return litert_torch.convert(Sized(), (f32(3, 5),), dynamic_shapes=dims)


@pytest.mark.parametrize("shape", [(3, 5), (2, 7)])
def test_dynamic_sizes(sized, shape):
    x = f32(*shape)
    for got, want in zip(sized(x.numpy()), Sized()(x), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6, atol=1e-6)


def test_arange_of_floats_up_to_a_dynamic_size_is_refused():
    n = Dim(sympy.Symbol("n", integer=True, positive=True))
    with pytest.raises(UnsupportedCaseError, match="multiply by the step"):
        counted(Graph(), 0, n, 0.5, None)


def test_filled_wraps_no_dtype():
    assert filled(Graph(), (2,), 1, DType.BOOL).read().tolist() == [True, True]
