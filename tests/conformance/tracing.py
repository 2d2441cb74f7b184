"""One op call as a graph of ATen ops, as torch.export leaves it, without torch.export's cost.

It is traced above autograd, on fake tensors, composite ops kept whole.
"""

import functools
import warnings

import torch
import torch._export.utils
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx

from litert_torch.converter.frontends.module import traceable

# Every export looks for all composite ops of PyTorch, 30 times: half a second, each time the same.
torch._export.utils._materialize_cpp_cia_ops = functools.cache(
    torch._export.utils._materialize_cpp_cia_ops
)


class Module(torch.nn.Module):
    """The call as a module."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *tensors):
        return self.call(*tensors)


def traced(call):
    """The call as a graph of ATen ops."""
    with torch.no_grad(), traceable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = make_fx(call, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True)
        return trace(*call.tensors)


def program_of(call):
    """The call by torch.export itself."""
    with torch.no_grad(), traceable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(Module(call), tuple(call.tensors), strict=False)


def writes(module):
    """Whether the graph has in-place ops, which torch.export may have to rewrite."""
    return any(
        isinstance(n.target, OpOverload) and n.target._schema.is_mutable for n in module.graph.nodes
    )
