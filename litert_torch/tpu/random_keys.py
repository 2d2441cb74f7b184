"""Keys for random ops: an artifact's state holds one, and each random op of a call gets its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch._ops import OpOverload

STATE_NAME = "random_key"
INITIAL = (0, 0)
"""The key data that a fresh artifact starts from."""


class Keys:
    """The keys of one call, all derived from the data of one, uint32[2]."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._taken = 0

    def take(self) -> Any:
        """A key that no other op of this call gets."""
        self._taken += 1
        return jax.random.fold_in(self._key(), self._taken)

    def next_data(self) -> Any:
        """The data of the key that the next call starts from."""
        return jax.random.key_data(jax.random.fold_in(self._key(), 0))

    def _key(self) -> Any:
        return jax.random.wrap_key_data(self._data, impl="threefry2x32")


_current: ContextVar[Keys | None] = ContextVar("keys", default=None)


@contextmanager
def drawn_from(keys: Keys) -> Iterator[None]:
    """Inside the block, `take` takes from `keys`."""
    token = _current.set(keys)
    try:
        yield
    finally:
        _current.reset(token)


def take() -> Any:
    """A jax key for the random op that is being lowered."""
    keys = _current.get()
    return (keys or Keys(jnp.zeros(2, jnp.uint32))).take()


def draws(module: torch.nn.Module) -> bool:
    """Whether the module, or a body of control flow in it, has random ops."""
    graphs = (m.graph for m in module.modules() if isinstance(m, torch.fx.GraphModule))
    return any(_is_random(node.target) for graph in graphs for node in graph.nodes)


def _is_random(op: Any) -> bool:
    return isinstance(op, OpOverload) and torch.Tag.nondeterministic_seeded in op.tags
