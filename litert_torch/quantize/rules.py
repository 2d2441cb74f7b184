"""Which ops a rule is for, and what it asks of them."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from litert_torch.converter.dtypes import DType
from litert_torch.errors import InvalidInputError
from litert_torch.quantize import algorithms
from litert_torch.quantize.kernels import QUANTIZABLE
from litert_torch.quantize.schemes import Weights, int8

Compute = Literal["dynamic", "weight_only", "static"]

_COMPUTES = ("dynamic", "weight_only", "static")
_REGEX = "regex:"


@dataclass(frozen=True)
class Place:
    """An op of a graph as rules see it.

    Attributes:
        module: Path of the user's module.
        op: Op kind.
        name: Name of its result in the file, "layers.0.mlp/fully_connected_7".
        size: Elements of its weights; 0 for ops without.
    """

    module: str
    op: str
    name: str
    size: int


@dataclass(frozen=True)
class Rule:
    """What to do with the ops that it matches; what is None there matches all.

    Attributes:
        module: Glob of module paths, which also matches what is inside the module; or
            "regex:..." searched for in the path.
        op: LiteRT op kind, as FULLY_CONNECTED.
        name: Glob, or "regex:...", of the result's name in the file.
        min_size: Weights of fewer elements do not match.
        weights: How to store the weights; float32 leaves the op in float.
        compute: "dynamic" quantizes activations as the model runs, "weight_only" computes in
            float, "static" has scales of activations from calibration.
        activations: int8 or int16, where static.
        algorithm: How scales are chosen, one of `algorithms.NAMES`; None is the best for the type.
        optional: That it matches nothing is no error.
    """

    module: str | None = None
    op: str | None = None
    name: str | None = None
    min_size: int = 0
    weights: Weights = field(default_factory=int8)
    compute: Compute = "dynamic"
    activations: DType | None = None
    algorithm: str | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        _known("op", self.op, sorted(QUANTIZABLE))
        _known("algorithm", self.algorithm, algorithms.NAMES)
        _known("compute", self.compute, _COMPUTES)
        if self.activations not in (None, DType.INT8, DType.INT16):
            raise InvalidInputError(f"activations must be int8 or int16, not {self.activations}")
        for pattern in (self.module, self.name):
            _check_pattern(pattern)

    def matches(self, place: Place) -> bool:
        """Whether the rule is for the op at `place`."""
        return (
            (self.op is None or self.op == place.op)
            and (self.min_size == 0 or place.size >= self.min_size)
            and (self.module is None or _matches(self.module, place.module, inside=True))
            and (self.name is None or _matches(self.name, place.name, inside=False))
        )

    def nothing_matched(self, places: Sequence[Place]) -> str:
        """The message for a rule that matches none of `places`, with names that come near."""
        asked = ", ".join(
            f"{k}={v!r}"
            for k, v in (("module", self.module), ("name", self.name), ("op", self.op))
            if v is not None
        )
        wanted, key = (self.module, "module") if self.module is not None else (self.name, "name")
        there = sorted({getattr(p, key) for p in places if getattr(p, key)})
        near = difflib.get_close_matches((wanted or "").replace("*", "0"), there, 3, 0.3)
        hint = f"; near: {', '.join(near)}" if near else f"; there are: {', '.join(there[:5])}"
        return f"the rule {asked} matches nothing{hint if there else ''}"


def _known(what: str, value: Any, names: Sequence[str]) -> None:
    if value is not None and value not in names:
        cased = {n.lower(): n for n in names}
        near = difflib.get_close_matches(str(value).lower(), cased, 3, 0.4)
        listed = [cased[n] for n in near] or names
        raise InvalidInputError(f"no {what} {value!r}; there is: {', '.join(listed)}")


def _check_pattern(pattern: str | None) -> None:
    if pattern is not None and pattern.startswith(_REGEX):
        try:
            re.compile(pattern.removeprefix(_REGEX))
        except re.error as error:
            raise InvalidInputError(f"{pattern!r} is no regular expression: {error}") from error


def _matches(pattern: str, text: str, *, inside: bool) -> bool:
    if pattern.startswith(_REGEX):
        return re.search(pattern.removeprefix(_REGEX), text) is not None
    return fnmatch.fnmatchcase(text, pattern) or (
        inside and fnmatch.fnmatchcase(text, f"{pattern}.*")
    )
