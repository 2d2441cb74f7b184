import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import litert_torch
from litert_torch.converter import flatbuffer
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings.indexing import gather, index_tensor
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import assert_matches_torch, bools, f32, integers, lowered_alone, op_case, run

aten = torch.ops.aten


def at(*values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


CASES = [
    op_case(aten.index.Tensor, f32(4, 5), [at(2, -1, 0)]),
    op_case(aten.index.Tensor, f32(4, 5), [None, at(2, -1, 0)]),
    op_case(aten.index.Tensor, f32(4, 5, 3), [None, at([2, -1], [0, 4])]),
    op_case(aten.index.Tensor, f32(4, 5, 3), [at(1, -4), at([2], [-1])]),
    op_case(aten.index.Tensor, f32(4, 5, 3), [None, at(1, -4), at([2], [-1])]),
    op_case(aten.index.Tensor, f32(4, 5, 3), [at(1, -4), None, at(2, -1)]),
    op_case(aten.index.Tensor, f32(2, 4, 5, 3), [None, at(1, -4), None, at([2, 0])]),
    op_case(aten.index.Tensor, f32(4, 5, 3), [at(3, 1), at(-1, 1), at(0, -2)]),
    op_case(aten.index.Tensor, bools(4, 5), [torch.tensor(-2)]),
    op_case(aten.index.Tensor, integers(4, 5, dtype=torch.int64), [at(3, 3, dtype=torch.int32)]),
    op_case(aten._unsafe_index.Tensor, f32(1, 2, 4, 5), [None, None, at([3], [0]), at(4, 1)]),
    op_case(aten.index_select.default, f32(4, 5), 0, at(3, 0, 3)),
    op_case(aten.index_select.default, f32(4, 5, 2), -1, at(1, dtype=torch.int32)),
    op_case(aten.index_select.default, bools(4, 5), 1, torch.tensor(3)),
    op_case(aten.gather.default, f32(4, 5), 1, at([0, 4, 2], [1, 1, 0])),
    op_case(aten.gather.default, f32(4, 5), 0, at([0, 3, 2, 1, 1])),
    op_case(aten.gather.default, f32(2, 3, 4), 1, integers(2, 5, 4, low=0, high=3).long()),
    op_case(aten.gather.default, f32(2, 3, 4), -1, integers(1, 3, 2, low=0, high=4).long()),
    op_case(aten.gather.default, integers(2, 3, dtype=torch.int64), 1, at([0], [2])),
    op_case(aten.gather.default, f32(5), 0, at(4, 0)),
    op_case(aten.gather.default, f32(5, 1), 0, at([4], [0])),
    op_case(aten.take.default, f32(4, 5), at([0, -1], [7, -20])),
    op_case(aten.take_along_dim.default, f32(4, 5), at([0, 4, 2]), 1),
    op_case(aten.take_along_dim.default, f32(1, 5, 3), integers(4, 2, 3, low=0, high=5).long(), 1),
    op_case(aten.take_along_dim.default, f32(4, 5), at(0, 13)),
    op_case(aten.embedding.default, f32(6, 3), at([0, 5, 2], [1, 1, 0])),
    op_case(aten.embedding.default, f32(6, 3), torch.tensor(4), 2),
    op_case(aten.one_hot.default, at([0, 3], [1, 1]), 5),
    op_case(aten.searchsorted.Tensor, f32(9).sort()[0], f32(2, 4)),
    op_case(aten.searchsorted.Tensor, f32(2, 9).sort()[0], f32(2, 4), right=True),
    op_case(aten.searchsorted.Tensor, at(1, 2, 2, 5), at(2, 0, 9, 5), side="right"),
    op_case(aten.searchsorted.Tensor, at(1, 2, 2, 5), at(2, 0, 9, 5), out_int32=True),
    op_case(aten.searchsorted.Tensor, f32(2, 9), f32(2, 4), sorter=f32(2, 9).sort()[1], right=True),
    op_case(aten.searchsorted.Scalar, f32(9).sort()[0], 0.25),
    op_case(aten.bucketize.Tensor, f32(2, 4), at(-1.0, 0.0, 1.5, dtype=torch.float32)),
    op_case(aten.bucketize.Tensor, f32(2, 2) / 0 * 0, at(-1.0, 0.0, dtype=torch.float32)),
    op_case(aten.bucketize.Tensor, integers(7), at(-3, 2, 4, dtype=torch.int32), right=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


def graph_with(x):
    graph = Graph(name="serving_default")
    graph.inputs = [Value(TensorType(tuple(x.shape), DType.FLOAT32))]
    graph.input_names, graph.output_names = ["args_0"], ["output_0"]
    return graph


@pytest.mark.parametrize(
    "indices",
    [
        [at(1, 2, 3)],
        [None, at(4, 2, 0)],
        [None, at(4, 3, 2)],
        [at(-1, 0), at(2, -5)],
        [torch.tensor([True, False, False, True])],
        [None, bools(5)],
        [bools(4, 5)],
        [at(1)[None], None],
    ],
    ids=str,
)
def test_constant_indices(indices):
    x = f32(4, 5)
    graph = graph_with(x)
    graph.outputs = [
        index_tensor(
            graph, graph.inputs[0], [None if i is None else const(i.numpy()) for i in indices]
        )
    ]
    (got,) = run(flatbuffer.to_bytes([graph]), x)
    torch.testing.assert_close(torch.from_numpy(got), torch.ops.aten.index.Tensor(x, indices))


def test_constant_run_is_a_slice():
    graph = graph_with(f32(4, 5))
    index_tensor(graph, graph.inputs[0], [None, const(at(1, 2, 3).numpy())])
    assert [op.kind for op in graph.ops] == ["SLICE"]


def test_gather_of_whole_rows_does_not_expand_its_index():
    graph = Graph()
    x = Value(TensorType((2, 6, 3), DType.FLOAT32))
    index = Value(TensorType((2, 4, 1), DType.INT32))
    wide = graph.emit("BROADCAST_TO", [index], TensorType((2, 4, 3), DType.INT32))
    y = gather(graph, x, 1, wide)
    assert y.shape == (2, 4, 3)
    assert graph.ops[-1].kind == "GATHER"
    assert graph.ops[-1].inputs[1].shape == (2, 4)


class Rows(torch.nn.Module):
    def forward(self, x, index):
        rows = torch.gather(x, 1, index[..., None].expand(-1, -1, x.shape[-1]))
        return rows, x[torch.arange(2)[:, None], index], x[..., [2, 0]]


def test_through_torch_export():
    args = (f32(2, 6, 3), at([0, 5, 2, 2], [1, 3, 0, 4]))
    got = run(litert_torch.convert(Rows(), args).model_content(), *args)
    for g, w in zip(got, Rows()(*args), strict=True):
        torch.testing.assert_close(torch.from_numpy(g), w)


@pytest.mark.parametrize(
    "case",
    [
        op_case(aten.index.Tensor, f32(4), [bools(4)]),
        op_case(aten.one_hot.default, at(0, 1)),
        op_case(aten.nonzero.default, f32(4)),
        op_case(aten.argwhere.default, f32(4)),
        op_case(aten.where.default, bools(4)),
        op_case(aten.masked_select.default, f32(4), bools(4)),
        op_case(aten.bincount.default, at(0, 1)),
        op_case(aten._unique2.default, f32(4)),
    ],
    ids=str,
)
def test_results_whose_size_depends_on_data_are_refused(case):
    with pytest.raises(UnsupportedCaseError, match="depends on data"):
        lowered_alone(case)


index_lists = st.lists(st.integers(-4, 3), min_size=3, max_size=3)


@settings(derandomize=True, max_examples=20, deadline=None)
@given(st.lists(st.none() | index_lists, min_size=1, max_size=3))
def test_any_index(indices):
    tensors = [None if i is None else torch.tensor(i) for i in indices]
    if any(t is not None for t in tensors):
        assert_matches_torch(op_case(aten.index.Tensor, f32(4, 5, 6), tensors))
