"""Running a file once, on inputs given or made up."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from litert_torch.errors import InvalidInputError
from litert_torch.runtime_bindings.inputs import made_up_inputs
from litert_torch.runtime_bindings.litert import LiteRTModel


def run_file(
    path: str | os.PathLike[str],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    signature: str | None = None,
    made_up: bool = False,
) -> dict[str, npt.NDArray[Any]]:
    """The outputs of a signature by name.

    Args:
        path: The .tflite file.
        args: Positional inputs, as `LiteRTModel` takes them.
        kwargs: Inputs by name.
        signature: Which entry point; the first by default.
        made_up: Make up the inputs that are not given.

    Raises:
        InvalidModelFileError: the file is not whole, or LiteRT cannot load it.
        InvalidInputError: unknown signature, or inputs of wrong number, name, shape or dtype.
    """
    model = LiteRTModel.load(path)
    name = next(iter(model.signatures)) if signature is None else signature
    if name not in model.signatures:
        raise InvalidInputError(f"no signature {name!r}; it has: {', '.join(model.signatures)}")
    spec = model.signatures[name]
    given = dict(kwargs or {})
    if made_up:
        left = [t.name for t in spec.inputs if t.name not in given][len(args) :]
        random = made_up_inputs(spec, {})
        given |= {n: random[n] for n in left}
    outputs = model(*args, signature_name=name, **given)
    if isinstance(outputs, dict):
        return outputs
    listed = outputs if isinstance(outputs, tuple) else (outputs,)
    return {f"output_{i}": x for i, x in enumerate(listed)}
