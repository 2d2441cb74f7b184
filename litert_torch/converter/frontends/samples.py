"""Sample inputs and dynamic sizes, as text describes them."""

import inspect
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from litert_torch.converter.signature import Signature
from litert_torch.errors import InvalidInputError

_SAMPLE = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<value>[^=]+)")
_SHAPE = re.compile(r"(?P<shape>scalar|\d+(?:x\d+)*)(?::(?P<dtype>\w+))?")
_DYNAMIC = re.compile(
    r"(?P<input>\w+)\.(?P<dim>-?\d+)=(?P<name>[A-Za-z_]\w*)(?P<bounds>(?::\d*){0,2})"
)


@dataclass(frozen=True)
class Sample:
    """One sample input.

    Attributes:
        name: The keyword of forward() that it is for; None for a positional one.
        tensor: The input.
    """

    name: str | None
    tensor: torch.Tensor


def parse_sample(text: str) -> Sample:
    """`1x3x224x224:float32`, `mask=1x77:bool`, `scalar:int64` or `image=photo.npy`.

    Raises:
        InvalidInputError: the text is none of these.
    """
    match = _SAMPLE.fullmatch(text)
    if not match:
        raise InvalidInputError(f"{text!r} is not [NAME=]SHAPE[:DTYPE] or [NAME=]FILE.npy")
    name, value = match["name"], match["value"]
    if value.endswith(".npy"):
        return Sample(name, _from_file(value))
    shaped = _SHAPE.fullmatch(value)
    if not shaped:
        raise InvalidInputError(
            f"{text!r} is not [NAME=]SHAPE[:DTYPE], such as 1x3x224x224:float32 or mask=1x77:bool"
        )
    sizes = [] if shaped["shape"] == "scalar" else [int(s) for s in shaped["shape"].split("x")]
    dtype = getattr(torch, shaped["dtype"] or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise InvalidInputError(f"{text!r} names no dtype of PyTorch: {shaped['dtype']!r}")
    return Sample(name, made_up(sizes, dtype))


def _from_file(path: str) -> torch.Tensor:
    if not os.path.isfile(path):
        raise InvalidInputError(f"no file {path}")
    try:
        return torch.from_numpy(np.load(path, allow_pickle=False))
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise InvalidInputError(f"{path} holds no array that PyTorch takes: {error}") from error


def made_up(sizes: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Normal floats; zeros and ones of other types, which are likely to be valid indices."""
    generator = torch.Generator("cpu").manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        kind = dtype if dtype.is_complex else torch.float32
        return torch.randn(tuple(sizes), generator=generator, dtype=kind, device="cpu").to(dtype)
    return torch.randint(0, 2, tuple(sizes), generator=generator, device="cpu").to(dtype)


def split(samples: Sequence[Sample]) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    """Positional and keyword sample inputs.

    Raises:
        InvalidInputError: a name occurs twice.
    """
    named = [s for s in samples if s.name is not None]
    keywords = {str(s.name): s.tensor for s in named}
    if len(keywords) != len(named):
        raise InvalidInputError("two sample inputs have one name")
    return tuple(s.tensor for s in samples if s.name is None), keywords


def with_dynamic_sizes(signature: Signature, texts: Sequence[str]) -> Signature:
    """The signature with sizes that may vary: `0.2=height:64:512` for axis 2 of input 0.

    Inputs are the leaves of the sample inputs, by number or by their name in the file. Sizes of
    one name are equal.

    Raises:
        InvalidInputError: the text is none of these, or there is no such input or axis.
    """
    if not texts:
        return signature
    leaves, spec = pytree.tree_flatten((signature.args, signature.kwargs))
    chosen: list[Any] = [None] * len(leaves)
    dims: dict[str, Any] = {}
    for text in texts:
        match = _DYNAMIC.fullmatch(text)
        if not match:
            raise InvalidInputError(
                f"{text!r} is not INPUT.AXIS=NAME[:MIN[:MAX]], such as 0.0=batch:1:64"
            )
        leaf = _input_number(signature, match["input"])
        axis = _axis(leaves[leaf], int(match["dim"]), text)
        dim = dims.setdefault(match["name"], _dim(match["name"], match["bounds"], text))
        chosen[leaf] = {**(chosen[leaf] or {}), axis: dim}
        leaves[leaf] = _with_general_size(leaves[leaf], axis, dim)
    args, kwargs = pytree.tree_unflatten(chosen, spec)
    bound = inspect.signature(signature.module.forward).bind(*args, **kwargs)
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    return replace(signature, args=args, kwargs=kwargs, dynamic_shapes=dict(bound.arguments))


def _with_general_size(x: torch.Tensor, axis: int, dim: Any) -> torch.Tensor:
    """`x`, repeated where its size is 1: torch.export takes a size of 1 to be fixed."""
    least = max(2, getattr(dim, "min", None) or 0)
    return x.repeat_interleave(least, axis) if x.shape[axis] == 1 else x


def _input_number(signature: Signature, text: str) -> int:
    names = signature.input_names
    if text in names:
        return names.index(text)
    if text.isdigit() and int(text) < len(names):
        return int(text)
    raise InvalidInputError(f"there is no input {text!r}; the inputs are: {', '.join(names)}")


def _axis(leaf: Any, axis: int, text: str) -> int:
    if not isinstance(leaf, torch.Tensor) or not -leaf.ndim <= axis < leaf.ndim:
        rank = f"{leaf.ndim} axes" if isinstance(leaf, torch.Tensor) else "no axes"
        raise InvalidInputError(f"{text!r}: there is no axis {axis}; the input has {rank}")
    return axis % leaf.ndim


def _dim(name: str, bounds: str, text: str) -> Any:
    least, most = ([int(b) if b else None for b in bounds.split(":")[1:]] + [None, None])[:2]
    if least is not None and most is not None and least >= most:
        raise InvalidInputError(f"{text!r}: the bounds of {name} are empty")
    return torch.export.Dim(name, min=least, max=most)
