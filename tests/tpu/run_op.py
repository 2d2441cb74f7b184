"""One op on PyTorch tensors, computed by its TPU lowering."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from litert_torch.tpu import dtypes
from litert_torch.tpu.interpret import Interpreter


def run_op(op, *args, **kwargs):
    """The op's results as numpy arrays; without jit, so that it is quick.

    The op is traced on fake tensors, so that shape and dtype are checked and an op without a
    lowering is decomposed.
    """
    module = _program(op, args, kwargs)
    interpreter = Interpreter()
    interpreter.require_lowerings(module)
    tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    with jax.enable_x64(True):
        inputs = [jnp.asarray(dtypes.array_of(t)) for t in tensors]
        results = [None if r is None else np.asarray(r) for r in interpreter.run(module, inputs)]
    several = len(results) != 1 or isinstance(_call(module).meta["val"], (tuple, list))
    return results if several else results[0]


def _program(op, args, kwargs):
    mode = FakeTensorMode()
    graph = torch.fx.Graph()

    def placeholder(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        node = graph.placeholder(f"x{len(graph.nodes)}")
        node.meta["val"] = mode.from_tensor(leaf)
        return node

    node_args, node_kwargs = pytree.tree_map(placeholder, (args, kwargs))
    node = graph.call_function(op, node_args, node_kwargs)
    fake_args, fake_kwargs = map_arg((node_args, node_kwargs), lambda n: n.meta["val"])
    with mode, torch.no_grad():
        node.meta["val"] = op(*fake_args, **fake_kwargs)
    if isinstance(node.meta["val"], (tuple, list)):
        count = len(node.meta["val"])
        graph.output(tuple(graph.call_function(operator.getitem, (node, i)) for i in range(count)))
    else:
        graph.output(node)
    return GraphModule(torch.nn.Module(), graph)


def _call(module):
    return next(n for n in module.graph.nodes if n.op == "call_function")
