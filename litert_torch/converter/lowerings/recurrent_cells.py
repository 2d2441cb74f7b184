"""One step of each recurrent cell, and the ATen cell ops, which are one step.

The product with the input is not part of a step: it is done for all steps at once.
Formulas and the order of gates are those of torch.nn.LSTM, GRU and RNN.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

State = list[Value]


@dataclass(frozen=True)
class Weights:
    """One direction of one layer, with G gates stacked: G is 4, 3 or 1.

    Attributes:
        ih: [G*H, input size].
        hh: [G*H, size of h].
        b_ih: [G*H] or None.
        b_hh: [G*H] or None.
        hr: LSTM's projection of h, [projected size, H], or None.
    """

    ih: Value
    hh: Value
    b_ih: Value | None = None
    b_hh: Value | None = None
    hr: Value | None = None

    def __post_init__(self) -> None:
        if any(w is not None and w.const is None for w in vars(self).values()):
            raise UnsupportedCaseError("a recurrent layer's weights must be constants")


@dataclass(frozen=True)
class Cell:
    """A kind of recurrent layer.

    Attributes:
        step: (graph, input's part of the gates [..., B, G*H], state [..., B, H], weights) to the
            new state; its first tensor is what the layer returns.
        sums_biases: Whether both biases are only ever added, hence can be one.
        step_ops: Number of ops that a step takes.
    """

    step: Callable[[Graph, Value, State, Weights], State]
    sums_biases: bool
    step_ops: int

    def input_part(self, g: Graph, x: Value, w: Weights) -> Value:
        """The input's part of all gates, [..., G*H] for x [..., input size]."""
        bias = w.b_ih
        if self.sums_biases and w.b_ih is not None and w.b_hh is not None:
            bias = _sum(w.b_ih, w.b_hh)
        return tfl.fully_connected(g, x, w.ih, bias)


def _sum(a: Value, b: Value) -> Value:
    if a.const is None or b.const is None:
        raise UnsupportedCaseError("a recurrent layer's weights must be constants")
    return const(a.const.derive("add", np.add, b.const))


def _with_hidden_part(g: Graph, x: Value, h: Value, w: Weights) -> Value:
    """The gates: the input's part x plus that of h, which is nothing for the usual first state."""
    if h.const is not None and not h.read().any():
        return x
    return tfl.add(g, x, tfl.fully_connected(g, h, w.hh, None))


def _lstm_step(g: Graph, x: Value, state: State, w: Weights) -> State:
    h, c = state
    gates = _with_hidden_part(g, x, h, w)
    i, f, candidate, o = tfl.split(g, gates, 4, axis=gates.rank - 1)
    kept = tfl.mul(g, tfl.logistic(g, f), c)
    added = tfl.mul(g, tfl.logistic(g, i), tfl.tanh(g, candidate))
    c = tfl.add(g, kept, added)
    h = tfl.mul(g, tfl.logistic(g, o), tfl.tanh(g, c))
    return [h if w.hr is None else tfl.fully_connected(g, h, w.hr, None), c]


def _gru_step(g: Graph, x: Value, state: State, w: Weights) -> State:
    (h,) = state
    hidden = tfl.fully_connected(g, h, w.hh, w.b_hh)
    x_r, x_z, x_n = tfl.split(g, x, 3, axis=x.rank - 1)
    h_r, h_z, h_n = tfl.split(g, hidden, 3, axis=x.rank - 1)
    r = tfl.logistic(g, tfl.add(g, x_r, h_r))
    z = tfl.logistic(g, tfl.add(g, x_z, h_z))
    n = tfl.tanh(g, tfl.add(g, x_n, tfl.mul(g, r, h_n)))
    return [tfl.add(g, n, tfl.mul(g, z, tfl.sub(g, h, n)))]


def _rnn_step(activation: Callable[[Graph, Value], Value]) -> Callable[..., State]:
    def step(g: Graph, x: Value, state: State, w: Weights) -> State:
        return [activation(g, _with_hidden_part(g, x, state[0], w))]

    return step


LSTM = Cell(_lstm_step, sums_biases=True, step_ops=12)
GRU = Cell(_gru_step, sums_biases=False, step_ops=13)
RNN_TANH = Cell(_rnn_step(tfl.tanh), sums_biases=True, step_ops=4)
RNN_RELU = Cell(_rnn_step(tfl.relu), sums_biases=True, step_ops=4)


def _one_step(g: Graph, cell: Cell, x: Value, state: Sequence[Value], *weights: Any) -> State:
    w = Weights(*weights)
    return cell.step(g, cell.input_part(g, x, w), list(state), w)


@lowers(aten.lstm_cell.default)
def lstm_cell(
    g: Graph,
    x: Value,
    hx: Sequence[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> list[Value]:
    """(h, c) after one step; x [B, input size], hx ([B, H], [B, H])."""
    return _one_step(g, LSTM, x, hx, w_ih, w_hh, b_ih, b_hh)


def _single_state_cell(cell: Cell) -> Callable[..., Value]:
    def lowering(
        g: Graph,
        x: Value,
        hx: Value,
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> Value:
        return _one_step(g, cell, x, [hx], w_ih, w_hh, b_ih, b_hh)[0]

    return lowering


lowers.one_to_one(
    {
        aten.gru_cell.default: _single_state_cell(GRU),
        aten.rnn_tanh_cell.default: _single_state_cell(RNN_TANH),
        aten.rnn_relu_cell.default: _single_state_cell(RNN_RELU),
    }
)
