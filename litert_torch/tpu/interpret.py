"""Runs an exported program's graph on jax values, op by op, by its lowerings.

Under `jax.jit` or `jax.export` this traces the program into StableHLO; on concrete arrays it
simply runs it, which is what tests of single ops do.
"""

import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree

from litert_torch.converter import decompositions
from litert_torch.converter.ir import Source
from litert_torch.converter.lower import inlined_body, is_assertion, is_size, source_of
from litert_torch.converter.registry import AtenOp, Lowering
from litert_torch.errors import (
    ConversionError,
    InvalidGraphError,
    UnsupportedCaseError,
    UnsupportedOpError,
)
from litert_torch.tpu import dtypes, symbols
from litert_torch.tpu.lowerings import lowers

aten = torch.ops.aten

_ITEMS = frozenset({aten.item.default, aten._local_scalar_dense.default})
"""Ops that read a number from a tensor: here it stays an array of rank 0."""

_NEEDS_NUMBERS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerIntegerConversionError,
    jax.core.InconclusiveDimensionOperation,
)


class Interpreter:
    """Runs the graphs of one program.

    Attributes:
        symbols: What each symbolic size of the program is in jax.
        source: Where the op that is being lowered stands in the user's model.
    """

    def __init__(
        self,
        known: Mapping[Any, Any] | None = None,
        table: Mapping[AtenOp, Lowering] | None = None,
    ) -> None:
        self.symbols: dict[Any, Any] = dict(known or {})
        self.source = Source()
        self._table = lowers.all() if table is None else table
        self._decomposer = decompositions.Decomposer()

    def require_lowerings(self, module: GraphModule) -> None:
        """Raise one error for all ops that have neither lowering nor decomposition."""
        missing: dict[str, list[Source]] = defaultdict(list)
        for node in self._not_lowered(module):
            missing[str(node.target)].append(source_of(node))
        if missing:
            raise UnsupportedOpError(missing, target="TPU")

    def _not_lowered(self, module: GraphModule) -> Iterator[Node]:
        for node in module.graph.nodes:
            if node.op == "get_attr":
                body = _attribute(module, node.target)
                if isinstance(body, GraphModule):
                    yield from self._not_lowered(body)
            if node.op != "call_function" or self._is_plain(node) or node.target in self._table:
                continue
            expansion = self._expansion(node)
            if expansion is None or any(self._not_lowered(expansion)):
                yield node

    def _is_plain(self, node: Node) -> bool:
        """A node that needs no lowering: sizes, assertions, tuple access."""
        if node.target in _ITEMS or node.target is operator.getitem:
            return True
        return is_size(node) or is_assertion(node)

    def _expansion(self, node: Node) -> GraphModule | None:
        """The simpler ops that the node is, or None."""
        if isinstance(node.target, HigherOrderOperator):
            return inlined_body(node)
        args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        return self._decomposer.trace(node.target, args, kwargs)

    def run(self, module: GraphModule, inputs: Sequence[Any]) -> list[Any]:
        """The results of `module`, whose placeholders are `inputs`, flat."""
        given = iter(inputs)
        values: dict[Node, Any] = {}
        outer = self.source
        results: list[Any] = []
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = _attribute(module, node.target)
            elif node.op == "output":
                leaves = pytree.tree_leaves(node.args, is_leaf=lambda x: x is None)
                results = [values[n] if isinstance(n, Node) else n for n in leaves]
            elif not is_assertion(node):
                self.source = source_of(node, outer)
                values[node] = self._call(node, values)
        self.source = outer
        return results

    def _call(self, node: Node, values: dict[Node, Any]) -> Any:
        fake = node.meta.get("val")
        if node.target in _ITEMS:
            return self._item(node, fake, values)
        if is_size(node):
            return self._located(node, lambda: symbols.to_dimension(fake, self.symbols))
        args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
        args, kwargs = pytree.tree_map(lambda x: self._dimension(x), (args, kwargs))
        if node.target is operator.getitem:
            return args[0][args[1]]
        return self._located(node, lambda: self._checked(node, self._lower(node, args, kwargs)))

    def _dimension(self, x: Any) -> Any:
        return symbols.to_dimension(x, self.symbols)

    def _item(self, node: Node, fake: Any, values: dict[Node, Any]) -> Any:
        """An array of rank 0, known as the symbol that PyTorch gave it."""
        (operand,) = node.all_input_nodes
        value = jnp.asarray(values[operand]).reshape(())
        if isinstance(fake, (torch.SymInt, torch.SymFloat)) and fake.node.expr.is_Symbol:
            self.symbols[fake.node.expr] = value
        return value

    def _lower(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target = node.target
        if target in self._table:
            args = tuple(self._callable(a) if isinstance(a, GraphModule) else a for a in args)
            return self._table[target](*args, **kwargs)
        body = self._expansion(node)
        if body is None:
            raise UnsupportedOpError({str(target): [self.source]}, target="TPU")
        results = self.run(body, self._operands_of(node, body, args, kwargs))
        return results if isinstance(node.meta.get("val"), (tuple, list)) else results[0]

    def _operands_of(
        self, node: Node, body: GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Any]:
        """What the placeholders of the node's expansion are."""
        if isinstance(node.target, HigherOrderOperator):
            count = sum(n.op == "placeholder" for n in body.graph.nodes)
            return [a for a in args if not isinstance(a, GraphModule)][-count:] if count else []
        fakes = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        pairs = zip(_leaves(fakes), _leaves((args, kwargs)), strict=True)
        return [value for fake, value in pairs if decompositions.is_traced_input(fake)]

    def _callable(self, body: GraphModule) -> Any:
        """A body of control flow as a function of arrays that returns a list of arrays."""
        return lambda *operands: self.run(body, operands)

    def _located(self, node: Node, compute: Any) -> Any:
        """The result, or an error that names the op and the user's line."""
        try:
            return compute()
        except UnsupportedCaseError as error:
            if getattr(error, "located", False):
                raise
            raise self._unsupported(node, str(error)) from error
        except (ConversionError, InvalidGraphError):
            raise
        except _NEEDS_NUMBERS as error:
            text = str(error).split("\n")[0]
            raise self._unsupported(
                node, f"needs a number where it gets a value that varies: {text}"
            ) from error
        except Exception as error:
            raise InvalidGraphError(
                f"lowering {node.target} at {self.source} failed: {type(error).__name__}: {error}"
            ) from error

    def _unsupported(self, node: Node, why: str) -> UnsupportedCaseError:
        located = UnsupportedCaseError(f"{node.target} at {self.source}: {why}")
        located.located = True  # type: ignore[attr-defined]
        return located

    def _checked(self, node: Node, result: Any) -> Any:
        """`result`, which must have the shapes and dtypes that PyTorch says."""
        fake = node.meta.get("val")
        if isinstance(fake, (tuple, list)):
            if not isinstance(result, (tuple, list)) or len(result) < len(fake):
                raise InvalidGraphError(f"{node.target} must return {len(fake)} results")
            return [self._checked_tensor(node, r, f) for r, f in zip(result, fake, strict=False)]
        return self._checked_tensor(node, result, fake)

    def _checked_tensor(self, node: Node, result: Any, fake: Any) -> Any:
        if not isinstance(fake, torch.Tensor) or result is None:
            return result
        result = jnp.asarray(result)
        want = symbols.shape_of(fake, self.symbols), dtypes.to_jax(fake.dtype)
        if tuple(result.shape) != want[0] or result.dtype != want[1]:
            have = f"{result.dtype}{list(result.shape)}"
            raise InvalidGraphError(
                f"{node.target} at {self.source} was lowered to {have}, "
                f"but PyTorch says {want[1]}{list(want[0])}"
            )
        return _strong(result)


def _strong(array: Any) -> Any:
    """The array, of a dtype that no other operand's overrides."""
    return jax.lax.convert_element_type(array, array.dtype) if array.weak_type else array


def _leaves(tree: Any) -> list[Any]:
    return pytree.tree_leaves(tree, is_leaf=lambda x: x is None)


def _attribute(module: torch.nn.Module, path: Any) -> Any:
    found: Any = module
    for part in str(path).split("."):
        found = getattr(found, part)
    return dtypes.array_of(found) if isinstance(found, torch.Tensor) else found
