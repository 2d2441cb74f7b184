"""export(): from a PyTorch module to a TpuProgram in one call."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from litert_torch import progress
from litert_torch.converter import functionalize
from litert_torch.converter.frontends import module as module_frontend
from litert_torch.converter.frontends.module import Strictness
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.recipe import Recipe
from litert_torch.runtime_bindings.pjrt import require_jax
from litert_torch.tpu.program import TpuProgram

_stages = progress.stages  # `progress` is also the name of a parameter


class Exporter:
    """Collects signatures, then exports them as one program whose weights are stored once.

    Example:
        program = (
            litert_torch.tpu.signature("encode", encoder, (image,))
            .signature("decode", decoder, (tokens, memory))
            .export()
        )
    """

    def __init__(self) -> None:
        self._signatures: list[Signature] = []

    def signature(
        self,
        name: str,
        module: torch.nn.Module,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        *,
        dynamic_shapes: Any = None,
    ) -> Exporter:
        """Add an entry point called `name`; `export` describes the other arguments.

        Raises:
            InvalidInputError: the name is taken, or the arguments are not what they should be.
        """
        if any(s.name == name for s in self._signatures):
            raise InvalidInputError(f"a signature named {name!r} is already added")
        self._signatures.append(Signature.checked(name, module, args, kwargs, dynamic_shapes))
        return self

    def export(
        self,
        *,
        strict_export: Strictness = False,
        quant_config: Recipe | None = None,
        progress: bool | progress.Progress | None = None,
    ) -> TpuProgram:
        """Export what was added; takes, returns and raises what `litert_torch.tpu.export` does."""
        if not self._signatures:
            raise InvalidInputError("there is nothing to export: add a signature")
        return export_signatures(
            self._signatures, strict=strict_export, quant_config=quant_config, progress=progress
        )


def export_signatures(
    signatures: Sequence[Signature],
    *,
    strict: Strictness = False,
    quant_config: Recipe | None = None,
    progress: bool | progress.Progress | None = None,
) -> TpuProgram:
    """The entry points as one program; raises what `export` does."""
    require_jax()
    from litert_torch.tpu import tracing

    weights = tracing.Weights()
    programs = []
    with _stages(progress) as stage:
        for entry in signatures:
            stage(f"export {entry.name}")
            program = functionalize.functional(module_frontend.export(entry, strict))
            weights.declare(program, quant_config)
            programs.append(program)
        traced = []
        for program, entry in zip(programs, signatures, strict=True):
            stage(f"lower {entry.name}")
            traced.append(tracing.trace(program, entry.name, entry.input_names, weights))
    return TpuProgram(traced, weights)


def export(
    module: torch.nn.Module,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    dtype: str | torch.dtype | None = None,
    quant_config: Recipe | None = None,
    strict_export: Strictness = False,
    progress: bool | progress.Progress | None = None,
) -> TpuProgram:
    """Export a PyTorch module for TPU, with the signature "serving_default".

    Names of inputs and outputs are those that `litert_torch.convert` gives them. Types stay what
    they are in PyTorch: a module in bfloat16 computes in bfloat16.

    Args:
        module: The module, which is exported in eval mode and left as it was.
        args: Positional inputs to trace it with: a tuple of tensors, or of lists, dicts and
            dataclasses of them. Numbers and strings among them become constants.
        kwargs: Keyword inputs to trace it with.
        dynamic_shapes: Sizes that may vary between calls, as `torch.export.export` takes them.
        dtype: "bfloat16", say: floating-point weights and inputs become of this type first. The
            converted weights are held in memory; the caller's module is left as it was.
        quant_config: A recipe of `litert_torch.quantize`, as `convert` takes it: weights of linear
            layers and convolutions become int8 or int4 with scales; activations stay in float.
        strict_export: `torch.export.export`'s `strict`; "auto" tries False, then True.
        progress: None shows the stages where stderr is a terminal, False never does, and a
            function is called with the name of each stage as it begins.

    Returns:
        The program: call it to run it here, `export("model.tpu")` to write it.

    Raises:
        InvalidInputError: the samples are missing or not as described (also a ValueError).
        ExportError: torch.export cannot trace the module.
        UnsupportedOpError: the module needs ops that have no lowering; lists all of them.
        UnsupportedCaseError: an op is used in a way that XLA cannot express.
        MissingDependencyError: jax is not installed.
    """
    entry = Signature.checked(DEFAULT_SIGNATURE_NAME, module, args, kwargs, dynamic_shapes)
    return export_signatures(
        [with_dtype(entry, dtype)],
        strict=strict_export,
        quant_config=quant_config,
        progress=progress,
    )


def signature(
    name: str,
    module: torch.nn.Module,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> Exporter:
    """An Exporter that has the entry point `name`; `export` describes the other arguments."""
    return Exporter().signature(name, module, args, kwargs, dynamic_shapes=dynamic_shapes)


def with_dtype(entry: Signature, dtype: str | torch.dtype | None) -> Signature:
    """The entry point with floating-point weights and inputs of `dtype`.

    The module is a copy whose weights are converted; the caller's is left as it was.
    """
    if dtype is None:
        return entry
    wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype

    def cast(leaf: Any) -> Any:
        return (
            leaf.to(wanted) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf
        )

    module = entry.module
    tensors = (*module.parameters(), *module.buffers())
    memo = {id(t): _like(t, cast(t.detach())) for t in tensors if t.is_floating_point()}
    args, kwargs = pytree.tree_map(cast, (entry.args, entry.kwargs))
    return replace(entry, module=copy.deepcopy(module, memo), args=args, kwargs=kwargs)


def on_meta(entry: Signature) -> Signature:
    """The entry point without contents of weights and inputs; the caller's module is left."""
    module = entry.module
    tensors = (*module.parameters(), *module.buffers())
    memo = {id(t): _like(t, t.detach().to("meta")) for t in tensors}

    def bare(leaf: Any) -> Any:
        return leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf

    args, kwargs = pytree.tree_map(bare, (entry.args, entry.kwargs))
    return replace(entry, module=copy.deepcopy(module, memo), args=args, kwargs=kwargs)


def _like(tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    return torch.nn.Parameter(value, requires_grad=False) if is_parameter else value
