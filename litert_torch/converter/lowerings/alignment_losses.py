"""Connectionist temporal classification: the loss over all alignments of a label sequence."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.elementwise import f32
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

_NONE, _MEAN = 0, 1
_NEVER = -1e30  # the logarithm of no chance: finite, so that differences of two are numbers
_UNLIKELY = -1e29  # below: no alignment exists


@lowers(aten.ctc_loss.IntList)
def ctc_loss(
    g: Graph,
    log_probs: Value,
    targets: Value,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Value:
    """As `ctc_loss_of_tensors`, with lengths known at conversion time."""
    steps, labels = (const(list(n), DType.INT32) for n in (input_lengths, target_lengths))
    return _loss(g, log_probs, targets, steps, labels, (blank, reduction, zero_infinity))


@lowers(aten.ctc_loss.Tensor)
def ctc_loss_of_tensors(
    g: Graph,
    log_probs: Value,
    targets: Value,
    input_lengths: Value,
    target_lengths: Value,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Value:
    """Of log_probs [T, N, C], targets [N, S] and the lengths of both [N]."""
    steps, labels = (tfl.cast(g, n, DType.INT32) for n in (input_lengths, target_lengths))
    return _loss(g, log_probs, targets, steps, labels, (blank, reduction, zero_infinity))


def _loss(
    g: Graph, log_probs: Value, targets: Value, steps: Value, labels: Value, how: Any
) -> Value:
    blank, reduction, zero_infinity = how
    if log_probs.rank != 3 or targets.rank != 2 or 0 in log_probs.shape or 0 in targets.shape:
        raise UnsupportedCaseError("ctc_loss needs log_probs [T, N, C] and padded targets [N, S]")
    time, batch, _ = dims.static(log_probs.shape)
    path, may_skip = _path(g, tfl.cast(g, targets, DType.INT32), blank)
    places = int(path.shape[1])
    index = tfl.broadcast_to(g, tfl.reshape(g, path, (1, batch, places)), (time, batch, places))
    chances = tfl.gather(g, log_probs, index, axis=2, batch_dims=2)  # [T, N, 2 S + 1]
    start = const(np.where(np.arange(places) < 2, 0.0, _NEVER)[None], DType.FLOAT32)
    alpha = tfl.maximum(g, tfl.add(g, _row(g, chances), start), f32(_NEVER))

    def step(
        body: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
    ) -> tuple[loops.Values, loops.Values]:
        (chance, now), (alpha,), (may_skip, steps) = xs, state, fixed
        total = _log_sum(
            body, [alpha, _moved(body, alpha, 1), tfl.add(body, _moved(body, alpha, 2), may_skip)]
        )
        new = tfl.maximum(body, tfl.add(body, total, chance), f32(_NEVER))
        is_over = tfl.greater_equal(body, now, tfl.reshape(body, steps, (batch, 1)))
        return [], [tfl.select_v2(body, is_over, alpha, new)]

    if time > 1:
        rest = tfl.slice(g, chances, [1, 0, 0], (time - 1, batch, places))
        when = const(np.arange(1, time), DType.INT32)
        operands = loops.Operands([rest, when], [alpha], [may_skip, steps], ())
        _, (alpha,) = loops.scan(g, step, operands)
    loss = _at_ends(g, alpha, labels, steps)
    impossible = tfl.greater(g, loss, f32(-_UNLIKELY))
    loss = tfl.select_v2(g, impossible, f32(0.0 if zero_infinity else math.inf), loss)
    if reduction == _NONE:
        return loss
    if reduction == _MEAN:
        count = tfl.maximum(g, tfl.cast(g, labels, DType.FLOAT32), f32(1.0))
        return tfl.mean(g, tfl.div(g, loss, count), [0], False)
    return tfl.sum(g, loss, [0], False)


def _path(g: Graph, targets: Value, blank: int) -> tuple[Value, Value]:
    """Labels between blanks, int32 [N, 2 S + 1], and 0 where a blank may be skipped, else never."""
    batch, count = dims.static(targets.shape)
    column = tfl.reshape(g, targets, (batch, count, 1))
    blanks = tfl.broadcast_to(g, const(blank, DType.INT32), (batch, count, 1))
    pairs = tfl.reshape(g, tfl.concatenation(g, [blanks, column], axis=2), (batch, 2 * count))
    last = tfl.broadcast_to(g, const(blank, DType.INT32), (batch, 1))
    path = tfl.concatenation(g, [pairs, last], axis=1)
    before = tfl.slice(g, tfl.pad(g, path, [(0, 0), (2, 0)], -1), [0, 0], path.shape)
    is_label = const(np.arange(2 * count + 1) % 2 == 1, DType.BOOL)
    differs = tfl.logical_and(g, tfl.not_equal(g, path, before), is_label)
    return path, tfl.select_v2(g, differs, f32(0.0), f32(_NEVER))


def _row(g: Graph, x: Value) -> Value:
    return tfl.reshape(g, tfl.slice(g, x, [0, 0, 0], (1, *x.shape[1:])), x.shape[1:])


def _moved(g: Graph, alpha: Value, by: int) -> Value:
    """Alpha of `by` places before."""
    return tfl.slice(g, tfl.pad(g, alpha, [(0, 0), (by, 0)], _NEVER), [0, 0], alpha.shape)


def _log_sum(g: Graph, terms: Sequence[Value]) -> Value:
    """log(sum(exp)) of a few tensors."""
    largest = terms[0]
    for term in terms[1:]:
        largest = tfl.maximum(g, largest, term)
    total = None
    for term in terms:
        share = tfl.exp(g, tfl.sub(g, term, largest))
        total = share if total is None else tfl.add(g, total, share)
    assert total is not None
    return tfl.add(g, largest, tfl.log(g, total))


def _at_ends(g: Graph, alpha: Value, labels: Value, steps: Value) -> Value:
    """Minus the logarithm of the chance to be at the last label or the blank after it."""
    batch = int(alpha.shape[0])
    end = tfl.reshape(g, tfl.mul(g, labels, const(2, DType.INT32)), (batch, 1))
    before = tfl.maximum(g, tfl.sub(g, end, const(1, DType.INT32)), const(0, DType.INT32))
    last, label = (tfl.gather(g, alpha, at, axis=1, batch_dims=1) for at in (end, before))
    has_label = tfl.greater(g, end, const(0, DType.INT32))
    label = tfl.select_v2(g, has_label, label, f32(_NEVER))
    loss = tfl.reshape(g, tfl.neg(g, _log_sum(g, [last, label])), (batch,))
    lasts = tfl.greater(g, steps, const(0, DType.INT32))
    return tfl.select_v2(g, lasts, loss, f32(-_NEVER))
