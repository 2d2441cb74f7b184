"""A .pt2 file, as torch.export.save writes it."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from litert_torch.converter.frontends.samples import made_up
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature
from litert_torch.errors import ConversionError, InvalidInputError


def load(path: str | os.PathLike[str]) -> ExportedProgram:
    """The program in the file at `path`.

    Raises:
        InvalidInputError: there is no such file.
        ConversionError: torch.export.load refuses it.
    """
    if not os.path.isfile(path):
        raise InvalidInputError(f"no file {path}")
    try:
        with _silent_torch():
            return torch.export.load(path)
    except Exception as error:  # a damaged archive fails in zip, pickle, json or torch
        raise ConversionError(
            f"{path} is not a program that torch.export.save of this PyTorch "
            f"({torch.__version__}) wrote, or it is damaged: {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else error!r}"
        ) from error


@contextmanager
def _silent_torch() -> Iterator[None]:
    """Without the traceback that torch.export.load logs before it raises."""
    logger = logging.getLogger("torch.export")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def signature(program: ExportedProgram, name: str = DEFAULT_SIGNATURE_NAME) -> Signature:
    """The program as an entry point; its sample inputs are those of the export, or made up."""
    args, kwargs = program.example_inputs or _inputs_like(program)
    return Signature.checked(name, program.module(), tuple(args), dict(kwargs))


def _inputs_like(program: ExportedProgram) -> tuple[Any, Any]:
    """Made-up inputs of the sizes that the program was traced with."""
    fakes = {n.name: n.meta.get("val") for n in program.graph.nodes if n.op == "placeholder"}
    specs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    leaves = [_like(fakes[s.arg.name], getattr(s.arg, "value", None)) for s in specs]
    if program.call_spec.in_spec is None:
        return tuple(leaves), {}
    return pytree.tree_unflatten(leaves, program.call_spec.in_spec)


def _like(fake: Any, constant: Any) -> Any:
    if not isinstance(fake, torch.Tensor):
        return constant
    sizes = [s if isinstance(s, int) else int(s.node.hint) for s in fake.shape]
    return made_up(sizes, fake.dtype)
