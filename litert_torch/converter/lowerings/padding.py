"""Borders around a tensor: constant, reflected, repeated or wrapped around."""

from collections.abc import Sequence

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.converter.lowerings.slicing import elements_at, sliced
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

Pads = Sequence[tuple[Size, Size]]

_MAX_PAD_RANK = 5
_MOST_PIECES = 5  # operands of a CONCATENATION that XNNPACK takes


def pairs_by_axis(pad: Sequence[Size], rank: int) -> Pads:
    """(before, after) of every axis from PyTorch's list, which starts at the last axis."""
    given = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (rank - len(given)) + given[::-1]


def constant_padded(g: Graph, x: Value, pads: Pads, value: float) -> Value:
    """x with elements of `value` around it, or cut where an amount is negative."""
    for axis, (before, after) in enumerate(pads):
        cut = [-p if isinstance(p, int) and p < 0 else 0 for p in (before, after)]
        if cut != [0, 0]:
            x = sliced(g, x, axis, cut[0], -cut[1] or None)
    positive = [tuple(0 if isinstance(p, int) and p < 0 else p for p in pair) for pair in pads]
    return _pad_of_any_rank(g, x, [(a, b) for a, b in positive], value)


def _pad_of_any_rank(g: Graph, x: Value, pads: Pads, value: float) -> Value:
    """PAD of up to five axes; of more, with the axes merged that keep their size."""
    if x.rank <= _MAX_PAD_RANK:
        return tfl.pad(g, x, pads, value)
    shape: list[Size] = []
    merged: list[tuple[Size, Size]] = []
    for size, pair in zip(x.shape, pads, strict=True):
        if merged and pair == (0, 0) == merged[-1]:
            shape[-1] = shape[-1] * size
        else:
            shape.append(size)
            merged.append(pair)
    if len(shape) > _MAX_PAD_RANK:
        raise UnsupportedCaseError(f"pads a tensor of rank {x.rank}: pad fewer axes at a time")
    y = tfl.pad(g, tfl.reshape(g, x, shape), merged, value)
    return tfl.reshape(g, y, [s + a + b for s, (a, b) in zip(x.shape, pads, strict=True)])


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(g: Graph, x: Value, pad: Sequence[Size], value: float = 0) -> Value:
    """PAD with zeros, PADV2 with another value."""
    return constant_padded(g, x, pairs_by_axis(pad, x.rank), value)


@lowers(aten.pad.default)
def pad(
    g: Graph,
    x: Value,
    pad: Sequence[Size],
    mode: str = "constant",
    value: float | None = None,
) -> Value:
    """F.pad in each of its modes."""
    pads = pairs_by_axis(pad, x.rank)
    if mode == "constant":
        return constant_padded(g, x, pads, value or 0)
    bordered = {"reflect": reflected, "replicate": replicated, "circular": wrapped_around}
    return bordered[mode](g, x, pads)


@lowers(
    aten.reflection_pad1d.default,
    aten.reflection_pad2d.default,
    aten.reflection_pad3d.default,
)
def reflection_pad(g: Graph, x: Value, padding: Sequence[Size]) -> Value:
    """Mirrored at the edge elements, which are not repeated."""
    return reflected(g, x, pairs_by_axis(padding, x.rank))


@lowers(
    aten.replication_pad1d.default,
    aten.replication_pad2d.default,
    aten.replication_pad3d.default,
)
def replication_pad(g: Graph, x: Value, padding: Sequence[Size]) -> Value:
    """Edge elements repeated."""
    return replicated(g, x, pairs_by_axis(padding, x.rank))


@lowers(aten._pad_circular.default)
def pad_circular(g: Graph, x: Value, pad: Sequence[Size]) -> Value:
    """Continued at the other end."""
    return wrapped_around(g, x, pairs_by_axis(pad, x.rank))


def reflected(g: Graph, x: Value, pads: Pads) -> Value:
    """MIRROR_PAD; negative amounts cut."""
    amounts = [_numbers(pair) for pair in pads]
    grown = [(max(a, 0), max(b, 0)) for a, b in amounts]
    if any(a or b for a, b in grown):
        x = tfl.mirror_pad(g, x, grown, symmetric=False)
    return constant_padded(g, x, [(min(a, 0), min(b, 0)) for a, b in amounts], 0)


def replicated(g: Graph, x: Value, pads: Pads) -> Value:
    """Axis by axis: the edges as slices around x, or one GATHER where they are wide."""
    for axis, pair in enumerate(pads):
        before, after = _numbers(pair)
        size = x.shape[axis]
        if max(before, 0) + max(after, 0) < _MOST_PIECES and min(before, after) >= 0:
            first = [sliced(g, x, axis, 0, 1)] * before
            last = [sliced(g, x, axis, -1, None)] * after
            x = tfl.concatenation(g, [*first, x, *last], axis=axis)
        else:
            at = np.arange(-before, int(size) + after)
            x = elements_at(g, x, axis, at.clip(0, int(size) - 1))
    return x


def wrapped_around(g: Graph, x: Value, pads: Pads) -> Value:
    """Axis by axis: x, cut where an amount is negative, between its own end and beginning."""
    amounts = [_numbers(pair) for pair in pads]
    x = constant_padded(g, x, [(min(a, 0), min(b, 0)) for a, b in amounts], 0)
    for axis, pair in enumerate(amounts):
        before, after = (max(p, 0) for p in pair)
        front = [sliced(g, x, axis, -before, None)] if before else []
        back = [sliced(g, x, axis, 0, after)] if after else []
        x = tfl.concatenation(g, [*front, x, *back], axis=axis)
    return x


def _numbers(pair: Sequence[Size]) -> tuple[int, int]:
    before, after = dims.static(pair)
    return before, after
