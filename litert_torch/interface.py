"""convert() and its relatives: from a PyTorch module to a LiteRTModel in one call."""

from __future__ import annotations

from typing import Any

import torch

from litert_torch import converter, progress, verification
from litert_torch.converter import GraphTransform, flatbuffer
from litert_torch.converter.frontends.module import Strictness
from litert_torch.converter.ir import Graph
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature
from litert_torch.errors import InvalidInputError, MissingDependencyError
from litert_torch.runtime_bindings import LiteRTModel

__all__ = ["Converter", "convert", "experimental_add_compilation_backend", "signature"]

_IN_MEMORY = 32 << 20  # bytes of weights; larger files live in a temporary file

CompilationResult = Any  # ai_edge_litert.aot's, which has no type information


class Converter:
    """Collects signatures, then converts them into one model whose weights are stored once.

    Example:
        model = (
            litert_torch.signature("encode", encoder, (image,))
            .signature("decode", decoder, (tokens, memory))
            .convert()
        )
    """

    def __init__(self) -> None:
        self._signatures: list[Signature] = []
        self._compilations: list[Any] = []

    def signature(
        self,
        name: str,
        module: torch.nn.Module,
        sample_args: tuple[Any, ...] | None = None,
        sample_kwargs: dict[str, Any] | None = None,
        *,
        dynamic_shapes: Any = None,
    ) -> Converter:
        """Add an entry point called `name`; `convert` describes the other arguments.

        Returns:
            This converter, for the next call.

        Raises:
            InvalidInputError: the name is taken, or the arguments are not what they should be
                (also a ValueError).
        """
        if any(s.name == name for s in self._signatures):
            raise InvalidInputError(f"a signature named {name!r} is already added")
        self._signatures.append(
            Signature.checked(name, module, sample_args, sample_kwargs, dynamic_shapes)
        )
        return self

    add_signature = signature

    def experimental_add_compilation_backend(self, target: Any = None, **kwargs: Any) -> Converter:
        """Compile ahead of time for an NPU, too; `convert` then returns a CompilationResult.

        Args:
            target: A target of `ai_edge_litert.aot.vendors`, or a CompilationConfig; None is every
                target that is registered there.
            **kwargs: Options for the vendor's compiler.

        Returns:
            This converter, for the next call.

        Raises:
            MissingDependencyError: the installed ai-edge-litert has no ahead-of-time compiler.
        """
        _, aot_types, vendors = _compiler()
        chosen = vendors.AllRegisteredTarget() if target is None else target
        if isinstance(chosen, aot_types.Target):
            chosen = aot_types.CompilationConfig(target=chosen, **kwargs)
        self._compilations.append(chosen)
        return self

    def convert(
        self,
        module: torch.nn.Module | None = None,
        sample_args: tuple[Any, ...] | None = None,
        sample_kwargs: dict[str, Any] | None = None,
        *,
        strict_export: Strictness = False,
        quant_config: GraphTransform | None = None,
        dynamic_shapes: Any = None,
        lightweight_conversion: bool = False,
        verify: bool | float = False,
        progress: bool | progress.Progress | None = None,
    ) -> LiteRTModel | CompilationResult:
        """Convert what was added, and `module` as the default signature where one is given.

        Takes, returns and raises what `litert_torch.convert` does. With a compilation backend
        added, the result is ai_edge_litert's CompilationResult.
        """
        del lightweight_conversion  # constants are always lazy
        signatures = self._all(module, sample_args, sample_kwargs, dynamic_shapes)
        with _stages(progress) as stage:
            graphs = converter.convert_signatures(
                signatures,
                strict=strict_export,
                transforms=_transforms(quant_config),
                progress=stage,
            )
            stage("write")
            model = _to_model(graphs)
            if verify is not False:
                bound = verification.bound_of(verify, quantized=quant_config is not None)
                for entry in signatures:
                    stage(f"verify {entry.name}")
                    verification.verify(model, entry, bound)
            if self._compilations:
                stage("compile")
                return _compile(model, self._compilations)
        return model

    def _all(self, module: Any, args: Any, kwargs: Any, dynamic_shapes: Any) -> list[Signature]:
        """The signatures added, and the default one where `module` is given."""
        if module is not None:
            self.signature(
                DEFAULT_SIGNATURE_NAME, module, args, kwargs, dynamic_shapes=dynamic_shapes
            )
        if not self._signatures:
            raise InvalidInputError(
                "there is nothing to convert: pass a module and sample_args, or add a signature"
            )
        return self._signatures


def convert(
    module: torch.nn.Module | None = None,
    sample_args: tuple[Any, ...] | None = None,
    sample_kwargs: dict[str, Any] | None = None,
    *,
    strict_export: Strictness = False,
    quant_config: GraphTransform | None = None,
    dynamic_shapes: Any = None,
    lightweight_conversion: bool = False,
    verify: bool | float = False,
    progress: bool | progress.Progress | None = None,
) -> LiteRTModel:
    """Convert a PyTorch module to a LiteRT model with the signature "serving_default".

    The model's inputs have the shapes and dtypes of the samples, and are named args_0, args_1, ...
    for the leaves of `sample_args` and by their path ("mask", "cache_0") for those of
    `sample_kwargs`. Outputs are named output_0, output_1, ..., or by their path where `forward`
    returns a dict or a dataclass. float16 and bfloat16 weights compute in float32.

    Args:
        module: The module, which is converted in eval mode and left as it was.
        sample_args: Positional inputs to trace it with: a tuple of tensors, or of lists, dicts and
            dataclasses of them. Numbers and strings among them become constants.
        sample_kwargs: Keyword inputs to trace it with.
        strict_export: `torch.export.export`'s `strict`; "auto" tries False, then True.
        quant_config: What rewrites the graph before it is written, such as a
            `litert_torch.quantize.quant_config.QuantConfig`.
        dynamic_shapes: Sizes that may vary between calls of the model, as `torch.export.export`
            takes them: ({0: torch.export.Dim("batch")},).
        lightweight_conversion: Accepted for code that passes it. Weights are always read lazily.
        verify: True runs the file in LiteRT on the sample inputs and compares every output with
            eager PyTorch's; a number does so with that bound on the relative error instead of the
            default (`verification.DEFAULT_BOUNDS`; with a `quant_config`, none).
        progress: None shows the stages where stderr is a terminal, False never does, and a
            function is called with the name of each stage as it begins.

    Returns:
        The model: call it to run it, `export(path)` to write it.

    Raises:
        InvalidInputError: the samples are missing or not as described (also a ValueError).
        ExportError: torch.export cannot trace the module.
        UnsupportedOpError: the module needs ops that have no lowering; lists all of them.
        UnsupportedCaseError: an op is used in a way that LiteRT cannot express.
        VerificationError: `verify` found a difference above the bound; names the first op that
            differs where it can be found.
    """
    return Converter().convert(
        module,
        sample_args,
        sample_kwargs,
        strict_export=strict_export,
        quant_config=quant_config,
        dynamic_shapes=dynamic_shapes,
        lightweight_conversion=lightweight_conversion,
        verify=verify,
        progress=progress,
    )


def signature(
    name: str,
    module: torch.nn.Module,
    sample_args: tuple[Any, ...] | None = None,
    sample_kwargs: dict[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Converter:
    """A Converter that has the entry point `name`; `convert` describes the other arguments.

    Example:
        model = litert_torch.signature("encode", encoder, (image,)).convert()
    """
    return Converter().signature(
        name, module, sample_args, sample_kwargs, dynamic_shapes=dynamic_shapes
    )


def experimental_add_compilation_backend(target: Any = None, **kwargs: Any) -> Converter:
    """A Converter that compiles ahead of time; see its method of this name."""
    return Converter().experimental_add_compilation_backend(target, **kwargs)


_stages = progress.stages  # `progress` is also the name of a parameter


def _transforms(quant_config: GraphTransform | None) -> list[GraphTransform]:
    if quant_config is None:
        return []
    if not callable(getattr(quant_config, "apply", None)):
        raise InvalidInputError(
            f"quant_config must have a method apply(graph), as a QuantConfig has; "
            f"got {type(quant_config).__name__}"
        )
    return [quant_config]


def _to_model(graphs: list[Graph]) -> LiteRTModel:
    size = sum(v.const.nbytes for g in graphs for op in g.ops for v in op.inputs if v and v.const)
    if size <= _IN_MEMORY:
        return LiteRTModel(flatbuffer.to_bytes(graphs))
    return LiteRTModel.from_temporary(lambda path: flatbuffer.to_file(graphs, path))


def _compiler() -> tuple[Any, Any, Any]:
    """The ahead-of-time compiler's modules."""
    try:
        from ai_edge_litert.aot import aot_compile
        from ai_edge_litert.aot.core import aot_types
        from ai_edge_litert.aot.vendors import import_vendor
    except ImportError as error:
        raise MissingDependencyError(
            f"the installed ai-edge-litert has no ahead-of-time compiler ({error}); "
            "pip install -U ai-edge-litert"
        ) from error
    return aot_compile, aot_types, import_vendor


def _compile(model: LiteRTModel, compilations: list[Any]) -> CompilationResult:
    aot_compile, aot_types, _ = _compiler()
    cpu_model = aot_types.Model.create_from_bytes(model.model_content())
    return aot_compile.aot_compile(cpu_model, config=compilations)
