"""An ExportedProgram to a Graph: every ATen op is handed to its lowering.

What torch.export leaves is lowered as it is: no retrace of the program. In-place ops become
their functional forms where nothing else sees the storage (`functionalize.py` decides), ops of
constants are folded by running them in PyTorch when the file is written (`folding.py`), and ops
without a lowering are decomposed one by one (`decompositions.py`).
"""

import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind
from torch.utils import _pytree as pytree

from litert_torch.converter import decompositions, dims, folding, functionalize, stored_integers
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.complex_values import ComplexValue, from_interleaved, interleaved
from litert_torch.converter.ir import Graph, Source, TensorType, Value
from litert_torch.converter.lowerings import lowers, lowers_complex
from litert_torch.converter.registry import AtenOp, Body, Lowering
from litert_torch.converter.signature import output_names
from litert_torch.converter.torch_types import compute_dtype, dtype_of, shape_of, to_size
from litert_torch.converter.variables import Variables, used_placeholders
from litert_torch.errors import (
    ConversionError,
    InvalidGraphError,
    UnsupportedCaseError,
    UnsupportedOpError,
)

lowers.all()  # now, so that the first conversion does not wait for every family


def lower(
    program: ExportedProgram,
    name: str,
    input_names: Sequence[str],
    variables: Variables | None = None,
) -> Graph:
    """The program as a LiteRT graph with signature `name`.

    Args:
        program: What torch.export returned, of any dialect.
        name: The signature's name.
        input_names: One for each leaf of the sample inputs, constants included.
        variables: The buffers written by any program of the same file; by default, by this one.

    Raises:
        UnsupportedOpError: lists every op without a lowering, with the user's lines.
        UnsupportedCaseError: an op cannot be expressed with these arguments.
    """
    program = functionalize.functional(program)
    if variables is None:
        variables = Variables()
        variables.declare(program)
    graph = Graph(name=name, least_sizes=_least_sizes(program))
    state = _Lowering(graph, lowers.all())  # again: torchvision may be loaded by now
    state.variables = variables
    state.require_lowerings(program)
    state.bind_inputs(program, input_names)
    state.run(program.graph_module)
    _bind_outputs(graph, program, state.results)
    _assign_variables(graph, program, state)
    graph.remove_dead_ops()
    graph.verify()
    return graph


def _least_sizes(program: ExportedProgram) -> dict[Any, int]:
    """The lower bound of each symbol in a dynamic size, where it is more than 1."""
    ranges = program.range_constraints.items()
    return {symbol: int(r.lower) for symbol, r in ranges if r.lower.is_Integer and r.lower > 1}


class _Lowering:
    """Lowers one program (or the traced decomposition of one op) node by node."""

    def __init__(self, graph: Graph, table: Mapping[AtenOp, Lowering]) -> None:
        self.graph = graph
        self.table = table
        self.decomposer = decompositions.Decomposer()
        self.results: list[Any] = []
        self.variables = Variables()
        self.handles: dict[str, Value] = {}

    def require_lowerings(self, program: ExportedProgram) -> None:
        """Raise one error for all ops that have neither lowering nor decomposition."""
        inputs = set(program.graph_signature.user_inputs)
        for spec in program.graph_signature.input_specs:
            if spec.kind == InputKind.BUFFER and self.variables.holds(_tensor_of(program, spec)):
                inputs.add(spec.arg.name)
        module = program.graph_module
        varying = {n for n in module.graph.nodes if n.op == "placeholder" and n.name in inputs}
        missing: dict[str, list[Source]] = defaultdict(list)
        for node in self._not_lowered(module, varying):
            missing[str(node.target)].append(source_of(node))
        if missing:
            raise UnsupportedOpError(missing)

    def _not_lowered(
        self, module: torch.fx.GraphModule, varying: set[torch.fx.Node]
    ) -> Iterator[torch.fx.Node]:
        """Nodes without lowering or decomposition; what no `varying` node reaches is folded."""
        for node in module.graph.nodes:
            if node.op != "call_function":
                continue
            if varying.isdisjoint(node.all_input_nodes) and folding.is_deterministic(node.target):
                continue
            if folding.is_empty(node.meta.get("val")):
                continue
            varying.add(node)
            if self._is_plain(node) or node.target in table_for(node, self.table):
                continue
            body = self._expansion(node)
            if body is None or any(self._not_lowered(body, _placeholders(body))):
                yield node

    def _is_plain(self, node: torch.fx.Node) -> bool:
        """A node that needs no lowering of its own: sizes, assertions, tuple access."""
        return node.target is operator.getitem or is_size(node) or is_assertion(node)

    def _expansion(self, node: torch.fx.Node) -> torch.fx.GraphModule | None:
        if isinstance(node.target, HigherOrderOperator):
            return inlined_body(node)
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        return self.decomposer.trace(node.target, args, kwargs)

    def bind_inputs(self, program: ExportedProgram, names: Sequence[str]) -> None:
        """Make a graph input, or a constant, of every placeholder of the program."""
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        left = iter(names)
        self.inputs: list[Any] = []
        used = used_placeholders(program)
        for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
            if spec.kind == InputKind.USER_INPUT:
                self.inputs.append(self._user_input(node, spec, next(left)))
                continue
            tensor = _tensor_of(program, spec)
            if node.name in used and self.variables.holds(tensor):
                target = str(spec.target)
                self.handles[target], value = self.variables.read(self.graph, target, tensor)
                self.inputs.append(value)
            else:
                self.inputs.append(folding.Folded.of_tensor(tensor))

    def _user_input(self, node: torch.fx.Node, spec: InputSpec, name: str) -> Any:
        if isinstance(spec.arg, ConstantArgument):
            return spec.arg.value
        fake = node.meta["val"]
        return self.input(fake, name) if isinstance(fake, torch.Tensor) else to_size(fake)

    def input(self, fake: torch.Tensor, name: str) -> Any:
        """A new input of the graph, as the tensor that lowerings take."""
        pair = (2,) if fake.is_complex() else ()
        dtype = fake.dtype.to_real() if pair else fake.dtype
        value = Value(TensorType((*shape_of(fake), *pair), dtype_of(dtype)), name=name)
        self.graph.inputs.append(value)
        self.graph.input_names.append(name)
        if folding.is_empty(fake):
            return folding.empty(fake)
        if pair:
            return from_interleaved(self.graph, tfl.cast(self.graph, value, compute_dtype(dtype)))
        return tfl.cast(self.graph, value, compute_dtype(fake.dtype))

    def run(self, module: torch.fx.GraphModule, inputs: Sequence[Any] | None = None) -> None:
        """Lower every node of `module`, whose placeholders are `inputs`."""
        given = iter(self.inputs if inputs is None else inputs)
        values: dict[torch.fx.Node, Any] = {}
        outer = self.graph.source
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = _attribute(module, node.target)
            elif node.op == "output":
                self.results = [
                    values[n] if isinstance(n, torch.fx.Node) else n
                    for n in pytree.tree_leaves(node.args, is_leaf=lambda x: x is None)
                ]
            elif not is_assertion(node):
                self.graph.source = source_of(node, outer)
                self._call(node, values)
        self.graph.source = outer

    def _call(self, node: torch.fx.Node, values: dict[torch.fx.Node, Any]) -> None:
        if is_size(node):
            values[node] = to_size(node.meta["val"])
            return
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
        args, kwargs = pytree.tree_map(to_size, (args, kwargs))
        if node.target is operator.getitem:
            values[node] = args[0][args[1]]
            return
        values[node] = self._lower_op(node, node.target, args, kwargs)

    def _lower_op(
        self, node: torch.fx.Node, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        fake = node.meta.get("val")
        if folding.is_empty(fake):
            return folding.empty(fake)
        if isinstance(target, OpOverload):
            folded = folding.fold(target, args, kwargs, fake)
            if folded is not None:
                return stored_integers.remembered(target, args, folded)
        args = pytree.tree_map_only(torch.fx.GraphModule, self._body, args)
        table = table_for(node, self.table)
        if not (isinstance(target, HigherOrderOperator) and target in table):
            args, kwargs = self._as_values(target, args, kwargs)
        try:
            _require_own_memory(node)
            if target in table:
                result = table[target](self.graph, *args, **kwargs)
            else:
                result = self._inline(node, args, kwargs)
            return self._checked(target, result, fake)
        except UnsupportedCaseError as error:
            if getattr(error, "located", False):
                raise
            located = UnsupportedCaseError(f"{target} at {self.graph.source}: {error}")
            located.located = True  # type: ignore[attr-defined]
            raise located from error
        except ConversionError:
            raise
        except Exception as error:
            raise InvalidGraphError(
                f"lowering {target} at {self.graph.source} failed: {type(error).__name__}: {error}"
            ) from error

    def _as_values(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments with constants as values; a product's weights may stay integers."""
        if target in stored_integers.PRODUCTS:
            args = tuple(stored_integers.dequantized(self.graph, a) for a in args)
        return folding.as_values((args, kwargs), compute_dtype)

    def _body(self, module: torch.fx.GraphModule) -> Body:
        def lower_into(g: Graph, inputs: Sequence[Any]) -> list[Any]:
            state = _Lowering(g, self.table)
            state.decomposer = self.decomposer
            state.run(module, inputs)
            return list(folding.as_values(state.results, compute_dtype))

        return Body(lower_into)

    def _inline(self, node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Lower the decomposition of `node` in place of it."""
        body = self._expansion(node)
        if body is None:
            raise UnsupportedOpError({str(node.target): [self.graph.source]})
        if isinstance(node.target, HigherOrderOperator):
            inputs = [a for a in args if not isinstance(a, Body)][-len(_placeholders(body)) :]
        else:
            fakes = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
            leaves = zip(
                pytree.tree_leaves(fakes, is_leaf=lambda x: x is None),
                pytree.tree_leaves((args, kwargs), is_leaf=lambda x: x is None),
                strict=True,
            )
            inputs = [v for f, v in leaves if decompositions.is_traced_input(f)]
        saved = self.results
        self.run(body, inputs)
        results, self.results = self.results, saved
        _, structure = pytree.tree_flatten(node.meta.get("val"), is_leaf=lambda x: x is None)
        return pytree.tree_unflatten(results, structure)

    def _checked(self, target: Any, result: Any, fake: Any) -> Any:
        """`result`, which must have the shape and dtype that PyTorch says."""
        if isinstance(fake, torch.Tensor) and isinstance(result, ComplexValue):
            part = torch.empty_like(fake, dtype=fake.dtype.to_real())
            for v in (result.real, result.imag):
                self._checked(target, v, part)
        elif isinstance(fake, torch.Tensor) and isinstance(result, Value):
            want = TensorType(shape_of(fake), compute_dtype(fake.dtype))
            if not dims.same_shape(result.shape, want.shape) or result.dtype != want.dtype:
                raise InvalidGraphError(
                    f"{target} at {self.graph.source} was lowered to {result.type}, "
                    f"but PyTorch says {want}"
                )
        elif isinstance(fake, (tuple, list)) and isinstance(result, (tuple, list)):
            for r, f in zip(result, fake, strict=False):
                self._checked(target, r, f)
        return result


def table_for(node: torch.fx.Node, table: Mapping[AtenOp, Lowering]) -> Mapping[AtenOp, Lowering]:
    """`table`, or the one for complex numbers where an operand or a result of `node` is complex."""
    near = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    for leaf in pytree.tree_leaves((near, node.args)):
        if isinstance(leaf, complex) or (isinstance(leaf, torch.Tensor) and leaf.is_complex()):
            return lowers_complex.all()
    return table


def _require_own_memory(node: torch.fx.Node) -> None:
    """Refuse as_strided of a view, whose memory holds other elements than the tensor."""
    if _reads_memory(node):
        raise UnsupportedCaseError(
            "reads the memory of a tensor that is a view: use slicing, or .contiguous() first"
        )


def _reads_memory(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, OpOverload) or "as_strided" not in node.target._schema.name:
        return False
    fake = node.args[0].meta["val"] if isinstance(node.args[0], torch.fx.Node) else None
    if fake is None:
        return False
    offset = 4 if "scatter" in node.target._schema.name else 3
    is_absolute = len(node.args) > offset or "storage_offset" in node.kwargs
    return not fake.is_contiguous() or (is_absolute and fake.storage_offset() != 0)


def _placeholders(module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    return {node for node in module.graph.nodes if node.op == "placeholder"}


def is_size(node: torch.fx.Node) -> bool:
    """A node whose result is a number, symbolic or not."""
    return isinstance(
        node.meta.get("val"), (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)
    )


_ASSERTIONS = ("_assert", "sym_constrain_range", "_linalg_check_errors")


def is_assertion(node: torch.fx.Node) -> bool:
    """A run-time check, which the file does not make."""
    if node.op != "call_function":
        return False
    name = getattr(node.target, "__name__", str(node.target)).split(".")[0]
    return name.startswith(_ASSERTIONS)


def inlined_body(node: torch.fx.Node) -> torch.fx.GraphModule | None:
    """The body of a higher-order op that only sets a mode (no_grad, autocast), else None."""
    if getattr(node.target, "__name__", "") not in {
        "wrap_with_set_grad_enabled",
        "wrap_with_autocast",
    }:
        return None
    return next(iter(bodies_of(node)), None)


def bodies_of(node: torch.fx.Node) -> list[torch.fx.GraphModule]:
    """The programs that a higher-order op takes."""
    owner = node.graph.owning_module
    if owner is None:
        return []
    names = [a.target for a in node.args if isinstance(a, torch.fx.Node) and a.op == "get_attr"]
    found = [_attribute(owner, name) for name in names]
    return [f for f in found if isinstance(f, torch.fx.GraphModule)]


def source_of(node: torch.fx.Node, outer: Source | None = None) -> Source:
    """Where the node came from; nodes of a decomposition came from where `outer` did."""
    if outer is not None and (outer.trace or outer.aten):
        return outer
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return Source(node.meta.get("stack_trace") or "", path, str(node.target))


def _attribute(module: torch.nn.Module, path: Any) -> Any:
    found: Any = module
    for part in str(path).split("."):
        found = getattr(found, part)
    return folding.Folded.of_tensor(found) if isinstance(found, torch.Tensor) else found


def _tensor_of(program: ExportedProgram, spec: InputSpec) -> torch.Tensor:
    target = str(spec.target)
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and target in program.state_dict:
        return program.state_dict[target]
    found = program.constants.get(target)
    if not isinstance(found, torch.Tensor):
        raise UnsupportedCaseError(
            f"input {spec.arg.name} of kind {spec.kind.name} is not a tensor"
        )
    return found


def _bind_outputs(graph: Graph, program: ExportedProgram, results: Sequence[Any]) -> None:
    """Name the user's outputs, in the dtypes that the module gives them."""
    specs = program.graph_signature.output_specs
    node = next(n for n in reversed(program.graph.nodes) if n.op == "output")
    fakes = [n.meta["val"] if isinstance(n, torch.fx.Node) else n for n in node.args[0]]
    names = iter(output_names(program.call_spec.out_spec))
    for spec, result, fake in zip(specs, results, fakes, strict=True):
        if spec.kind != OutputKind.USER_OUTPUT:
            continue
        name = next(names)
        if not isinstance(fake, torch.Tensor):
            if fake is None:
                continue
            raise UnsupportedCaseError(
                f"output '{name}' is {type(fake).__name__}, not a tensor: return tensors only"
            )
        (value,) = folding.as_values([result], compute_dtype)
        dtype = fake.dtype
        if isinstance(value, ComplexValue):
            value, dtype = interleaved(graph, value), dtype.to_real()
        value = tfl.cast(graph, value, dtype_of(dtype))
        graph.outputs.append(_own_tensor(graph, value))
        graph.output_names.append(name)


def _assign_variables(graph: Graph, program: ExportedProgram, state: _Lowering) -> None:
    """Keep the new values of the buffers that the program writes."""
    for spec, result in zip(program.graph_signature.output_specs, state.results, strict=True):
        if spec.kind != OutputKind.BUFFER_MUTATION:
            continue
        (value,) = folding.as_values([result], compute_dtype)
        tfl.assign_variable(graph, state.handles[str(spec.target)], value)


def _own_tensor(graph: Graph, value: Value) -> Value:
    """A value that is an op's result and no other output: LiteRT gives each output a buffer."""
    if value.producer is None or value in graph.outputs:
        return tfl.copy(graph, value)
    return value
