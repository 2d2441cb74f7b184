"""Whole conversions against eager PyTorch: faults that people met in converters, one a test."""

import copy

import numpy as np
import torch
from ai_edge_litert import schema_py_generated as schema
from torch.utils import _pytree as pytree

import litert_torch


class Calls(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def whole_numbers(low, high, *shape, dtype=torch.int64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def seeded(make):
    """What `make` gives with PyTorch's random numbers fixed: a module with known weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


def assert_same(got, want, tolerance=1e-4):
    """Equal shapes, dtypes, non-finite places; the rest within `tolerance` of the largest value."""
    got = list(got.values()) if isinstance(got, dict) else got
    got = list(got) if isinstance(got, tuple) else [got] if not isinstance(got, list) else got
    want = [w.detach() for w in pytree.tree_leaves(want) if isinstance(w, torch.Tensor)]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        w = w.numpy()
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        if w.dtype.kind != "f":
            np.testing.assert_array_equal(g, w)
            continue
        finite = np.isfinite(w)
        np.testing.assert_array_equal(g[~finite], w[~finite])
        largest = np.abs(w[finite]).max(initial=0)
        np.testing.assert_allclose(
            g[finite], w[finite], rtol=0, atol=tolerance * max(largest, 1e-12)
        )


def assert_converts(model, *inputs, tolerance=1e-4, others=(), dynamic_shapes=None):
    """The file gives what eager does, also for `others`, which are further tuples of inputs."""
    module = model if isinstance(model, torch.nn.Module) else Calls(model).eval()
    edge = litert_torch.convert(module, inputs, dynamic_shapes=dynamic_shapes)
    for given in (inputs, *others):
        with torch.no_grad():
            want = module(*copy.deepcopy(given))
        assert_same(edge(*(x.numpy() for x in given)), want, tolerance)
    return edge


def op_names(edge):
    """The LiteRT ops of the main graph."""
    model = schema.Model.GetRootAs(edge.model_content(), 0)
    names = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}
    graph = model.Subgraphs(0)
    ops = (graph.Operators(i) for i in range(graph.OperatorsLength()))
    return [names[model.OperatorCodes(op.OpcodeIndex()).BuiltinCode()] for op in ops]


def highest_rank(edge):
    """The largest rank of any tensor."""
    graph = schema.Model.GetRootAs(edge.model_content(), 0).Subgraphs(0)
    return max(graph.Tensors(i).ShapeLength() for i in range(graph.TensorsLength()))
