"""From a source to a model that was compared with it."""

from __future__ import annotations

from typing import Any

import click

from litert_torch.cli import sources


def converted(
    source: sources.Source,
    dynamic: tuple[str, ...],
    strict: bool,
    verify: bool,
    tolerance: float | None,
    *,
    progress: bool,
    recipe: Any = None,
) -> tuple[Any, Any]:
    """The model, and its comparison with PyTorch; None in its place where not `verify`.

    With a `recipe` the model is quantized, and differs as much as it does unless `tolerance` says
    how much it may.

    Raises:
        click.UsageError: `dynamic` is not understood.
        LiteRTTorchError: the source does not convert, or the model differs from it.
    """
    from litert_torch import verification
    from litert_torch.converter.frontends.samples import with_dynamic_sizes
    from litert_torch.errors import InvalidInputError
    from litert_torch.progress import stages

    if dynamic and source.program is not None:
        raise click.UsageError("a .pt2 file has its dynamic sizes already; leave out --dynamic")
    try:
        signature = with_dynamic_sizes(source.signature, dynamic)
    except InvalidInputError as error:
        raise click.UsageError(str(error)) from error
    with stages(None if progress else False) as stage:
        if source.program is not None:
            model = _from_program(source, stage, recipe)
        else:
            import litert_torch

            model = litert_torch.convert(
                signature.module,
                signature.args,
                signature.kwargs,
                dynamic_shapes=signature.dynamic_shapes,
                strict_export=strict,
                quant_config=recipe,
                progress=stage,
            )
        if not verify:
            return model, None
        stage("verify")
        if recipe is not None and tolerance is None:
            tolerance = float("inf")
        return model, verification.verify(model, signature, tolerance)


def _from_program(source: sources.Source, stage: Any, recipe: Any) -> Any:
    from litert_torch import converter
    from litert_torch.converter import flatbuffer
    from litert_torch.runtime_bindings import LiteRTModel

    assert source.program is not None
    signature = source.signature
    graph = converter.convert_program(
        source.program,
        signature.name,
        signature.input_names,
        transforms=[recipe] if recipe is not None else [],
        progress=stage,
    )
    stage("write")
    return LiteRTModel.from_temporary(lambda path: flatbuffer.to_file([graph], path))
