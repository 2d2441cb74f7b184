"""LSTM, GRU and RNN over a whole sequence: all layers, both directions.

The input's products for all steps are one FULLY_CONNECTED. The steps are a loop (`loops.py`), or
stand one after another where there are few and their weights fit in a core's cache: XNNPACK packs
the weights of each FULLY_CONNECTED anew. Both directions share one loop. docs/recurrent.md has
the measurements, and why UNIDIRECTIONAL_SEQUENCE_LSTM is not used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.recurrent_cells import (
    GRU,
    LSTM,
    RNN_RELU,
    RNN_TANH,
    Cell,
    Weights,
)
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

UNROLLED_OPS = 128
UNROLLED_BYTES = 512 << 10  # of recurrent weights in all unrolled steps together


@dataclass(frozen=True)
class _Stack:
    """What the arguments of the ATen op say about the layers."""

    cell: Cell
    params: Sequence[Value]
    has_biases: bool
    num_layers: int
    bidirectional: bool
    batch_first: bool
    projected: bool = False

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def weights(self) -> Iterator[list[Weights]]:
        """Each layer's, one for each direction."""
        left = iter(self.params)
        for _ in range(self.num_layers):
            yield [self._next(left) for _ in range(self.directions)]

    def _next(self, left: Iterator[Value]) -> Weights:
        ih, hh = next(left), next(left)
        b_ih, b_hh = (next(left), next(left)) if self.has_biases else (None, None)
        return Weights(ih, hh, b_ih, b_hh, next(left) if self.projected else None)


@lowers(aten.lstm.input)
def lstm(
    g: Graph,
    x: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Value]:
    """(output, h of the last step, c of the last step)."""
    _require_no_dropout(dropout, train, num_layers)
    projected = hx[0].shape[2] != hx[1].shape[2]
    stack = _Stack(LSTM, params, has_biases, num_layers, bidirectional, batch_first, projected)
    return _run(g, stack, x, hx)


def _single_state(cell: Cell) -> Callable[..., list[Value]]:
    def lowering(
        g: Graph,
        x: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> list[Value]:
        _require_no_dropout(dropout, train, num_layers)
        stack = _Stack(cell, params, has_biases, num_layers, bidirectional, batch_first)
        return _run(g, stack, x, [hx])

    return lowering


lowers.one_to_one(
    {
        aten.gru.input: _single_state(GRU),
        aten.rnn_tanh.input: _single_state(RNN_TANH),
        aten.rnn_relu.input: _single_state(RNN_RELU),
    }
)


def _require_no_dropout(dropout: float, train: bool, num_layers: int) -> None:
    if train and dropout > 0 and num_layers > 1:
        raise UnsupportedCaseError("dropout between recurrent layers is random: call eval() first")


def _run(g: Graph, stack: _Stack, x: Value, hx: Sequence[Value]) -> list[Value]:
    """x [T,B,I] or [B,T,I] and states [layers*directions, B, H] to the op's results."""
    if stack.batch_first:
        x = _swapped(g, x)
    finals: list[list[Value]] = [[] for _ in hx]
    for i, weights in enumerate(stack.weights()):
        first = i * stack.directions
        states = [[_part(g, s, first + d) for s in hx] for d in range(stack.directions)]
        x, last = _layer(g, stack.cell, x, states, weights)
        for d in range(stack.directions):
            for final, s in zip(finals, last[d], strict=True):
                final.append(tfl.expand_dims(g, s, 0))
    if stack.batch_first:
        x = _swapped(g, x)
    return [x, *(tfl.concatenation(g, final, axis=0) for final in finals)]


def _swapped(g: Graph, x: Value) -> Value:
    """The first two axes exchanged; moves nothing where one of them has size 1."""
    if 1 in x.shape[:2]:
        return tfl.reshape(g, x, (x.shape[1], x.shape[0], x.shape[2]))
    return tfl.transpose(g, x, (1, 0, 2))


def _part(g: Graph, x: Value, i: int) -> Value:
    """x[i]."""
    rest = x.shape[1:]
    if x.const is not None:
        key, shape = ("row", i), tuple(int(s) for s in rest)
        return const(x.const.derive(key, lambda a: a[i], shape=shape))
    return tfl.reshape(g, tfl.slice(g, x, [i, 0, 0], (1, *rest)), rest)


def _layer(
    g: Graph,
    cell: Cell,
    x: Value,
    states: Sequence[list[Value]],
    weights: Sequence[Weights],
) -> tuple[Value, list[list[Value]]]:
    """x [T,B,I] to ([T,B,directions*H], the last state of each direction).

    The second direction reads x back to front, so that one loop runs both.
    """
    inputs = [x, tfl.reverse_v2(g, x, [0])] if len(weights) > 1 else [x]
    parts = [cell.input_part(g, x, w) for x, w in zip(inputs, weights, strict=True)]
    per_direction = len(states[0])

    def step(
        body: Graph, slices: loops.Values, state: loops.Values, _fixed: loops.Values
    ) -> tuple[loops.Values, loops.Values]:
        old = _grouped(state, per_direction)
        new = [cell.step(body, *each) for each in zip(slices, old, weights, strict=True)]
        return [s[0] for s in new], [v for s in new for v in s]

    if _is_short(cell, x, weights):
        outputs, last = _one_after_another(g, cell, parts, states, weights)
    else:
        flat = [v for s in states for v in s]
        results = tuple(TensorType(s[0].shape, s[0].dtype) for s in states)
        outputs, ends = loops.scan(g, step, loops.Operands(parts, flat, [], results))
        last = _grouped(ends, per_direction)
    if len(outputs) > 1:
        outputs[1] = tfl.reverse_v2(g, outputs[1], [0])
    return tfl.concatenation(g, outputs, axis=2), last


def _one_after_another(
    g: Graph,
    cell: Cell,
    parts: Sequence[Value],
    states: Sequence[list[Value]],
    weights: Sequence[Weights],
) -> tuple[list[Value], list[list[Value]]]:
    """As the loop; everything keeps a leading axis of 1, so that nothing is reshaped."""
    outputs, last = [], []
    for part, state, w in zip(parts, states, weights, strict=True):
        now = [tfl.expand_dims(g, s, 0) for s in state]
        rows = []
        for i in range(int(part.shape[0])):
            row = tfl.slice(g, part, [i, 0, 0], (1, *part.shape[1:]))
            now = cell.step(g, row, now, w)
            rows.append(now[0])
        outputs.append(tfl.concatenation(g, rows, axis=0))
        last.append([tfl.reshape(g, s, s.shape[1:]) for s in now])
    return outputs, last


def _is_short(cell: Cell, x: Value, weights: Sequence[Weights]) -> bool:
    steps = x.shape[0]
    if not isinstance(steps, int) or steps * cell.step_ops * len(weights) > UNROLLED_OPS:
        return steps == 1
    size = sum(w.hh.const.nbytes for w in weights if w.hh.const is not None)
    return steps == 1 or steps * size <= UNROLLED_BYTES


def _grouped(values: Sequence[Value], size: int) -> list[list[Value]]:
    return [list(values[i : i + size]) for i in range(0, len(values), size)]
