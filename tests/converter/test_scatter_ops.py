import pytest
import torch
from ai_edge_litert.interpreter import Interpreter

import litert_torch
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import (
    assert_matches_torch,
    bools,
    f32,
    graph_of,
    integers,
    lowered_alone,
    op_case,
    run,
)

aten = torch.ops.aten


def at(*values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


def index(*shape, below):
    return integers(*shape, low=0, high=below).long()


I64 = torch.int64
CASES = [
    op_case(aten.index_put.default, f32(5, 3), [at(3, -5, 3)], f32(3, 3)),
    op_case(aten.index_put.default, f32(5, 3), [at(3, -5)], f32()),
    op_case(aten.index_put.default, f32(5, 3), [None, at(2, -3)], f32(5, 2)),
    op_case(aten.index_put.default, f32(5, 3), [at(-2)], f32(3)),
    op_case(aten.index_put.default, f32(2, 6, 3), [None, at(-2)], f32(2, 1, 3)),
    op_case(aten.index_put.default, f32(5, 3), [at(3, -5, 3), at(2, 1, 2)], f32(3)),
    op_case(aten.index_put.default, f32(5, 3), [at(3, -5), at([2], [1])], f32(2)),
    op_case(aten.index_put.default, f32(2, 5, 3), [at(1, 0), None, at(2, 1)], f32(2, 5)),
    op_case(aten.index_put.default, f32(2, 5, 3), [None, at(3, -5), at([2], [1])], f32(2, 2, 2)),
    op_case(aten.index_put.default, f32(5, 3), [at(3, -5, 3)], f32(3, 3), True),
    op_case(aten.index_put.default, f32(2, 5, 3), [None, at(3, -5, 3)], f32(3), True),
    op_case(aten.index_put.default, integers(5, dtype=I64), [at(3, 3)], at(7, 8), True),
    op_case(
        aten.index_put.default,
        integers(5, dtype=torch.int16),
        [at(3, 0)],
        integers(2).short(),
        True,
    ),
    op_case(aten.index_put.default, bools(5), [at(3, 0)], bools(2)),
    op_case(aten.index_put.default, f32(4, 3), [bools(4, 3)], f32()),
    op_case(aten.index_put.default, f32(4, 3), [bools(4)], f32(3)),
    op_case(aten.index_put.default, f32(4, 3, 2), [bools(4)], f32(1, 3, 2), True),
    op_case(aten.index_put.default, f32(4, 3), [None, bools(3)], f32(1)),
    op_case(aten.index_put.default, f32(4, 3), [bools(4)], f32(int(bools(4).sum()), 3)),
    op_case(aten.index_put.default, f32(4, 3), [bools(4, 3)], f32(int(bools(4, 3).sum()))),
    op_case(aten.index_copy.default, f32(5, 3), 0, at(3, 0), f32(2, 3)),
    op_case(aten.index_copy.default, f32(2, 5, 3), 1, at(3), f32(2, 1, 3)),
    op_case(aten.index_copy.default, integers(5, 3), -1, at(2, 0), integers(5, 2)),
    op_case(aten.index_add.default, f32(5, 3), 0, at(3, 0, 3), f32(3, 3)),
    op_case(aten.index_add.default, f32(5, 3), 1, at(2, 0), f32(5, 2), alpha=-2),
    op_case(aten.index_fill.int_Scalar, f32(5, 3), 1, at(-1, 0), 7.5),
    op_case(aten.index_fill.int_Tensor, integers(5, 3), 0, at(1, 1), torch.tensor(4).int()),
    op_case(aten.index_reduce.default, f32(5, 3), 1, at(2, 0, 2), f32(5, 3), "amax"),
    op_case(
        aten.index_reduce.default, f32(5, 3), 0, at(2, 0, 2), f32(3, 3), "mean", include_self=False
    ),
    op_case(aten.put.default, f32(5, 3), at([3, -1]), f32(1, 2)),
    op_case(aten.put.default, f32(5, 3), at(3, 3), f32(2), True),
    op_case(aten.scatter.src, f32(4, 5), 1, index(4, 3, below=5), f32(4, 3)),
    op_case(aten.scatter.src, f32(4, 5), 0, index(3, 4, below=4), f32(6, 5)),
    op_case(aten.scatter.src, f32(2, 3, 4), 1, index(2, 2, 4, below=3), f32(2, 2, 4)),
    op_case(aten.scatter.src, integers(2, 3), -1, index(1, 3, below=3), integers(2, 3)),
    op_case(aten.scatter.src, bools(6), 0, at(3, 1), bools(2)),
    op_case(aten.scatter.value, f32(4, 5), 1, index(4, 3, below=5), 2.5),
    op_case(aten.scatter.value, integers(4, 5, dtype=I64), 0, index(2, 3, below=4), 7),
    op_case(aten.scatter.reduce, f32(4, 5), 1, index(4, 3, below=5), f32(4, 3), reduce="add"),
    op_case(aten.scatter.reduce, f32(4, 5), 1, index(4, 3, below=5), f32(4, 3), reduce="multiply"),
    op_case(aten.scatter.value_reduce, f32(4, 5), 1, index(4, 3, below=5), 2.5, reduce="multiply"),
    op_case(aten.scatter_add.default, f32(4, 5), 1, index(4, 8, below=5), f32(4, 8)),
    op_case(aten.scatter_add.default, f32(4, 5), 0, index(8, 3, below=4), f32(8, 5)),
    op_case(
        aten.scatter_add.default, integers(5, dtype=I64), 0, index(9, below=5), integers(9).long()
    ),
    *[
        op_case(
            aten.scatter_reduce.two,
            kind(3, 5),
            1,
            index(3, 4, below=5),
            kind(3, 4),
            reduce,
            include_self=include_self,
        )
        for kind in (f32, integers)
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for include_self in (True, False)
    ],
    op_case(aten.masked_scatter.default, f32(4, 3), bools(4, 3), f32(12)),
    op_case(aten.masked_scatter.default, f32(4, 3), bools(4, 1), f32(4, 3)),
    op_case(aten.masked_scatter.default, f32(4, 3), bools(3), f32(3, 4)),
    op_case(aten.slice_scatter.default, f32(5, 3), f32(2, 3), 0, 1, 3),
    op_case(aten.slice_scatter.default, f32(5, 3), f32(5, 2), 1, -2),
    op_case(aten.slice_scatter.default, f32(7, 3), f32(3, 3), 0, 1, 6, 2),
    op_case(aten.slice_scatter.default, f32(7, 3), f32(7, 3)),
    op_case(aten.select_scatter.default, f32(5, 3), f32(5), 1, -1),
    op_case(aten.select_scatter.default, bools(5, 3), bools(3), 0, 2),
    op_case(aten.diagonal_scatter.default, f32(4, 5), f32(4), 1),
    op_case(aten.diagonal_scatter.default, f32(4, 2, 3), f32(2, 3), -1, 0, 2),
    op_case(aten.copy.default, f32(2, 3), integers(3)),
]


@pytest.mark.filterwarnings("ignore:index_reduce", "ignore:scatter_reduce")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case)


class CacheUpdate(torch.nn.Module):
    """A key-value cache [B, H, S, D], written at positions that begin at `start`."""

    def __init__(self, length):
        super().__init__()
        self.length = length

    def forward(self, cache, new, start):
        positions = start + torch.arange(self.length)
        put = cache.clone()
        put[:, :, positions] = new
        return cache.index_copy(2, positions, new), put


@pytest.mark.parametrize("length", [1, 3])
def test_cache_update_at_a_run_of_positions_is_a_dynamic_update_slice(length):
    args = (f32(1, 2, 8, 3), f32(1, 2, length, 3), torch.tensor([4]))
    content = litert_torch.convert(CacheUpdate(length), args).model_content()
    want = CacheUpdate(length)(*args)
    for got, w in zip(run(content, *args), want, strict=True):
        torch.testing.assert_close(torch.from_numpy(got), w)
    kinds = [op["op_name"] for op in Interpreter(model_content=content)._get_ops_details()]
    assert kinds.count("DYNAMIC_UPDATE_SLICE") == 2
    assert not {"GATHER", "SCATTER_ND", "ONE_HOT"} & set(kinds)


def test_cache_update_at_any_positions_replaces_them():
    case = op_case(aten.index_copy.default, f32(1, 2, 8, 3), 2, at(6, 1, 2), f32(1, 2, 3, 3))
    assert "DYNAMIC_UPDATE_SLICE" not in {op.kind for op in graph_of(case).ops}
    assert_matches_torch(case)


class ConstantPositions(torch.nn.Module):
    def forward(self, x, new):
        a, b, c = x.clone(), x.clone(), x.clone()
        a[[1, 2]] = new
        b[[3, 0]] = new
        c[torch.tensor([True, False, False, True])] = new
        d = x.scatter(0, torch.tensor([[3, 0, 1], [2, 2, 0]]), new)
        return a, b, c, d


def test_constant_positions_through_torch_export():
    args = (f32(4, 3), f32(2, 3))
    content = litert_torch.convert(ConstantPositions(), args).model_content()
    for got, w in zip(run(content, *args), ConstantPositions()(*args), strict=True):
        torch.testing.assert_close(torch.from_numpy(got), w)
    kinds = [op["op_name"] for op in Interpreter(model_content=content)._get_ops_details()]
    assert not {"SCATTER_ND", "ONE_HOT"} & set(kinds)


def test_many_unique_positions_go_without_comparing_all_pairs():
    n = 5000
    positions = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    case = op_case(aten.scatter.src, f32(n), 0, positions, f32(n))
    assert "SCATTER_ND" in {op.kind for op in graph_of(case).ops}
    assert_matches_torch(case)
    assert_matches_torch(op_case(aten.index_copy.default, f32(n, 2), 0, positions, f32(n, 2)))


def test_too_many_pairs_are_refused():
    n = 5000
    positions = torch.zeros(n, dtype=I64)
    case = op_case(aten.scatter_reduce.two, f32(n), 0, positions, f32(n), "amax")
    with pytest.raises(UnsupportedCaseError, match="pairs"):
        lowered_alone(case)
