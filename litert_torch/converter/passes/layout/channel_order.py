"""Channel shuffles folded into the weights of the convolutions that read them.

A shuffle, and the SPLITs, SLICEs and CONCATENATIONs of channels around it, only say which
channel of which tensor comes where. A convolution can read those channels in any order if its
filter's columns are in the same order: so it reads them as the fewest runs of neighbours. What
passes through several units (ShuffleNet's left half) is never moved at all.

before: conv_2d(split(channel_shuffle(concat(a, b)))[1], w)
after:  conv_2d(concat(slice(a), slice(b)), w[..., order])
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import is_static
from litert_torch.converter.ir import Graph, Op, Value, const
from litert_torch.converter.passes.layout.rules import CHANNEL_SHUFFLE

_MOST_RUNS = 16  # more slices than this cost more than the shuffle
_MOST_DELEGATED = 5  # operands of a CONCATENATION that XNNPACK runs

Channel = tuple[Value, int]
Channels = list[Channel]
Run = tuple[Value, int, int]


def fold_channel_order(graph: Graph) -> None:
    """Let convolutions read shuffled channels from where they were before."""
    if not any(op.kind == CHANNEL_SHUFFLE for op in graph.ops):
        return
    folder = _Folder(graph)
    old_ops, graph.ops = graph.ops, []
    for op in old_ops:
        graph.source = op.source
        if not folder.fold(op):
            graph.ops.append(op)
    graph.replace_values(folder.replaced)
    graph.remove_dead_ops()


@dataclass(eq=False)
class _Folder:
    """What each rearranged tensor's channels are, as the ops are gone through in order."""

    graph: Graph
    channels: dict[Value, Channels] = field(default_factory=dict)
    shuffled: set[Value | None] = field(default_factory=set)
    replaced: dict[Value, Value] = field(default_factory=dict)
    assembled: dict[tuple[Run, ...], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.users = self.graph.users()

    def fold(self, op: Op) -> bool:
        """Whether `op` was emitted in another form."""
        self._rearrange(op)
        x = op.inputs[0] if op.inputs else None
        if x is None or x not in self.shuffled or not self._takes_any_order(op):
            return False
        runs = _runs(self.channels[x])
        is_read_twice = len(set(self.channels[x])) < len(self.channels[x])
        if len(runs) > _MOST_RUNS or is_read_twice:
            return False
        order = _order(self.channels[x], runs)
        y = self._on_runs(op, runs, order)
        if op.kind == "CONV_2D":
            self.replaced[op.output] = y
        else:
            self._note(op.output, [(y, int(i)) for i in np.argsort(order)], shuffled=True)
        return True

    def _rearrange(self, op: Op) -> None:
        """Note the channels of an op that only rearranges them."""
        last = op.output.rank - 1
        x = op.inputs[0] if op.inputs else None
        if not is_static(v.shape[-1] for v in (*op.inputs, *op.outputs) if v and v.rank):
            return
        if op.kind == CHANNEL_SHUFFLE and op.attrs["axis"] == last:
            before = self._of(x)
            order = np.arange(len(before)).reshape(op.attrs["groups"], -1).T.reshape(-1)
            self._note(op.output, [before[i] for i in order], shuffled=True)
        elif op.kind == "CONCATENATION" and op.attrs["axis"] % (last + 1) == last:
            shuffled = any(v in self.shuffled for v in op.inputs)
            self._note(op.output, [c for v in op.inputs for c in self._of(v)], shuffled)
        elif op.kind == "SPLIT" and _splits(op, last):
            whole = self._of(op.inputs[1])
            size = len(whole) // len(op.outputs)
            for i, v in enumerate(op.outputs):
                part = whole[i * size : (i + 1) * size]
                self._note(v, part, op.inputs[1] in self.shuffled)
        elif op.kind == "SLICE" and x in self.channels and _slices_channels(op):
            first = int(_some(op.inputs[1]).read()[-1])
            part = self._of(x)[first : first + int(op.output.shape[-1])]
            self._note(op.output, part, x in self.shuffled)

    def _note(self, v: Value, channels: Channels, shuffled: bool) -> None:
        self.channels[v] = channels
        if shuffled:
            self.shuffled.add(v)

    def _takes_any_order(self, op: Op) -> bool:
        """Whether the op, and all that read its result, can have channels in another order."""
        if op.kind == "CONV_2D":
            return _reads_all_channels(op)
        keeps = (op.kind == "DEPTHWISE_CONV_2D" and op.attrs["depthMultiplier"] == 1) or (
            op.kind == "PAD" and not _some(op.inputs[1]).read()[-1].any()
        )
        readers = self.users.get(op.output, [])
        visible = op.output in self.graph.outputs or not readers
        return keeps and not visible and all(self._takes_any_order(r) for r in readers)

    def _on_runs(self, op: Op, runs: list[Run], order: list[int]) -> Value:
        """`op` on the runs, with the channels of its weights in their order."""
        inputs = [self._assemble(runs), *op.inputs[1:]]
        if op.kind != "PAD":
            inputs[1] = _reordered(inputs[1], order, 3)
        if op.kind == "DEPTHWISE_CONV_2D":
            inputs[2] = _reordered(inputs[2], order, 0)
        return self.graph.emit(op.kind, inputs, op.output.type, **op.attrs)

    def _of(self, v: Value | None) -> Channels:
        v = _some(v)
        v = self.replaced.get(v, v)
        return self.channels.get(v) or [(v, i) for i in range(int(v.shape[-1]))]

    def _assemble(self, runs: list[Run]) -> Value:
        """The runs side by side."""
        key = tuple(runs)
        if key not in self.assembled:
            parts = [_taken(self.graph, *run) for run in runs]
            while len(parts) > _MOST_DELEGATED:
                head = tfl.concatenation(self.graph, parts[:_MOST_DELEGATED], axis=-1)
                parts = [head, *parts[_MOST_DELEGATED:]]
            self.assembled[key] = tfl.concatenation(self.graph, parts, axis=-1)
        return self.assembled[key]


def _reads_all_channels(op: Op) -> bool:
    """A convolution with a constant filter and no groups."""
    x, weights = op.inputs[0], op.inputs[1]
    return (
        x is not None
        and weights is not None
        and weights.const is not None
        and weights.shape[3] == x.shape[3]
    )


def _splits(op: Op, axis: int) -> bool:
    at = op.inputs[0]
    return at is not None and int(at.read().reshape(-1)[0]) % (axis + 1) == axis


def _slices_channels(op: Op) -> bool:
    x, begin = op.inputs[0], op.inputs[1]
    known = begin is not None and begin.const is not None
    return known and x is not None and op.output.shape[:-1] == x.shape[:-1]


def _some(v: Value | None) -> Value:
    assert v is not None
    return v


def _runs(channels: Channels) -> list[Run]:
    """The channels as (tensor, begin, size), each tensor's in ascending order."""
    tensors = list(dict.fromkeys(v for v, _ in channels))
    place = {v: i for i, v in enumerate(tensors)}
    runs: list[Run] = []
    for v, i in sorted(channels, key=lambda c: (place[c[0]], c[1])):
        if runs and runs[-1][0] is v and runs[-1][1] + runs[-1][2] == i:
            runs[-1] = (v, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((v, i, 1))
    return runs


def _order(channels: Channels, runs: Sequence[Run]) -> list[int]:
    """For each channel of the runs side by side, which of `channels` it is."""
    at = {channel: i for i, channel in enumerate(channels)}
    return [at[v, i] for v, begin, size in runs for i in range(begin, begin + size)]


def _taken(g: Graph, v: Value, begin: int, size: int) -> Value:
    return tfl.slice(g, v, [0] * (v.rank - 1) + [begin], (*v.shape[:-1], size))


def _reordered(v: Value | None, order: Sequence[int], axis: int) -> Value:
    assert v is not None
    assert v.const is not None
    index = tuple(order)
    return const(v.const.derive(("take", axis, index), lambda a: np.take(a, index, axis)))
