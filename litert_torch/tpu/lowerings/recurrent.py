"""LSTM, GRU and RNN: the input's products for all steps at once, then a loop over the steps."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.errors import UnsupportedCaseError
from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.linear import linear
from litert_torch.tpu.lowerings.promotion import Array

aten = torch.ops.aten

State = tuple[Array, ...]


@dataclass(frozen=True)
class Weights:
    """Of one layer in one direction: gates stacked in the first axis, as PyTorch stacks them."""

    ih: Array
    hh: Array
    b_ih: Array | None
    b_hh: Array | None
    projection: Array | None = None


Step = Callable[[Array, State, Weights], State]


def lstm_step(x: Array, state: State, w: Weights) -> State:
    """The gates' input part x [B, 4H] and (h, c) to the next (h, c)."""
    h, c = state
    i, f, g, o = jnp.split(x + linear(h, w.hh, w.b_hh), 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h if w.projection is None else linear(h, w.projection)), c


def gru_step(x: Array, state: State, w: Weights) -> State:
    """The gates' input part x [B, 3H] and (h,) to the next (h,)."""
    (h,) = state
    reset_x, update_x, new_x = jnp.split(x, 3, axis=-1)
    reset_h, update_h, new_h = jnp.split(linear(h, w.hh, w.b_hh), 3, axis=-1)
    update = jax.nn.sigmoid(update_x + update_h)
    new = jnp.tanh(new_x + jax.nn.sigmoid(reset_x + reset_h) * new_h)
    return ((h - new) * update + new,)


def _plain_step(function: Callable[[Array], Array]) -> Step:
    def step(x: Array, state: State, w: Weights) -> State:
        return (function(x + linear(state[0], w.hh, w.b_hh)),)

    return step


tanh_step, relu_step = _plain_step(jnp.tanh), _plain_step(jax.nn.relu)


@dataclass(frozen=True)
class _Stack:
    """What the arguments of the ATen op say about the layers."""

    step: Step
    params: Sequence[Array]
    has_biases: bool
    layers: int
    bidirectional: bool
    batch_first: bool
    projected: bool = False

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def weights(self) -> Iterator[Weights]:
        """Layer by layer, each direction."""
        left = iter(self.params)
        for _ in range(self.layers * self.directions):
            ih, hh = next(left), next(left)
            b_ih, b_hh = (next(left), next(left)) if self.has_biases else (None, None)
            yield Weights(ih, hh, b_ih, b_hh, next(left) if self.projected else None)


def _direction(step: Step, x: Array, start: State, w: Weights, reverse: bool) -> Any:
    """X [T, B, I] to (outputs [T, B, H], the last state)."""
    products = linear(x, w.ih, w.b_ih)

    def body(state: State, part: Array) -> tuple[State, Array]:
        new = step(part, state, w)
        return new, new[0]

    last, outputs = lax.scan(body, start, products, reverse=reverse)
    return outputs, last


def _run(stack: _Stack, x: Array, hx: Sequence[Array]) -> list[Array]:
    """X [T,B,I] or [B,T,I] and states [layers*directions, B, H] to the op's results."""
    x = jnp.swapaxes(x, 0, 1) if stack.batch_first else x
    weights = stack.weights()
    finals: list[State] = []
    for layer in range(stack.layers):
        outputs = []
        for direction in range(stack.directions):
            start = tuple(s[layer * stack.directions + direction] for s in hx)
            y, last = _direction(stack.step, x, start, next(weights), reverse=direction == 1)
            outputs.append(y)
            finals.append(last)
        x = jnp.concatenate(outputs, -1) if len(outputs) > 1 else outputs[0]
    x = jnp.swapaxes(x, 0, 1) if stack.batch_first else x
    return [x, *(jnp.stack(parts) for parts in zip(*finals, strict=True))]


def _require_no_dropout(dropout: float, train: bool, layers: int) -> None:
    if train and dropout > 0 and layers > 1:
        raise UnsupportedCaseError("dropout between recurrent layers is random: call eval() first")


@lowers(aten.lstm.input)
def lstm(
    x: Array,
    hx: Sequence[Array],
    params: Sequence[Array],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[Array]:
    """(output, h of the last step, c of the last step)."""
    _require_no_dropout(dropout, train, num_layers)
    projected = hx[0].shape[2] != hx[1].shape[2]
    stack = _Stack(lstm_step, params, has_biases, num_layers, bidirectional, batch_first, projected)
    return _run(stack, x, hx)


def _single_state(step: Step) -> Callable[..., list[Array]]:
    def lowering(
        x: Array,
        hx: Array,
        params: Sequence[Array],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> list[Array]:
        _require_no_dropout(dropout, train, num_layers)
        stack = _Stack(step, params, has_biases, num_layers, bidirectional, batch_first)
        return _run(stack, x, [hx])

    return lowering


lowers.one_to_one(
    {
        aten.gru.input: _single_state(gru_step),
        aten.rnn_tanh.input: _single_state(tanh_step),
        aten.rnn_relu.input: _single_state(relu_step),
    }
)
