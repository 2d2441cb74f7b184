"""What a caller passes, as the arrays that a signature takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidInputError
from litert_torch.runtime_bindings.model_file import SignatureSpec, TensorSpec

Array = npt.NDArray[Any]
Shapes = Mapping[str, Sequence[int]]


def bind(spec: SignatureSpec, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Array]:
    """An array of the right shape and dtype for each input of `spec`.

    Args:
        spec: The signature.
        args: Values of the inputs args_0, args_1, ..., or, where the signature names its inputs
            otherwise, of its inputs in the file's order.
        kwargs: Values by name.

    Raises:
        InvalidInputError: an input is missing, unknown, given twice, or of a shape or dtype that
            the signature does not take.
    """
    names = [t.name for t in spec.inputs]
    positional = dict(zip(_positional_names(names, len(args)), args, strict=True))
    twice = positional.keys() & kwargs.keys()
    if twice:
        raise InvalidInputError(f"input {', '.join(sorted(twice))} is given twice")
    given = {**positional, **kwargs}
    missing = [n for n in names if n not in given]
    unknown = [n for n in given if n not in names]
    if missing or unknown:
        lacks = f"{', '.join(missing)} missing" if missing else ""
        extra = f"{', '.join(unknown)} unknown" if unknown else ""
        raise InvalidInputError(
            f"signature {spec.name!r} takes {_count(names)}: "
            f"{', '.join(map(str, spec.inputs)) or 'none'}; "
            f"{len(given)} given, {' and '.join(filter(None, [lacks, extra]))}"
        )
    return {t.name: _fitted(given[t.name], t) for t in spec.inputs}


def _count(names: Sequence[str]) -> str:
    return f"{len(names)} input{'' if len(names) == 1 else 's'}"


def _positional_names(names: Sequence[str], count: int) -> list[str]:
    """The names of the first `count` positional inputs; surplus ones are called args_N too."""
    converted = not names or any(re.fullmatch(r"args_\d+", n) for n in names)
    if converted:
        return [f"args_{i}" for i in range(count)]
    return list(names[:count]) + [f"args_{i}" for i in range(len(names), count)]


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """How the runtime exchanges a tensor type of a file with numpy."""
    if dtype == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    unpacked = {"int2": "int8", "int4": "int8", "uint4": "uint8", "string": "object"}
    return np.dtype(unpacked.get(dtype, dtype))


def _fitted(value: Any, spec: TensorSpec) -> Array:
    array, want = _as_array(value), numpy_dtype(spec.dtype)
    if np.iscomplexobj(array) and want.kind == "f" and spec.shape[array.ndim :] == (2,):
        array = value = np.stack([array.real, array.imag], -1)  # the form that a file takes
    shape = spec.shape
    if array.ndim != len(shape) or any(
        want not in {have, -1} for want, have in zip(shape, array.shape, strict=True)
    ):
        hint = "; ? may be any size" if -1 in shape else ""
        raise InvalidInputError(f"input {spec} got an array of shape {list(array.shape)}{hint}")
    if not _may_cast(value, array, want):
        raise InvalidInputError(
            f"input {spec} got {array.dtype}, which does not convert without loss; "
            f"pass x.astype({want.name!r}) where that is what you mean"
        )
    return np.ascontiguousarray(array, want).reshape(array.shape)


def _as_array(value: Any) -> Array:
    if hasattr(value, "detach"):  # a torch.Tensor, without importing torch
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        return np.asarray(value.resolve_conj().resolve_neg().numpy())
    return np.asarray(value)


def _may_cast(value: Any, array: Array, want: np.dtype[Any]) -> bool:
    """Safe casts, any float to any float, and Python numbers whose values fit."""
    have = array.dtype
    if np.can_cast(have, want, "safe") or (_is_float(have) and _is_float(want)):
        return True
    is_plain = not hasattr(value, "dtype")
    if is_plain and have.kind == "i" and (want.kind in "iu" or _is_float(want)):
        return bool(np.array_equal(array.astype(want).astype(have), array))
    return False


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def made_up_inputs(spec: SignatureSpec, shapes: Shapes) -> dict[str, Array]:
    """Normal floats, and zeros of other types, which are valid as indices and token ids."""
    random = np.random.default_rng(0)
    types = {t.name: numpy_dtype(t.dtype) for t in spec.inputs}
    made: dict[str, Array] = {}
    for name, sizes in input_shapes(spec, shapes).items():
        is_number = types[name].kind == "f" or types[name].name == "bfloat16"
        values = random.standard_normal(sizes) if is_number else np.zeros(sizes)
        made[name] = values.astype(types[name])
    return made


def input_shapes(spec: SignatureSpec, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The shape of each input: as asked, else as the file has it until it is resized."""
    unknown = shapes.keys() - {t.name for t in spec.inputs}
    if unknown:
        raise InvalidInputError(
            f"no input {', '.join(sorted(unknown))}; signature {spec.name!r} takes: "
            f"{', '.join(map(str, spec.inputs))}"
        )
    found = {}
    for tensor in spec.inputs:
        asked = shapes.get(tensor.name, tensor.stored_shape)
        if len(asked) != len(tensor.shape) or any(
            want not in {have, -1} for want, have in zip(tensor.shape, asked, strict=True)
        ):
            raise InvalidInputError(f"input {tensor} cannot have the shape {list(asked)}")
        found[tensor.name] = tuple(asked)
    return found
