"""An ExportedProgram as a `jax.export` module whose weights are arguments.

The module's function takes `(weights, state, inputs)` and gives `(outputs, state)`, all dicts by
name. Weights are the parameters, buffers and larger constants that the program reads; the state is
the buffers that it writes, and a random key where it draws numbers.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import torch
from jax import export as jax_export
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind

from litert_torch.converter.signature import output_names
from litert_torch.converter.variables import written_buffers
from litert_torch.errors import UnsupportedCaseError
from litert_torch.quantize.recipe import Recipe
from litert_torch.runtime_bindings.tpu_artifact import ArraySpec
from litert_torch.tpu import dtypes, quantized_weights, random_keys, symbols
from litert_torch.tpu.interpret import Interpreter
from litert_torch.tpu.quantized_weights import SCALES, Form

PLATFORMS = ("cpu", "tpu")
_EMBEDDED = 64  # elements; smaller lifted constants are part of the module, larger ones weights


class Weights:
    """The tensors of all programs of one artifact; those that share memory are one, by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.written: set[str] = set()
        self.forms: dict[str, Form] = {}
        self._in_float: set[str] = set()
        self._names: dict[Hashable, str] = {}

    def declare(self, program: ExportedProgram, recipe: Recipe | None = None) -> None:
        """Keep the buffers that a functional `program` writes as state in every program.

        With a recipe, weights that every program reads as it says are stored by it.
        """
        for target in written_buffers(program):
            buffer = program.state_dict.get(target, program.constants.get(target))
            self.written.add(self.name(target, buffer))
        if recipe is not None:
            self._quantize(program, recipe)

    def _quantize(self, program: ExportedProgram, recipe: Recipe) -> None:
        forms = quantized_weights.forms(program, recipe)
        users = {n.name: n.users for n in program.graph.nodes if n.op == "placeholder"}
        for spec in program.graph_signature.input_specs:
            if spec.kind == InputKind.PARAMETER and users[spec.arg.name]:
                name = self.name(str(spec.target), tensor_of(program, spec))
                form = forms.get(spec.arg.name)
                if form is None:
                    self._in_float.add(name)
                elif self.forms.setdefault(name, form) != form:
                    self._in_float.add(name)  # two signatures want it differently
        self.forms = {n: f for n, f in self.forms.items() if n not in self._in_float}

    def name(self, target: str, tensor: torch.Tensor) -> str:
        """The name of `tensor`: its path, with a number where another tensor has the same."""
        key = _memory(tensor)
        if key not in self._names:
            taken = sum(n.split("#")[0] == target for n in self._names.values())
            self._names[key] = f"{target}#{taken}" if taken else target
            self.tensors[self._names[key]] = tensor
        return self._names[key]


def _memory(tensor: torch.Tensor) -> Hashable:
    """What tells the tensor from others; those on the meta device have storages, too."""
    place = tensor.untyped_storage()._cdata, tensor.storage_offset()
    return (*place, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.is_conj())


@dataclass(frozen=True)
class Traced:
    """One signature, traced.

    Attributes:
        name: The signature's name.
        module: What `jax.export` made of it.
        inputs: The inputs in the order of forward's arguments.
        outputs: The outputs in the order in which forward returns them.
        weights: The weights it takes.
        state: The state that it takes and gives.
    """

    name: str
    module: jax_export.Exported
    inputs: tuple[ArraySpec, ...]
    outputs: tuple[ArraySpec, ...]
    weights: tuple[ArraySpec, ...]
    state: tuple[ArraySpec, ...]


def trace(
    program: ExportedProgram, name: str, input_names: Sequence[str], weights: Weights
) -> Traced:
    """`program`, functional already, for TPU and CPU.

    Raises:
        UnsupportedOpError: lists every op without a lowering, with the user's lines.
        UnsupportedCaseError: an op cannot be expressed with these arguments.
    """
    binding = _Binding(program, weights, input_names)
    interpreter = Interpreter(binding.symbols)
    interpreter.require_lowerings(program.graph_module)
    with exact_types(), without_source_lines():
        module = jax_export.export(jax.jit(_function(program, binding)), platforms=PLATFORMS)(
            binding.weights, binding.state, binding.inputs
        )
    return Traced(
        name,
        module,
        tuple(_spec(n, binding.inputs[n]) for n in binding.inputs),
        tuple(_output_specs(module, binding.output_names)),
        tuple(_spec(n, binding.weights[n]) for n in sorted(binding.weights)),
        tuple(_spec(n, binding.state[n]) for n in sorted(binding.state)),
    )


class _Binding:
    """What each placeholder of a program is: an input, a weight, state or a constant."""

    def __init__(self, program: ExportedProgram, weights: Weights, names: Sequence[str]) -> None:
        self.symbols = _symbols(program)
        self.weights: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.places: list[tuple[str, Any]] = []
        self.output_names = list(_tensor_outputs(program))
        self.writes = _writes(program, weights)
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        left = iter(names)
        for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
            if spec.kind == InputKind.USER_INPUT:
                self._input(next(left), spec, node.meta["val"])
            else:
                self._tensor(program, spec, weights, is_used=bool(node.users))
        self.draws = random_keys.draws(program.graph_module)
        if self.draws:
            self.state[random_keys.STATE_NAME] = jax.ShapeDtypeStruct((2,), "uint32")

    def _input(self, name: str, spec: InputSpec, fake: Any) -> None:
        if isinstance(spec.arg, ConstantArgument):
            self.places.append(("constant", spec.arg.value))
            return
        self.places.append(("input", name))
        if isinstance(fake, torch.Tensor):
            shape = symbols.shape_of(fake, self.symbols)
            self.inputs[name] = jax.ShapeDtypeStruct(shape, dtypes.to_jax(fake.dtype))
        else:
            raise UnsupportedCaseError(
                f"input '{name}' is a number that varies ({fake}): pass a tensor of rank 0"
            )

    def _tensor(
        self, program: ExportedProgram, spec: InputSpec, weights: Weights, is_used: bool
    ) -> None:
        tensor = tensor_of(program, spec)
        is_small = spec.kind == InputKind.CONSTANT_TENSOR and tensor.numel() <= _EMBEDDED
        if is_small and tensor.device.type != "meta":
            self.places.append(("constant", dtypes.array_of(tensor)))
            return
        if not is_used and spec.target not in self.writes:
            self.places.append(("constant", None))
            return
        name = weights.name(str(spec.target), tensor)
        if name in weights.forms:
            form, dtype = weights.forms[name], dtypes.to_jax(tensor.dtype)
            integers, scales = form.arguments(tuple(tensor.shape))
            self.weights |= {name: integers, name + SCALES: scales}
            self.places.append(("quantized", (name, form, dtype)))
            return
        kind = "state" if name in weights.written else "weight"
        shape = jax.ShapeDtypeStruct(tuple(tensor.shape), dtypes.to_jax(tensor.dtype))
        (self.state if kind == "state" else self.weights)[name] = shape
        self.places.append((kind, name))


def _function(program: ExportedProgram, binding: _Binding) -> Any:
    def function(weights: Any, state: Any, inputs: Any) -> Any:
        tables = {"weight": weights, "state": state, "input": inputs}
        values = [_value(kind, what, tables) for kind, what in binding.places]
        keys = random_keys.Keys(state.get(random_keys.STATE_NAME, None))
        with random_keys.drawn_from(keys):
            results = Interpreter(binding.symbols).run(program.graph_module, values)
        outputs, new_state = {}, dict(state)
        specs = program.graph_signature.output_specs
        left = iter(binding.output_names)
        for spec, result in zip(specs, results, strict=True):
            if spec.kind == OutputKind.USER_OUTPUT and result is not None:
                outputs[next(left)] = result
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                new_state[binding.writes[str(spec.target)]] = result
        if binding.draws:
            new_state[random_keys.STATE_NAME] = keys.next_data()
        return outputs, new_state

    return function


def _value(kind: str, what: Any, tables: dict[str, Any]) -> Any:
    """What a placeholder is while the program is traced."""
    if kind == "constant":
        return what
    if kind == "quantized":
        name, form, dtype = what
        weights = tables["weight"]
        return form.dequantized(weights[name], weights[name + SCALES], dtype)
    return tables[kind][what]


def _writes(program: ExportedProgram, weights: Weights) -> dict[str, str]:
    """The state's name of each buffer that the program writes."""
    return {
        target: weights.name(target, program.state_dict.get(target, program.constants.get(target)))
        for target in written_buffers(program)
    }


def _tensor_outputs(program: ExportedProgram) -> Iterator[str]:
    """Names of the user's outputs that are tensors, in order."""
    node = next(n for n in reversed(program.graph.nodes) if n.op == "output")
    fakes = [n.meta["val"] if isinstance(n, torch.fx.Node) else n for n in node.args[0]]
    names = iter(output_names(program.call_spec.out_spec))
    for spec, fake in zip(program.graph_signature.output_specs, fakes, strict=True):
        if spec.kind != OutputKind.USER_OUTPUT:
            continue
        name = next(names)
        if isinstance(fake, torch.Tensor):
            yield name
        elif fake is not None:
            raise UnsupportedCaseError(
                f"output '{name}' is {type(fake).__name__}, not a tensor: return tensors only"
            )


def tensor_of(program: ExportedProgram, spec: InputSpec) -> torch.Tensor:
    """The parameter, buffer or constant that a placeholder stands for."""
    target = str(spec.target)
    found = program.state_dict.get(target)
    if found is None:
        found = program.constants.get(target)
    if not isinstance(found, torch.Tensor):
        raise UnsupportedCaseError(
            f"input {spec.arg.name} of kind {spec.kind.name} is not a tensor"
        )
    return found


def _symbols(program: ExportedProgram) -> dict[Any, Any]:
    """A jax dimension for each symbol in the program's inputs, with the range that torch found."""
    found: list[Any] = []
    for node in program.graph.nodes:
        fake = node.meta.get("val")
        if node.op == "placeholder" and isinstance(fake, torch.Tensor):
            for size in fake.shape:
                if isinstance(size, torch.SymInt):
                    free = sorted(size.node.expr.free_symbols, key=str)
                    found += [s for s in free if s not in found]
    if not found:
        return {}
    names = [f"dim_{i}" for i in range(len(found))]
    ranges = [program.range_constraints.get(s) for s in found]
    constraints = [c for n, r in zip(names, ranges, strict=True) for c in _constraints(n, r)]
    dimensions = jax_export.symbolic_shape(", ".join(names), constraints=constraints)
    return dict(zip(found, dimensions, strict=True))


def _constraints(name: str, bounds: Any) -> Iterator[str]:
    """Of a size: jax takes it for 1 or more, and torch's lower bound of 2 is no promise."""
    if bounds is None:
        return
    if bounds.lower.is_Integer and bounds.lower > 2:
        yield f"{name} >= {int(bounds.lower)}"
    if bounds.upper.is_Integer and bounds.upper < 1 << 31:
        yield f"{name} <= {int(bounds.upper)}"


def _spec(name: str, array: Any) -> ArraySpec:
    shape = tuple(s if isinstance(s, int) else str(s) for s in array.shape)
    return ArraySpec(name, shape, str(array.dtype))


def _output_specs(module: jax_export.Exported, names: Sequence[str]) -> Iterator[ArraySpec]:
    outputs, _ = jax.tree.unflatten(module.out_tree, module.out_avals)
    for name in names:
        yield _spec(name, outputs[name])


@contextmanager
def exact_types() -> Iterator[None]:
    """Inside the block, 64-bit types are what they say."""
    with jax.enable_x64(True):
        yield


@contextmanager
def without_source_lines() -> Iterator[None]:
    """Inside the block, jax writes no file names of this machine into modules."""
    before = jax.config.jax_traceback_in_locations_limit
    jax.config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        jax.config.update("jax_traceback_in_locations_limit", before)
