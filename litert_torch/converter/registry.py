"""Which function lowers which ATen op: one `Lowerings` table per target."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

AtenOp = Any  # an OpOverload, or a HigherOrderOperator such as cond
Lowering = Callable[..., Any]


@dataclass(frozen=True)
class Body:
    """A program that a higher-order op takes, as its lowering gets it.

    Attributes:
        lower_into: Appends the program's ops to a graph, given its inputs there: values of that
            graph, or `Folded` constants. Gives the results as values.
    """

    lower_into: Callable[[Any, Sequence[Any]], list[Any]]


class Lowerings:
    """The lowerings of one package; its modules are found and imported on first use."""

    def __init__(self, package: str, *, takes_graph: bool = True) -> None:
        """For `package`, whose lowerings take a graph first, or the op's arguments only."""
        self._package = package
        self._takes_graph = takes_graph
        self._table: dict[AtenOp, Lowering] = {}
        self._awaited: dict[str, Lowering] = {}
        self._complete = False

    def __call__(self, *ops: AtenOp) -> Callable[[Lowering], Lowering]:
        """Register the decorated function as the lowering of `ops`.

        It takes the graph, then the op's own arguments, named and defaulted as in its schema
        (`self` and `input` are `x`, `from` is `from_`), and returns what the op returns, with a
        `Value` for each tensor.
        """

        def register(function: Lowering) -> Lowering:
            for op in ops:
                if op in self._table:
                    raise ValueError(f"{op} is lowered twice: {self._table[op]} and {function}")
                if isinstance(op, OpOverload):
                    self._check_signature(op, function)
                self._table[op] = function
            return function

        return register

    def when_loaded(self, name: str) -> Callable[[Lowering], Lowering]:
        """As `__call__` for an op, as "torchvision::nms", of a library that may not be imported."""

        def register(function: Lowering) -> Lowering:
            self._awaited[name] = function
            return function

        return register

    def one_to_one(self, table: Mapping[AtenOp, Lowering]) -> None:
        """Register ATen ops that are one op of the target with the same operands."""
        for op, emit in table.items():
            self(op)(emit)

    @contextmanager
    def only_within(self, op: AtenOp, function: Lowering) -> Iterator[None]:
        """Lower `op` by `function` inside the block, whatever the table says."""
        before = self._table.get(op)
        self._table[op] = function
        try:
            yield
        finally:
            if before is None:
                del self._table[op]
            else:
                self._table[op] = before

    def _check_signature(self, op: OpOverload[Any, Any], function: Lowering) -> None:
        """A lowering takes the graph, then the op's own arguments with the op's own defaults."""
        first = 1 if self._takes_graph else 0
        have = list(inspect.signature(function).parameters.values())[first:]
        want = list(signature_of(op).parameters.values())[1:]
        if [(p.name, p.default) for p in want] != [(p.name, p.default) for p in have]:
            graph = "graph, " if self._takes_graph else ""
            raise TypeError(f"{function.__name__} must take ({graph}...) as in '{op._schema}'")

    def all(self) -> Mapping[AtenOp, Lowering]:
        """Every lowering of the package, and those that users registered."""
        if not self._complete:
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(package.__path__, self._package + "."):
                importlib.import_module(module.name)
            self._complete = True
        for name in list(self._awaited):
            op = _loaded(name)
            if op is not None:
                self(op)(self._awaited.pop(name))
        return self._table


def _loaded(name: str) -> OpOverload[Any, Any] | None:
    namespace, op = name.split("::")
    packet = getattr(getattr(torch.ops, namespace), op, None)
    return None if packet is None else packet.default


def signature_of(op: OpOverload[Any, Any]) -> inspect.Signature:
    """What a lowering of `op` takes."""
    plain, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("g", plain)]
    for a in op._schema.arguments:
        name, default = _name_and_default(a)
        kind = keyword if a.kwarg_only else plain
        parameters.append(inspect.Parameter(name, kind, default=default))
    return inspect.Signature(parameters)


def _name_and_default(argument: Any) -> tuple[str, Any]:
    name = {"self": "x", "input": "x", "from": "from_"}.get(argument.name, argument.name)
    has_default = argument.has_default_value()
    return name, argument.default_value if has_default else inspect.Parameter.empty
