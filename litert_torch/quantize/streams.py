"""Activations whose channels may be scaled, because what makes and reads them can make up for it.

A stream is a set of activations that must be scaled alike: a factor for each channel goes into
the rows of the weights that make them, and its inverse into the columns of those that read them.
Sums, pooling and rectifiers between them pass factors on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from litert_torch.converter.constants import Array, Constant, combined_key
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, Value, const
from litert_torch.quantize import kernels
from litert_torch.quantize.planning import weight_of

_MAKERS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"})
_SUMS = frozenset({"ADD", "SUB"})
_PASSING = frozenset(
    [
        "RELU",
        "LEAKY_RELU",
        "MAX_POOL_2D",
        "AVERAGE_POOL_2D",
        "PAD",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "RESHAPE",
        "MEAN",
    ]
)
_NONE, _RELU, _RELU6 = 0, 1, 3  # schema.ActivationFunctionType


@dataclass(eq=False)
class Stream:
    """Activations that are scaled alike.

    Attributes:
        values: The activations.
        makers: Ops whose weights' rows make them.
        readers: Ops whose weights' columns read them.
        limit: What their makers cut them off at, as RELU6 does; None where nothing does.
    """

    values: list[Value] = field(default_factory=list)
    makers: list[Op] = field(default_factory=list)
    readers: list[Op] = field(default_factory=list)
    limit: float | None = None

    @property
    def channels(self) -> int:
        """Size of the last axis."""
        return int(self.values[0].shape[-1])


def streams(graph: Graph) -> list[Stream]:
    """The streams of a float graph."""
    found = _Search(graph)
    return [s for root, s in found.streams.items() if root not in found.blocked and s.readers]


class _Search:
    """Joins values op by op; `blocked` has the streams that something cannot make up for."""

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Value, Value] = {}
        self._uses: dict[object, int] = {}
        for op in graph.ops:
            for v in dict.fromkeys(op.inputs):
                if v is not None and v.const is not None:
                    self._uses[v.const.key] = self._uses.get(v.const.key, 0) + 1
        roles = [(op, self._join(op)) for op in graph.ops]
        self.streams: dict[Value, Stream] = {}
        self.blocked = {self._root(v) for v in (*graph.inputs, *graph.outputs)}
        for op, passes in roles:
            if not passes:
                self._enter(op)
        for op in graph.ops:
            for v in op.outputs:
                if self._root(v) in self.streams:
                    self.streams[self._root(v)].values.append(v)

    def _root(self, v: Value) -> Value:
        while v in self._parent:
            v = self._parent[v]
        return v

    def _join(self, op: Op) -> bool:
        """Make one stream of what `op` reads and gives where it passes factors on."""
        values = [v for v in op.inputs if v is not None and v.const is None]
        if not _passes_on(op, values):
            return False
        for v in values:
            if self._root(v) is not self._root(op.output):
                self._parent[self._root(v)] = self._root(op.output)
        return True

    def _enter(self, op: Op) -> None:
        can_read = op.kind in _MAKERS and self._owns_weights(op)
        for i, v in enumerate(op.inputs):
            if v is None or v.const is not None:
                continue
            if can_read and i == 0 and _reads_channels(op):
                self.streams.setdefault(self._root(v), Stream()).readers.append(op)
            else:
                self.blocked.add(self._root(v))
        activation = op.attrs.get("fusedActivationFunction", _NONE)
        can_make = can_read and activation in (_NONE, _RELU, _RELU6) and _owns_bias(op)
        for v in op.outputs:
            if not can_make:
                self.blocked.add(self._root(v))
                continue
            stream = self.streams.setdefault(self._root(v), Stream())
            stream.makers.append(op)
            if activation == _RELU6:
                stream.limit = 6.0

    def _owns_weights(self, op: Op) -> bool:
        w = weight_of(op)
        return w is not None and w.const is not None and self._uses[w.const.key] == 1


def _passes_on(op: Op, values: list[Value]) -> bool:
    if not values or len(op.outputs) != 1 or op.output.dtype != DType.FLOAT32:
        return False
    if op.attrs.get("fusedActivationFunction", _NONE) not in (_NONE, _RELU):
        return False
    last = op.output.shape[-1:]
    if not last or not isinstance(last[0], int) or any(v.shape[-1:] != last for v in values):
        return False
    if op.kind in _SUMS:
        return len(values) == 2
    if op.kind == "PAD":
        paddings = op.inputs[1]
        return paddings is not None and not paddings.read()[-1].any()
    if op.kind == "MEAN":
        axes = op.inputs[1]
        rank = values[0].rank
        return axes is not None and rank - 1 not in {int(a) % rank for a in axes.read().ravel()}
    return op.kind in _PASSING and len(values) == 1


def _reads_channels(op: Op) -> bool:
    """Whether the weights' columns are the channels of what is read, all or a group's."""
    x, w = op.inputs[0], weight_of(op)
    assert x is not None
    assert w is not None
    if not isinstance(x.shape[-1], int):
        return False
    if op.kind == "FULLY_CONNECTED":
        return x.shape[-1] == w.shape[-1]
    return True


def _owns_bias(op: Op) -> bool:
    place = kernels.WEIGHTED[op.kind].bias
    bias = op.inputs[place] if place is not None and place < len(op.inputs) else None
    return bias is None or bias.const is not None


def columns(op: Op, w: Array) -> Iterator[tuple[slice, Array]]:
    """The weights by group of input channels: which channels, and [outputs, positions, channels].

    A depthwise convolution has a group for all channels, whose outputs are its multiples.
    """
    if op.kind == "FULLY_CONNECTED":
        yield slice(None), w[:, None]
        return
    x = op.inputs[0]
    assert x is not None
    channels = int(x.shape[-1])
    if op.kind == "DEPTHWISE_CONV_2D":
        positions = w.shape[1] * w.shape[2]
        yield slice(None), w.reshape(positions, channels, -1).transpose(2, 0, 1)
        return
    each, groups = w.shape[-1], channels // w.shape[-1]
    rows = w.reshape(groups, len(w) // groups, -1, each)
    for g in range(groups):
        yield slice(g * each, (g + 1) * each), rows[g]


def rescale(found: Mapping[int, Array], all_streams: list[Stream]) -> None:
    """Multiply the channels of streams, by place in the list, by factors; ops change in place."""
    for i, factors in found.items():
        stream = all_streams[i]
        for op in stream.makers:
            _scale_rows(op, factors)
        for op in stream.readers:
            _scale_columns(op, 1 / factors)


def _scale_rows(op: Op, factors: Array) -> None:
    operands = kernels.WEIGHTED[op.kind]
    w = op.inputs[operands.weights]
    assert w is not None
    assert w.const is not None
    along = [1] * w.rank
    along[operands.axis] = -1
    op.inputs[operands.weights] = _times(w.const, factors.reshape(along))
    bias = op.inputs[operands.bias] if operands.bias is not None else None
    if operands.bias is not None and bias is not None and bias.const is not None:
        op.inputs[operands.bias] = _times(bias.const, factors)


def _scale_columns(op: Op, factors: Array) -> None:
    w = op.inputs[1]
    assert w is not None
    assert w.const is not None
    if op.kind == "DEPTHWISE_CONV_2D":
        op.inputs[1] = _times(w.const, np.repeat(factors, int(w.shape[-1]) // factors.size))
    elif op.kind == "CONV_2D" and factors.size != w.shape[-1]:
        groups = factors.size // int(w.shape[-1])
        each = np.repeat(factors.reshape(groups, -1), int(w.shape[0]) // groups, axis=0)
        op.inputs[1] = _times(w.const, each[:, None, None, :])
    else:
        op.inputs[1] = _times(w.const, factors)


def _times(c: Constant, factors: Array) -> Value:
    small = factors.astype(np.float32)
    key = ("times", combined_key(small.tobytes(), small.shape))
    return const(c.derive(key, lambda data: (data * small).astype(np.float32)))
