"""A named entry point of a model: what to export, with which sample inputs, under which names."""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from litert_torch.errors import InvalidInputError

DEFAULT_SIGNATURE_NAME = "serving_default"


@dataclass(frozen=True, eq=False)
class Signature:
    """One entry point.

    Attributes:
        name: Key in the file's signature list.
        module: The module to export.
        args: Positional sample inputs.
        kwargs: Keyword sample inputs.
        dynamic_shapes: As `torch.export.export` takes it.
    """

    name: str
    module: torch.nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None

    @classmethod
    def checked(
        cls,
        name: str,
        module: torch.nn.Module,
        args: tuple[Any, ...] | None,
        kwargs: dict[str, Any] | None,
        dynamic_shapes: Any = None,
    ) -> "Signature":
        """The signature, or InvalidInputError saying what is wrong with the arguments."""
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"a signature name must be a non-empty string, not {name!r}")
        if not isinstance(module, torch.nn.Module):
            raise InvalidInputError(
                f"module must be a torch.nn.Module, not {type(module).__name__}; "
                "wrap a function in a module whose forward calls it"
            )
        if args is None and kwargs is None:
            raise InvalidInputError("sample_args or sample_kwargs must be provided.")
        if args is not None and not isinstance(args, tuple):
            raise InvalidInputError(
                "sample_args must be a tuple of tensors, one a positional argument of forward(); "
                f"got {type(args).__name__}. For one tensor write (x,)."
            )
        if kwargs is not None and not (
            isinstance(kwargs, dict) and all(isinstance(k, str) for k in kwargs)
        ):
            raise InvalidInputError("sample_kwargs must be a dict of argument name to tensor.")
        return cls(name, module, args or (), kwargs or {}, dynamic_shapes)

    @functools.cached_property
    def input_names(self) -> list[str]:
        """A name for each leaf of (args, kwargs): args_0, args_1, ..., then paths of keywords."""
        positional = len(pytree.tree_leaves(self.args))
        return _distinct([*(f"args_{i}" for i in range(positional)), *leaf_names(self.kwargs)])


def leaf_names(tree: Any) -> list[str]:
    """The path of each leaf, joined by underscores: {"a": [x, y]} gives a_0, a_1."""
    paths = [path for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    return _distinct(["_".join(_key_text(key) for key in path) for path in paths])


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, those that came before with a number behind: a_b, a_b_1."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{i}" for i in itertools.count(1))
        found.append(name if name not in found else next(n for n in numbered if n not in names))
    return found


def output_names(spec: pytree.TreeSpec) -> list[str]:
    """Names of a program's outputs: paths in a dict that forward returns, else output_0, ..."""
    if spec.type is None or spec.num_leaves == 0:
        return ["output_0"][: spec.num_leaves]
    tree = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    if isinstance(tree, (list, tuple, int)) and not hasattr(tree, "_fields"):
        return [f"output_{i}" for i in range(spec.num_leaves)]
    return leaf_names(tree)


def _key_text(key: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
