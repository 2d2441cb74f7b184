"""Ops without a lowering of their own, rewritten as the ops that have one.

`run_decompositions` retraces the whole program, several milliseconds a node. Here only the op
that needs it is traced, once per distinct call, with PyTorch's own decomposition.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from litert_torch.converter import own_decompositions


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions: those to Core ATen first, then every other."""
    return {**decomposition_table, **core_aten_decompositions()}


def has_decomposition(op: Any) -> bool:
    """Whether PyTorch can express `op` by other ops."""
    return _function(op) is not None


def _function(op: Any) -> Callable[..., Any] | None:
    if not isinstance(op, OpOverload):
        return None
    own = own_decompositions.of(op)
    if own is not None:
        return own
    name = op.name()  # type: ignore[no-untyped-call]
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        return op.decompose  # first: PyTorch's reference decompositions go down to prims views
    return table().get(op)


@functools.cache
def view_form(op: Any) -> OpOverload[Any, Any] | None:
    """`expand` for `expand_copy`: in a program without writes, a view is as good as its copy."""
    if not isinstance(op, OpOverload) or not op._schema.name.endswith("_copy"):
        return None
    packet = op._schema.name.split("::")[1].removesuffix("_copy")
    view = getattr(getattr(getattr(torch.ops, op.namespace), packet, None), op._overloadname, None)
    return view if isinstance(view, OpOverload) and view.is_view else None


class Decomposer:
    """Traces decompositions of one program's ops; equal calls are traced once."""

    def __init__(self) -> None:
        self._traced: dict[Hashable, torch.fx.GraphModule | None] = {}

    def trace(
        self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.fx.GraphModule | None:
        """`op` on fake `args` as a graph of simpler ops; its placeholders are the tensors in order.

        None where PyTorch has no decomposition, or one that yields the op itself again.
        """
        function = _function(op)
        if function is None:
            return None
        leaves, spec = pytree.tree_flatten((args, kwargs))
        key = (op, spec, tuple(_signature(leaf) for leaf in leaves))
        if key not in self._traced:
            self._traced[key] = _trace(op, function, leaves, spec)
        return self._traced[key]


def is_traced_input(leaf: Any) -> bool:
    """Whether a decomposition takes this argument as a placeholder, not as a constant."""
    return isinstance(leaf, (torch.Tensor, torch.SymInt, torch.SymFloat))


def _signature(leaf: Any) -> Hashable:
    if isinstance(leaf, torch.Tensor):
        return (str(leaf.dtype), tuple(map(str, leaf.shape)), tuple(map(str, leaf.stride())))
    return (type(leaf), str(leaf))


def _trace(
    op: Any, function: Callable[..., Any], leaves: list[Any], spec: pytree.TreeSpec
) -> torch.fx.GraphModule | None:
    traced = [i for i, leaf in enumerate(leaves) if is_traced_input(leaf)]

    def call(*inputs: Any) -> Any:
        filled = list(leaves)
        for i, value in zip(traced, inputs, strict=True):
            filled[i] = value
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return function(*_mutable(args), **_mutable(kwargs))

    inputs = [leaves[i] for i in traced]
    try:
        with torch.no_grad():
            body = make_fx(torch.func.functionalize(call, remove="mutations_and_views"))(*inputs)
            if any(_writes(n.target) for n in body.graph.nodes):  # PyTorch's C++ decompositions
                body = make_fx(torch.func.functionalize(body, remove="mutations"))(*inputs)
    except (RuntimeError, NotImplementedError):
        return None  # a decomposition that cannot be traced is as good as none
    for node in list(body.graph.nodes):
        node.target = view_form(node.target) or node.target
        if isinstance(node.target, type):  # a named tuple: its parts are what the op returns
            (output,) = node.users
            output.args = (tuple(node.args),)
            body.graph.erase_node(node)
    leads_nowhere = any(n.target is op or _is_prim(n.target) for n in body.graph.nodes)
    return None if leads_nowhere else body


def _mutable(tree: Any) -> Any:
    """torch.fx's lists and dicts as plain ones, which some decompositions change."""
    if isinstance(tree, dict):
        return {k: _mutable(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_mutable(v) for v in tree]
    return tuple(map(_mutable, tree)) if type(tree) is tuple else tree


def _writes(target: Any) -> bool:
    return isinstance(target, OpOverload) and target._schema.is_mutable


def _is_prim(target: Any) -> bool:
    return isinstance(target, OpOverload) and target.namespace == "prims"
