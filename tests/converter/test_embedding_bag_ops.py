import pytest
import torch

import litert_torch
from litert_torch.converter import flatbuffer
from tests.op_case import f32, graph_of, integers, op_case, run

aten = torch.ops.aten
TABLE, INDICES = f32(9, 4), integers(8, low=0, high=9).long()
SKIP = int(INDICES[2])

CASES = [
    op_case(aten.embedding_bag.default, TABLE, INDICES, offsets, False, mode, False, weights)
    for offsets in (torch.tensor([0, 3, 3, 7]), torch.tensor([0, 2, 4, 6]))
    for mode, weights in ((0, None), (1, None), (2, None), (0, f32(8)))
] + [
    op_case(
        aten.embedding_bag.padding_idx,
        TABLE,
        INDICES,
        torch.tensor([0, 3, 8]),
        False,
        mode,
        False,
        None,
        True,
        SKIP,
    )
    for mode in (0, 1, 2)
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    (got,) = run(flatbuffer.to_bytes([graph_of(case)]), *case.tensors)
    want = case.op(*case.args)[0]
    torch.testing.assert_close(torch.from_numpy(got), want)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_module_with_even_bags(mode):
    module = torch.nn.EmbeddingBag(9, 4, mode=mode).eval()
    x = integers(3, 5, low=0, high=9).long()
    (got,) = run(litert_torch.convert(module, (x,)).model_content(), x)
    torch.testing.assert_close(torch.from_numpy(got), module(x).detach())
