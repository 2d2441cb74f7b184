"""The smallest parts of a model that do not convert, as code to put into a bug report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from litert_torch import interface
from litert_torch.debug.search import SearchResult, search_model
from litert_torch.debug.subgraphs import Subgraph

_CLASS = "CulpritGraphModule"
_IMPORTS = "import torch\nfrom torch import device, inf, nan\n\nimport litert_torch\n"


class Culprit(SearchResult):
    """A small part of a model that fails; `print_code` gives a script that shows it.

    Attributes:
        graph_module: The ops of it; weights are attributes.
        inputs: Tensors to call it with.
    """

    def __init__(self, found: Subgraph, *, runtime_errors: bool = False) -> None:
        super().__init__(found)
        self._runtime_errors = runtime_errors

    @property
    def stack_traces(self) -> list[str]:
        """Where in the user's model the ops are called, each place once."""
        traces = (n.meta.get("stack_trace") for n in self.graph.nodes if n.op == "call_function")
        return list(dict.fromkeys(t for t in traces if t))

    @property
    def code(self) -> str:
        """What `print_code` prints."""
        call = f"_edge_model = litert_torch.convert({_CLASS}().eval(), _args)\n"
        if self._runtime_errors:
            call += "_edge_model(*_args)\n"
        return f"{_IMPORTS}\n\n{self._definitions()}\n{call}"

    def print_readable(self, print_output: bool = True) -> str:
        """The module's class and random inputs as Python code, printed unless told not to."""
        return _printed(self._definitions(), print_output)

    def print_code(self, print_output: bool = True) -> str:
        """A script that makes the conversion fail, printed unless told not to."""
        return _printed(self.code, print_output)

    def __str__(self) -> str:
        return self._definitions()

    __repr__ = __str__

    def _definitions(self) -> str:
        body = self.graph.python_code("self").src.strip("\n")
        nodes = [n for n in self.graph.nodes if n.op == "get_attr"]
        fields = [_field(str(n.target), getattr(self.graph_module, str(n.target))) for n in nodes]
        init = "\n".join(["def __init__(self):", "    super().__init__()", *fields])
        methods = textwrap.indent(f"{init}\n\n{body}", "    ")
        inputs = "".join(f"    {_random(x)},\n" for x in self.inputs)
        return f"class {_CLASS}(torch.nn.Module):\n{methods}\n\n_args = (\n{inputs})\n"


def find_culprits(
    torch_model: torch.nn.Module | torch.export.ExportedProgram,
    args: tuple[Any, ...] | None = None,
    max_granularity: int | None = None,
    runtime_errors: bool = False,
    *,
    enable_fx_minifier_logging: bool = False,
) -> Iterator[Culprit]:
    """Yield the smallest parts of a model that cannot be converted.

    Args:
        torch_model: A module, or an exported program with sample inputs.
        args: Sample inputs of a module.
        max_granularity: Stop making a part smaller at this many ops; None makes it minimal.
        runtime_errors: Also count parts that convert, but whose file LiteRT cannot run.
        enable_fx_minifier_logging: Accepted for code that passes it; nothing is printed.

    Raises:
        ExportError: torch.export cannot trace the module.
    """

    def fails(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
        try:
            model = interface.convert(module, tuple(inputs), progress=False)
            if runtime_errors:
                model(*inputs)
        except Exception:  # whatever it is: that it fails is the question
            return True
        return False

    for found in search_model(
        fails,
        torch_model,
        args,
        max_granularity=max_granularity,
        enable_fx_minifier_logging=enable_fx_minifier_logging,
    ):
        yield Culprit(Subgraph(found.graph_module, found.inputs), runtime_errors=runtime_errors)


def _field(name: str, value: Any) -> str:
    if isinstance(value, torch.nn.Module):
        return f"    self.{name} = ...  # {type(value).__name__}, a branch or a loop body"
    return f'    self.register_buffer("{name}", {_random(value)})'


def _random(value: Any) -> str:
    """Code for a tensor like `value` with random contents; a number as itself."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    shape, dtype = tuple(value.shape), value.dtype
    if dtype.is_floating_point or dtype.is_complex:
        return f"torch.randn({shape}, dtype={dtype})"
    high = 2 if dtype is torch.bool else 10
    return f"torch.randint(0, {high}, {shape}, dtype={dtype})"


def _printed(code: str, print_output: bool) -> str:
    if print_output:
        print(code)  # noqa: T201
    return code
