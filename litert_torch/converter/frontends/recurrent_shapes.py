"""Shapes of recurrent layers without running them, while torch.export traces.

PyTorch finds them by running every step on fake tensors: half a minute for two layers of 500
steps, and a fixed number of steps. Both go away when the results' shapes are simply said.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten

Kernel = Callable[..., tuple[torch.Tensor, ...]]


def _results(
    x: torch.Tensor, states: list[torch.Tensor], bidirectional: bool
) -> tuple[torch.Tensor, ...]:
    features = states[0].shape[2] * (2 if bidirectional else 1)
    output = x.new_empty((x.shape[0], x.shape[1], features))
    return (output, *(torch.empty_like(s) for s in states))


def _lstm(x: torch.Tensor, hx: list[torch.Tensor], *rest: Any) -> tuple[torch.Tensor, ...]:
    return _results(x, hx, rest[-2])


def _single_state(x: torch.Tensor, hx: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, ...]:
    return _results(x, [hx], rest[-2])


_SHAPES: dict[OpOverload[Any, Any], Kernel] = {
    aten.lstm.input: _lstm,
    aten.gru.input: _single_state,
    aten.rnn_tanh.input: _single_state,
    aten.rnn_relu.input: _single_state,
}


def _on_fake_tensors(shapes: Kernel, original: Kernel) -> Kernel:
    def kernel(*args: Any) -> tuple[torch.Tensor, ...]:
        return shapes(*args) if isinstance(args[0], FakeTensor) else original(*args)

    return kernel


@contextmanager
def recurrent_shapes() -> Iterator[None]:
    """Inside the block, fake recurrent layers give tensors of the right shape at once."""
    saved = {op: dict(op.py_kernels) for op in _SHAPES}
    try:
        for op, shapes in _SHAPES.items():
            for key, original in saved[op].items():
                op.py_kernels[key] = _on_fake_tensors(shapes, original)
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in saved.items():
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()
