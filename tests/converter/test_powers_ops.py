import pytest
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value
from litert_torch.converter.lowerings.powers import rsqrt
from tests.op_case import assert_matches_torch, f32, graph_of, integers, op_case, positive

aten = torch.ops.aten
INT8, INT64 = torch.int8, torch.int64
SIGNED = torch.tensor([-2.5, -1.0, 0.0, 0.5, 3.0])

CASES = [
    op_case(aten.sqrt.default, positive(2, 3)),
    op_case(aten.sqrt.default, integers(2, 3, low=1)),
    op_case(aten.sqrt.default, torch.tensor([-1.0, 0.0, float("inf")])),
    op_case(aten.rsqrt.default, positive(2, 3)),
    op_case(aten.rsqrt.default, integers(2, 3, low=1)),
    op_case(aten.rsqrt.default, torch.tensor([0.0, -1.0, float("inf")])),
    op_case(aten.reciprocal.default, SIGNED),
    op_case(aten.reciprocal.default, integers(2, 3, low=1)),
    op_case(aten.square.default, f32(2, 3)),
    op_case(aten.square.default, integers(2, 3, dtype=INT8)),
    op_case(aten.square.default, torch.tensor([2**20 + 1, -5])),
    *[
        op_case(aten.pow.Tensor_Scalar, SIGNED, e)
        for e in (0, 1, 2, 3, 2.0, 4, 7, -1, -2, -3, 0.5, -0.5, 1.7, 16, 17)
    ],
    op_case(aten.pow.Tensor_Scalar, positive(2, 3), -1.3),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3), 2),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3), 2.0),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3), 0),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3, low=1), -1.0),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3, low=1), 0.5),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3, dtype=INT8), 3),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3, dtype=INT64), 15),
    op_case(aten.pow.Tensor_Scalar, integers(2, 3, low=-3, high=4, dtype=INT64), 21),
    op_case(aten.pow.Tensor_Tensor, positive(2, 3), f32(3)),
    op_case(aten.pow.Tensor_Tensor, SIGNED, torch.tensor([2.0, 3.0, 0.0, -1.0, -2.0])),
    op_case(aten.pow.Tensor_Tensor, f32(2, 3), integers(3)),
    op_case(aten.pow.Tensor_Tensor, integers(2, 3), integers(3, low=0, high=4)),
    op_case(
        aten.pow.Tensor_Tensor,
        torch.tensor([-3, 2, 7, -1, 0, 5]),
        torch.tensor([39, 62, 3, 63, 0, 1]),
    ),
    op_case(aten.pow.Scalar, 2.0, torch.tensor([-2.0, 0.0, 0.5, 10.0])),
    op_case(aten.pow.Scalar, 2, integers(2, 3, low=0)),
    op_case(aten.pow.Scalar, 2, integers(2, 3, low=0, dtype=INT64)),
    op_case(aten.pow.Scalar, 1, f32(2, 3)),
    op_case(aten.pow.Scalar, 0.5, integers(2, 3)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


@pytest.mark.parametrize(
    ("exponent", "kinds"),
    [
        (2, ["SQUARE"]),
        (3, ["SQUARE", "MUL"]),
        (0.5, ["SQRT"]),
        (-0.5, ["SQRT", "DIV"]),
        (1.7, ["POW"]),
    ],
)
def test_few_factors_are_products(exponent, kinds):
    graph = graph_of(op_case(aten.pow.Tensor_Scalar, f32(2), exponent))
    assert [op.kind for op in graph.ops] == kinds


def test_rsqrt_of_what_cannot_be_zero_is_rsqrt():
    graph = Graph()
    variance = tfl.add(graph, Value(TensorType((2, 3), DType.FLOAT32)), tfl.const(1e-5, "float32"))
    rsqrt(graph, variance)
    assert [op.kind for op in graph.ops] == ["ADD", "RSQRT"]
