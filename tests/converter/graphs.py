"""Building small graphs by hand, and running them."""

import numpy as np

from litert_torch.converter import flatbuffer, passes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value
from tests.op_case import run

TO_LAST, TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]


def build(function, *shapes, dtype="float32"):
    """The graph whose outputs `function(graph, *inputs)` returns."""
    g = Graph(name="serving_default")
    for i, shape in enumerate(shapes):
        g.inputs.append(Value(TensorType(tuple(shape), DType(dtype))))
        g.input_names.append(f"args_{i}")
    result = function(g, *g.inputs)
    g.outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    g.output_names = [f"output_{i}" for i in range(len(g.outputs))]
    g.verify()
    return g


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def weights(*shape, seed=0):
    return tfl.const(random(*shape, seed=seed) * 0.3, "float32")


def conv_nchw(g, x, out, *, kernel=3, seed=0, **options):
    """A convolution as lowerings emit it: between two transposes."""
    last = tfl.transpose(g, x, TO_LAST)
    filter_ = weights(out, kernel, kernel, int(last.shape[-1]), seed=seed)
    result = tfl.conv_2d(g, last, filter_, weights(out, seed=seed + 1), **options)
    return tfl.transpose(g, result, TO_FIRST)


def outputs(graph, inputs):
    """What the file computes for numpy `inputs`."""
    import torch

    return run(flatbuffer.to_bytes([graph]), *map(torch.from_numpy, inputs))


def kinds(graph):
    return [op.kind for op in graph.ops]


def assert_passes_keep_results(function, *shapes, only=None):
    """Runs the graph before and after the pipeline; gives the rewritten graph."""
    inputs = [random(*s, seed=i + 5) for i, s in enumerate(shapes)]
    want = outputs(build(function, *shapes), inputs)
    graph = build(function, *shapes)
    (only or passes.run)(graph)
    graph.verify()
    for got, expected in zip(outputs(graph, inputs), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
    return graph
