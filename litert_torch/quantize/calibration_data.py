"""Batches of inputs, in whatever form the user has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.dims import Size, smallest
from litert_torch.converter.ir import Graph
from litert_torch.errors import InvalidInputError

Batch = Any
"""An array, a tuple of arrays in the inputs' order, or a dict by input name."""

Calibration = Iterable[Batch] | Callable[[], Iterable[Batch]] | Mapping[str, Any]
"""Batches, or a function that gives them, or either by signature name; or what has a method
`for_graph(graph)` that gives them, as `CalibrationFiles` has."""

Feed = dict[str, Array]


def feeds(calibration: Calibration, graph: Graph) -> Iterator[Feed]:
    """Each batch as arrays by input name.

    Raises:
        InvalidInputError: there is no batch, or one does not fit the graph's inputs, or is not
            finite.
    """
    number = -1
    for number, batch in enumerate(batches_of(calibration, graph)):
        yield _feed(batch, graph, number)
    if number < 0:
        raise InvalidInputError("the calibration data is empty: give at least one batch of inputs")


def first_feed(calibration: Calibration, graph: Graph) -> Feed:
    """The first batch; of a generator, it is then gone."""
    return next(feeds(calibration, graph))


def made_up_feed(graph: Graph) -> Feed:
    """One batch of normal numbers, and zeros of other types, in the least sizes."""
    rng = np.random.default_rng(0)
    found: Feed = {}
    for name, v in zip(graph.input_names, graph.inputs, strict=True):
        shape = [smallest(s, graph.least_sizes) for s in v.shape]
        values = rng.standard_normal(shape) if v.dtype.is_float else np.zeros(shape)
        found[name] = values.astype(v.dtype.numpy)
    return found


def batches_of(calibration: Calibration, graph: Graph) -> Iterable[Batch]:
    """The batches for one signature."""
    if isinstance(calibration, Mapping):
        if graph.name not in calibration:
            raise InvalidInputError(
                f"there is calibration data for {', '.join(map(str, calibration))}, but none for "
                f"signature {graph.name!r}"
            )
        return batches_of(calibration[graph.name], graph)
    for_graph = getattr(calibration, "for_graph", None)
    if for_graph is not None:
        found: Iterable[Batch] = for_graph(graph)
        return found
    return calibration() if callable(calibration) else calibration


def is_repeatable(calibration: Calibration) -> bool:
    """Whether the batches can be gone through again: a generator's cannot."""
    return callable(calibration) or not isinstance(calibration, Iterator)


def repeatable(calibration: Calibration) -> Calibration:
    """The same batches, to go through as often as the algorithms need; a generator's are kept."""
    if isinstance(calibration, Mapping):
        return {name: repeatable(batches) for name, batches in calibration.items()}
    return calibration if is_repeatable(calibration) else list(cast("Iterable[Batch]", calibration))


def _feed(batch: Batch, graph: Graph, number: int) -> Feed:
    names = graph.input_names
    if isinstance(batch, Mapping):
        given = dict(batch)
    else:
        listed: Sequence[Any] = batch if isinstance(batch, (tuple, list)) else (batch,)
        if len(listed) != len(names):
            raise InvalidInputError(
                f"calibration batch {number} has {len(listed)} inputs, but signature "
                f"{graph.name!r} takes {len(names)}: {', '.join(names)}"
            )
        given = dict(zip(names, listed, strict=True))
    if set(given) != set(names):
        raise InvalidInputError(
            f"calibration batch {number} has inputs {', '.join(map(str, given))}; signature "
            f"{graph.name!r} takes {', '.join(names)}"
        )
    return {
        name: _checked(np.asarray(given[name]), value.type.shape, value.dtype.numpy, name, number)
        for name, value in zip(names, graph.inputs, strict=True)
    }


def _checked(x: Array, shape: tuple[Size, ...], dtype: Any, name: str, number: int) -> Array:
    fits = len(x.shape) == len(shape) and all(
        not isinstance(want, int) or want == have for have, want in zip(x.shape, shape, strict=True)
    )
    if not fits:
        raise InvalidInputError(
            f"calibration batch {number}: input {name!r} has shape {list(x.shape)}, "
            f"but the model takes [{', '.join(map(str, shape))}]"
        )
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise InvalidInputError(f"calibration batch {number}: input {name!r} has NaN or infinity")
    return x.astype(dtype, copy=False)
