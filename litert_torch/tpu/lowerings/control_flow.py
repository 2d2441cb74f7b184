"""Branches and loops; their bodies are functions of arrays that give lists of arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch
from jax import lax

from litert_torch.tpu.lowerings import lowers
from litert_torch.tpu.lowerings.promotion import Array

ops = torch.ops.higher_order

Body = Callable[..., list[Any]]


def _arrays(values: Sequence[Any]) -> tuple[Array, ...]:
    return tuple(jnp.asarray(v) for v in values)


@lowers(ops.cond)
def cond(pred: Any, true_fn: Body, false_fn: Body, operands: Sequence[Any] = ()) -> list[Any]:
    """What one of two bodies gives."""
    if isinstance(pred, bool):
        return (true_fn if pred else false_fn)(*operands)
    condition = jnp.asarray(pred).reshape(()) != 0
    branches = [lambda *a, f=f: _arrays(f(*a)) for f in (true_fn, false_fn)]
    return list(lax.cond(condition, *branches, *operands))


@lowers(ops.while_loop)
def while_loop(
    cond_fn: Body, body_fn: Body, carried: Sequence[Any], fixed: Sequence[Any] = ()
) -> list[Any]:
    """The carried values after the body ran while the condition held."""
    start = _arrays(carried)

    def goes_on(state: tuple[Array, ...]) -> Array:
        return jnp.asarray(cond_fn(*state, *fixed)[0]).reshape(()) != 0

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        results = _arrays(body_fn(*state, *fixed))
        return tuple(r.astype(s.dtype) for r, s in zip(results, state, strict=True))

    return list(lax.while_loop(goes_on, step, start))


@lowers(ops.scan)
def scan(
    combine_fn: Body, init: Sequence[Any], xs: Sequence[Any], additional_inputs: Sequence[Any] = ()
) -> list[Any]:
    """The carried values after all steps over the first axis of xs, then each step's results."""
    start = _arrays(init)

    def step(state: Any, slices: Any) -> Any:
        results = _arrays(combine_fn(*state, *slices, *additional_inputs))
        return results[: len(start)], results[len(start) :]

    last, each = lax.scan(step, start, _arrays(xs))
    return [*last, *each]


@lowers(ops.map_impl)
def map_impl(f: Body, xs: Sequence[Any], fixed: Sequence[Any] = ()) -> list[Any]:
    """The body's results for each part along the first axis of xs."""
    _, each = lax.scan(lambda _, slices: (0, _arrays(f(*slices, *fixed))), 0, _arrays(xs))
    return list(each)


@lowers(ops.associative_scan)
def associative_scan(
    combine_fn: Body, xs: Sequence[Any], additional_inputs: Sequence[Any] = ()
) -> list[Any]:
    """Running results of a body that joins two, along the first axis of xs."""

    def joined(a: Any, b: Any) -> Any:
        one = jax.vmap(lambda *both: _arrays(combine_fn(*both, *additional_inputs)))
        return one(*a, *b)

    return list(lax.associative_scan(joined, _arrays(xs), axis=0))
