"""Any source to a .tflite file: export, lower, optimize, quantize, write."""

from collections.abc import Callable, Sequence
from typing import Protocol

from torch.export import ExportedProgram

from litert_torch.converter import composites, functionalize, passes
from litert_torch.converter.frontends import module as module_frontend
from litert_torch.converter.ir import Graph
from litert_torch.converter.lower import lower
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature
from litert_torch.converter.variables import Variables

__all__ = [
    "DEFAULT_SIGNATURE_NAME",
    "GraphTransform",
    "Signature",
    "convert_program",
    "convert_signatures",
]

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
    graph = lower(program, name, input_names, variables)
    for g in [*graph.subgraphs(), graph]:
        composites.form(g)
    progress(f"optimize {name}")
    passes.run(graph)
    for transform in transforms:
        progress(f"transform {name}")
        transform.apply(graph)
        graph.verify()
    return graph
