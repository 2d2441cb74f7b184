"""One op call to the bytes of a .tflite file, as `convert` does it, without torch.export's second.

The call is traced as torch.export traces (above autograd, on fake tensors, composite ops kept
whole) and handed to the same lowering and the same passes. Calls with in-place ops, which
torch.export's own functionalization may have to rewrite, go through torch.export itself.
"""

import warnings

import torch
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from litert_torch.converter import composites, convert_program, flatbuffer, folding, passes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph
from litert_torch.converter.lower import _Lowering
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.torch_types import compute_dtype, dtype_of


class Module(torch.nn.Module):
    """The call as a module."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *tensors):
        return self.call(*tensors)


def traced(call):
    """The call as a graph of ATen ops."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = make_fx(call, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True)
        return trace(*call.tensors)


def converted(module, call):
    """The file of a traced call."""
    if any(_writes(node) for node in module.graph.nodes):
        return exported(call)
    graph = lowered(module, call)
    for g in [*graph.subgraphs(), graph]:
        composites.form(g)
    passes.run(graph)
    return flatbuffer.to_bytes([graph])


def exported(call):
    """The file of a call by torch.export, as a user converts it."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = tuple(call.tensors)
        program = torch.export.export(Module(call), inputs, strict=False)
    names = [f"args_{i}" for i in range(len(inputs))]
    return flatbuffer.to_bytes([convert_program(program, "serving_default", names)])


def lowered(module, call):
    """The traced call as a LiteRT graph."""
    graph = Graph(name="serving_default")
    state = _Lowering(graph, lowers.all())
    inputs = [state.input(t, f"args_{i}") for i, t in enumerate(call.tensors)]
    state.run(module, inputs)
    node = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    for result, source in zip(state.results, pytree.tree_leaves(node.args), strict=True):
        (value,) = folding.as_values([result], compute_dtype)
        value = tfl.cast(graph, value, dtype_of(source.meta["val"].dtype))
        owned = value.producer is not None and value not in graph.outputs
        graph.outputs.append(value if owned else tfl.copy(graph, value))
        graph.output_names.append(f"output_{len(graph.output_names)}")
    graph.remove_dead_ops()
    graph.verify()
    return graph


def _writes(node):
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable
