import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from torch import nn
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree as pytree

import litert_torch
from litert_torch.converter import flatbuffer, passes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.errors import UnsupportedOpError
from tests.op_case import f32, run


def assert_converts(module, *cases):
    """The file made with the first case's inputs gives eager's results for every case."""
    model = litert_torch.convert(module.eval(), cases[0]).model_content()
    for case in cases:
        with torch.no_grad():
            want = pytree.tree_leaves(module(*case))
        for got, w in zip(run(model, *case), want, strict=True):
            assert got.shape == tuple(w.shape)
            assert got.dtype == w.numpy().dtype
            np.testing.assert_allclose(got, w.numpy(), rtol=1e-5, atol=1e-5)


def n(value):
    return torch.tensor(value, dtype=torch.int32)


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(f32(3))

    def forward(self, x):
        return torch.cond(
            x[0, 0] > 1,
            lambda x: (x * self.weight, x + 1),
            lambda x: (x - torch.tanh(self.weight), x * 2),
            (x,),
        )


class BranchInLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(f32(3))

    def forward(self, x, limit):
        def step(i, x):
            y = torch.cond(x[0, 0] > 0.5, lambda x: x * self.weight, lambda x: x + 0.3, (x,))
            return i + 1, y

        return while_loop(lambda i, x: i < limit, step, (torch.zeros_like(limit), x))


class Swap(nn.Module):
    """Its second value becomes the first as it was: results are written over operands in order."""

    def forward(self, x, limit):
        def step(i, a, b):
            return i + 1, b + 0.5 * a, a.transpose(0, 1).transpose(0, 1).clone()

        return while_loop(lambda i, a, b: i < limit, step, (torch.zeros_like(limit), x, 2 * x))


class Scan(nn.Module):
    def forward(self, x, k):
        return scan(lambda c, x: (c * 0.5 + x * k, c * x), torch.zeros(3), x)


class Map(nn.Module):
    def forward(self, x, k):
        return torch_map(lambda row, k: row * k - 1, x, k)


MODULES = [
    (Branch(), [(f32(2, 3),), (f32(2, 3).abs() + 2,), (-f32(2, 3).abs(),)]),
    (BranchInLoop(), [(f32(2, 3), n(5)), (f32(2, 3), n(0)), (-f32(2, 3), n(2))]),
    (Swap(), [(f32(2, 3), n(3)), (f32(2, 3), n(4)), (f32(2, 3), n(0))]),
    (Scan(), [(f32(6, 3), f32(3))]),
    (Scan(), [(f32(90, 3), f32(3))]),
    (Scan(), [(f32(67, 3), f32(3))]),
    (Map(), [(f32(5, 2, 3), f32(3))]),
]


@pytest.mark.parametrize(("module", "cases"), MODULES, ids=lambda a: type(a).__name__)
def test_matches_torch(module, cases):
    assert_converts(module, *cases)


def test_constants_are_built_into_the_branch():
    model = litert_torch.convert(Branch().eval(), (f32(2, 3),)).model_content()
    root = schema.ModelT.InitFromPackedBuf(model)
    branches = [s for s in root.subgraphs if s.name in (b"then", b"else")]
    assert [len(s.inputs) for s in branches] == [1, 1]


@pytest.mark.parametrize("rewrite", [True, False])
def test_loop_results_never_overwrite_operands_that_are_still_read(rewrite):
    """(a, b) becomes (b, a): as inputs returned elsewhere, or through ops that passes remove."""
    graph, condition, body = Graph(name="serving_default"), Graph(), Graph()
    pair = [TensorType((2, 3), "float32")] * 2
    kinds = [TensorType((), "int32"), *pair]
    for g in (graph, condition, body):
        g.inputs = [Value(t) for t in kinds]
    graph.input_names = ["i", "a", "b"]
    condition.outputs = [tfl.less(condition, condition.inputs[0], const(3, "int32"))]
    i, a, b = body.inputs
    if rewrite:
        a, b = (_there_and_back(body, v) for v in (a, b))
    body.outputs = [tfl.add(body, i, const(1, "int32")), b, a]
    graph.outputs = tfl.while_(graph, graph.inputs, condition, body)
    graph.output_names = ["i", "a", "b"]
    passes.run(graph)
    x, y = f32(2, 3), -f32(2, 3)
    got = run(flatbuffer.to_bytes([graph]), n(0), x, y)
    np.testing.assert_array_equal(got[1], y.numpy())
    np.testing.assert_array_equal(got[2], x.numpy())


def _there_and_back(g, v):
    return tfl.transpose(g, tfl.transpose(g, v, [1, 0]), [1, 0])


@torch.library.custom_op("control_flow_ops::unknown", mutates_args=())
def unknown(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


unknown.register_fake(torch.empty_like)


def test_an_error_in_a_branch_names_the_users_line():
    class Unknown(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: unknown(x) * 2, lambda x: x * 3, (x,))

    with pytest.raises(UnsupportedOpError, match=r"test_control_flow_ops\.py:\d+"):
        litert_torch.convert(Unknown().eval(), (f32(3, 3),))
