"""One op call to a .tflite file, as `convert` does it, without torch.export's second.

The traced call is handed to the same lowering and the same passes. Calls with in-place ops, which
torch.export's own functionalization may have to rewrite, go through torch.export itself.
"""

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from torch.utils import _pytree as pytree

from litert_torch.converter import composites, convert_program, flatbuffer, folding, passes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph
from litert_torch.converter.lower import _Lowering
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.torch_types import compute_dtype, dtype_of
from tests.conformance import comparison, tracing


def converted(module, call):
    """The file of a traced call."""
    if tracing.writes(module):
        return exported(call)
    graph = lowered(module, call)
    for g in [*graph.subgraphs(), graph]:
        composites.form(g)
    passes.run(graph)
    return flatbuffer.to_bytes([graph])


def exported(call):
    """The file of a call by torch.export, as a user converts it."""
    names = [f"args_{i}" for i in range(len(call.tensors))]
    program = tracing.program_of(call)
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


def runner(content, tensors):
    """A function that runs the file on the tensors."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    feed = [comparison.as_array(t).astype(d["dtype"]) for t, d in zip(tensors, inputs, strict=True)]

    def run():
        for detail, array in zip(inputs, feed, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [_as_compared(interpreter.get_tensor(d["index"])) for d in outputs]

    return run


def _as_compared(array):
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else np.array(array)
