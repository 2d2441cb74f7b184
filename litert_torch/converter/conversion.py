"""Signatures to graphs: export, lower, optimize, transform."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from torch.export import ExportedProgram

from litert_torch.converter import composites, functionalize, passes
from litert_torch.converter.frontends import module as module_frontend
from litert_torch.converter.frontends.fixed_sizes import fixed_sizes
from litert_torch.converter.ir import Graph
from litert_torch.converter.lower import lower
from litert_torch.converter.signature import Signature
from litert_torch.converter.variables import Variables

Progress = Callable[[str], None]


class GraphTransform(Protocol):
    """Anything that rewrites a graph in place; a quantization recipe is one."""

    def apply(self, graph: Graph) -> None:
        """Rewrite `graph`."""


def convert_signatures(
    signatures: Sequence[Signature],
    *,
    strict: module_frontend.Strictness = False,
    transforms: Sequence[GraphTransform] = (),
    progress: Progress = lambda stage: None,
) -> list[Graph]:
    """Each signature as an optimized graph, ready for `flatbuffer`; equal weights stay shared."""
    programs = []
    variables = Variables()
    for signature in signatures:
        progress(f"export {signature.name}")
        program = functionalize.functional(module_frontend.export(signature, strict))
        variables.declare(program)
        programs.append(program)
    return [
        convert_program(
            program,
            signature.name,
            signature.input_names,
            variables=variables,
            transforms=transforms,
            progress=progress,
        )
        for program, signature in zip(programs, signatures, strict=True)
    ]


@dataclass(frozen=True)
class Variant:
    """An entry point that shares its trace with others.

    Attributes:
        name: Key in the file's signature list.
        sizes: The size of (input name, axis), for dynamic axes that are fixed here.
        without: Names of outputs that it does not give.
    """

    name: str
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    without: Collection[str] = ()


def convert_variants(
    signature: Signature,
    variants: Sequence[Variant],
    *,
    strict: module_frontend.Strictness = False,
    transforms: Sequence[GraphTransform] = (),
    progress: Progress = lambda stage: None,
) -> list[Graph]:
    """As `convert_signatures`, of a module traced once with `signature`'s dynamic shapes.

    Raises:
        InvalidInputError: a variant fixes a size that is not dynamic.
    """
    progress(f"export {signature.name}")
    program = functionalize.functional(module_frontend.export(signature, strict))
    variables = Variables()
    variables.declare(program)
    leaf = signature.input_names.index
    graphs = []
    for variant in variants:
        sizes = {(leaf(name), axis): size for (name, axis), size in variant.sizes.items()}
        progress(f"lower {variant.name}")
        with fixed_sizes(program, sizes):
            graph = lower(program, variant.name, signature.input_names, variables)
        _drop_outputs(graph, variant.without)
        graphs.append(_finished(graph, transforms, progress))
    return graphs


def _drop_outputs(graph: Graph, names: Collection[str]) -> None:
    kept = [i for i, name in enumerate(graph.output_names) if name not in names]
    graph.outputs = [graph.outputs[i] for i in kept]
    graph.output_names = [graph.output_names[i] for i in kept]
    graph.remove_dead_ops()


def convert_program(
    program: ExportedProgram,
    name: str,
    input_names: Sequence[str],
    *,
    variables: Variables | None = None,
    transforms: Sequence[GraphTransform] = (),
    progress: Progress = lambda stage: None,
) -> Graph:
    """One exported program as an optimized graph; `variables` as `lower` takes it."""
    progress(f"lower {name}")
    return _finished(lower(program, name, input_names, variables), transforms, progress)


def _finished(graph: Graph, transforms: Sequence[GraphTransform], progress: Progress) -> Graph:
    """The lowered graph optimized, quantized, or what else `transforms` do."""
    for g in [*graph.subgraphs(), graph]:
        composites.form(g)
    progress(f"optimize {graph.name}")
    passes.run(graph)
    for transform in transforms:
        progress(f"transform {graph.name}")
        transform.apply(graph)
        graph.verify()
    return graph
