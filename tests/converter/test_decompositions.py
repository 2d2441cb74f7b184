import torch

from litert_torch.converter.decompositions import Decomposer
from tests.op_case import assert_matches_torch, f32, op_case


def test_writes_to_views_inside_a_decomposition_are_kept():
    assert_matches_torch(op_case(torch.vander, f32(5), 3), export=True)


def test_a_traced_decomposition_writes_nothing():
    body = Decomposer().trace(torch.ops.aten.vander.default, (f32(5), 3), {})
    calls = [n.target for n in body.graph.nodes if n.op == "call_function"]
    assert calls
    assert not any(target._schema.is_mutable for target in calls)
