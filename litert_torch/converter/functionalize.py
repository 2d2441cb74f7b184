"""In-place ops as functional ones, without retracing the program.

PyTorch's own functionalization traces every node again. Here the graph is rewritten where it
writes: `relu_(x)` becomes `relu(x)`, whose result stands for x from there on; a write to a view
also becomes a write to what it is a view of (`slice_scatter` for `slice`), and other views of
that are taken anew when they are read. Which tensors share storage is what export's fake tensors
say. What does not fit (a buffer is written, a view has no inverse here) is left to PyTorch.
"""

import copy
import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node

aten = torch.ops.aten


def functional(program: ExportedProgram) -> ExportedProgram:
    """`program` without in-place ops; the same object where it has none."""
    module = program.graph_module
    if not _has_writes(module):
        return program
    specs = program.graph_signature.input_specs
    state = {s.arg.name for s in specs if s.kind != InputKind.USER_INPUT}
    try:
        rewritten = _rewritten(module, state)
    except _UnsupportedWriteError:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own bookkeeping, as of erased nodes
            return program.run_decompositions({})
    result = copy.copy(program)
    result._graph_module = rewritten
    return result


def _has_writes(module: torch.nn.Module) -> bool:
    """Whether the module, or a body of control flow in it, has in-place ops."""
    graphs = (m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule))
    return any(_writes(n) for graph in graphs for n in graph.nodes)


def _rewritten(module: torch.fx.GraphModule, state: set[str]) -> torch.fx.GraphModule:
    """The module, and bodies in it, without in-place ops; `state` names what must not be written.

    Raises:
        _UnsupportedWriteError: where PyTorch must do it.
    """
    rewriter = _Rewriter(state)
    for node in module.graph.nodes:
        rewriter._node(node)
    rewriter.graph._codegen = copy.deepcopy(module.graph._codegen)
    result = torch.fx.GraphModule(module, rewriter.graph)
    for name, body in module.named_children():
        if isinstance(body, torch.fx.GraphModule) and _has_writes(body):
            operands = {n.name for n in body.graph.nodes if n.op == "placeholder"}
            setattr(result, name, _rewritten(body, operands))
    return result


@functools.cache
def functional_form(op: Any) -> OpOverload[Any, Any] | None:
    """The op without the trailing underscore, for an op that writes its first argument only."""
    if not isinstance(op, OpOverload) or not op._schema.is_mutable:
        return None
    written = [i for i, a in enumerate(op._schema.arguments) if a.is_write]
    packet, overload = op._schema.name.split("::")[1], op._overloadname
    if written != [0] or not packet.endswith("_"):
        return None
    found = getattr(getattr(getattr(torch.ops, op.namespace), packet[:-1], None), overload, None)
    return found if isinstance(found, OpOverload) else None


def _writes(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


@dataclass(eq=False)
class _Tensor:
    """A tensor of the program, whichever nodes name it.

    Attributes:
        holder: The node that has its value now; None when a write elsewhere made it stale.
        view: The node that took it as a view of `parent`, as first written.
        parent: What it is a view of, within the same storage.
        fake: Its fake value, for shape and dtype.
        views: Tensors that are views of it.
    """

    holder: Node | None
    fake: torch.Tensor
    view: Node | None = None
    parent: "_Tensor | None" = None
    views: list["_Tensor"] = field(default_factory=list)
    is_state: bool = False


class _UnsupportedWriteError(Exception):
    """This program is left to PyTorch's functionalization."""


class _Rewriter:
    """Builds the functional graph node by node."""

    def __init__(self, state: set[str]) -> None:
        self.graph = Graph()
        self.tensors: dict[Node, _Tensor] = {}
        self.copied: dict[Node, Node] = {}
        self.state = state

    def _node(self, node: Node) -> None:
        if _writes(node):
            self._write(node)
            return
        new = self.graph.node_copy(node, self._current)
        self.copied[node] = new
        fake = node.meta.get("val")
        if isinstance(fake, torch.Tensor):
            self.tensors[node] = self._tensor_of(node, new, fake)

    def _tensor_of(self, node: Node, new: Node, fake: torch.Tensor) -> _Tensor:
        """A view of an operand, or a tensor with storage of its own."""
        tensor = _Tensor(new, fake, is_state=node.op == "placeholder" and node.name in self.state)
        base = _viewed(node)
        if base is not None and base in self.tensors and _share(fake, self.tensors[base].fake):
            tensor.view, tensor.parent = node, self.tensors[base]
            tensor.parent.views.append(tensor)
        return tensor

    def _current(self, node: Node) -> Node:
        """The new graph's node with the value that `node` has now."""
        tensor = self.tensors.get(node)
        return self.copied[node] if tensor is None else self._fresh(tensor)

    def _fresh(self, tensor: _Tensor) -> Node:
        if tensor.holder is None:
            assert tensor.view is not None
            assert tensor.parent is not None
            tensor.holder = self._retaken(tensor.view, self._fresh(tensor.parent))
        return tensor.holder

    def _retaken(self, view: Node, base: Node) -> Node:
        """The same view of what its base is now."""
        if view.target is operator.getitem:
            source = view.args[0]
            assert isinstance(source, Node)
            parts = self.graph.node_copy(source, lambda n: base if n is source.args[0] else n)
            return self.graph.node_copy(view, lambda _: parts)
        return self.graph.node_copy(view, lambda n: base if n is view.args[0] else self._current(n))

    def _write(self, node: Node) -> None:
        target, op = node.args[0] if node.args else None, functional_form(node.target)
        if not isinstance(target, Node) or target not in self.tensors or op is None:
            raise _UnsupportedWriteError
        if torch.Tag.inplace_view in node.target.tags:  # type: ignore[union-attr]
            raise _UnsupportedWriteError  # t_() and such: other views keep their shape
        tensor = self.tensors[target]
        if not _share(node.meta["val"], tensor.fake):
            raise _UnsupportedWriteError  # a loaded program: its fakes do not tell what is shared
        new = self.graph.node_copy(node, self._current)
        new.target = op
        tensor.holder = self._as_before(new, node, tensor)
        self.tensors[node] = tensor
        for view in tensor.views:
            _make_stale(view)
        self._write_base(tensor)

    def _as_before(self, new: Node, node: Node, tensor: _Tensor) -> Node:
        """What was computed, in the dtype that the written tensor keeps."""
        operands = [n.meta.get("val") for n in node.all_input_nodes]
        if all(not isinstance(f, torch.Tensor) or f.dtype == tensor.fake.dtype for f in operands):
            return new
        return self._call(node, aten._to_copy.default, (new,), tensor, dtype=tensor.fake.dtype)

    def _write_base(self, tensor: _Tensor) -> None:
        """What `tensor` is a view of holds its new value too."""
        parent, view = tensor.parent, tensor.view
        if tensor.is_state:
            raise _UnsupportedWriteError
        if parent is None or view is None:
            return
        inverse = _inverse(view)
        if inverse is None:
            raise _UnsupportedWriteError
        assert tensor.holder is not None
        target, args = inverse(self._fresh(parent), tensor.holder, view)
        parent.holder = self._call(view, target, args, parent)
        for other in parent.views:
            if other is not tensor:
                _make_stale(other)
        self._write_base(parent)

    def _call(
        self, near: Node, target: Any, args: tuple[Any, ...], like: _Tensor, **kwargs: Any
    ) -> Node:
        """A new node with the shape and dtype of `like`."""
        new = self.graph.call_function(target, args, kwargs)
        new.meta = {**near.meta, "val": like.fake}
        return new


def _make_stale(tensor: _Tensor) -> None:
    tensor.holder = None
    for view in tensor.views:
        _make_stale(view)


def _share(a: Any, b: torch.Tensor) -> bool:
    return isinstance(a, torch.Tensor) and a.untyped_storage()._cdata == b.untyped_storage()._cdata


def _viewed(node: Node) -> Node | None:
    """The operand that the result may be a view of."""
    first = node.args[0] if node.op == "call_function" and node.args else None
    if not isinstance(first, Node):
        return None
    if node.target is operator.getitem:
        source = first.args[0] if first.args else None
        return source if isinstance(source, Node) else None
    return first


Inverse = Callable[[Node, Node, Node], tuple[Any, tuple[Any, ...]]]


def _inverse(view: Node) -> Inverse | None:
    """How to write a view's value into its base: (base, value, view) to an op and its operands."""
    if view.target is operator.getitem:
        source = view.args[0]
        assert isinstance(source, Node)
        return _INVERSES_OF_PARTS.get(source.target)
    return _INVERSES.get(view.target)


def _scatter(op: Any) -> Inverse:
    return lambda base, value, view: (op, (base, value, *view.args[1:]))


def _reshaped(base: Node, value: Node, view: Node) -> tuple[Any, tuple[Any, ...]]:
    shape = base.meta["val"].shape
    if not all(isinstance(s, int) for s in shape):
        raise _UnsupportedWriteError
    return aten.reshape.default, (value, list(shape))


def _permuted_back(base: Node, value: Node, view: Node) -> tuple[Any, tuple[Any, ...]]:
    perm = view.args[1]
    assert isinstance(perm, Sequence)
    order = [int(p) % len(perm) for p in perm]  # type: ignore[arg-type]
    return aten.permute.default, (value, [order.index(i) for i in range(len(order))])


def _same_move(base: Node, value: Node, view: Node) -> tuple[Any, tuple[Any, ...]]:
    return view.target, (value, *view.args[1:])


def _whole(base: Node, value: Node, view: Node) -> tuple[Any, tuple[Any, ...]]:
    return aten.alias.default, (value,)


def _part_scattered(base: Node, value: Node, view: Node) -> tuple[Any, tuple[Any, ...]]:
    """Into the part that `view` picks of a chunk or split."""
    source, index = view.args[0], view.args[1]
    assert isinstance(source, Node)
    assert isinstance(index, int)
    dim = source.kwargs.get("dim", source.args[2] if len(source.args) > 2 else 0)
    sizes = [part.shape[dim] for part in source.meta["val"]]
    start = sum(sizes[:index])
    return aten.slice_scatter.default, (base, value, dim, start, start + sizes[index])


def _row_scattered(base: Node, value: Node, view: Node) -> tuple[Any, tuple[Any, ...]]:
    source = view.args[0]
    assert isinstance(source, Node)
    dim = source.kwargs.get("dim", source.args[1] if len(source.args) > 1 else 0)
    return aten.select_scatter.default, (base, value, dim, view.args[1])


_INVERSES: dict[Any, Inverse] = {
    aten.slice.Tensor: _scatter(aten.slice_scatter.default),
    aten.select.int: _scatter(aten.select_scatter.default),
    aten.diagonal.default: _scatter(aten.diagonal_scatter.default),
    aten.permute.default: _permuted_back,
    **dict.fromkeys([aten.transpose.int, aten.t.default, aten.swapaxes.default], _same_move),
    **dict.fromkeys(
        [
            aten.view.default,
            aten.reshape.default,
            aten._unsafe_view.default,
            aten.flatten.using_ints,
            aten.unflatten.int,
            aten.unsqueeze.default,
            aten.squeeze.default,
            aten.squeeze.dim,
            aten.squeeze.dims,
        ],
        _reshaped,
    ),
    **dict.fromkeys(
        [
            aten.alias.default,
            aten.contiguous.default,
            aten.detach.default,
            aten.dropout.default,
            aten.to.dtype,
            aten.to.dtype_layout,
            aten.type_as.default,
        ],
        _whole,
    ),
}

_INVERSES_OF_PARTS: dict[Any, Inverse] = {
    **dict.fromkeys(
        [aten.chunk.default, aten.split.Tensor, aten.split_with_sizes.default], _part_scattered
    ),
    aten.unbind.int: _row_scattered,
}
