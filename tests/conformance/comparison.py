"""Whether a file's results are eager PyTorch's."""

import math

import numpy as np
import torch

RTOL = ATOL = 1e-4

RELAXED = {
    "matrix_exp": (1e-4, 1e-3, "sums of large terms cancel: four digits of the largest element"),
    "tan": (1e-3, 1e-4, "near its poles, the last bit of XNNPACK's cosine is the fourth digit"),
}
"""Entry: (rtol, atol, reason), where float32 itself does not give four digits."""

UNDEFINED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "resize_", "resize_as_",
}  # fmt: skip
"""Entries whose elements PyTorch leaves undefined: shape and dtype are all there is to compare."""

WHOLE_CHANNELS = {
    "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout.with_train",
}  # fmt: skip
"""Random entries whose elements depend on each other."""

ANY_OF_EQUALS = {"argsort": 1, "kthvalue": 2, "mode": 1, "sort": 1, "topk": 2}
"""Entries that may give the index of any of equal elements, with the position of `dim`."""


def settled(name, call, got, want):
    """`got`, with eager's indices where its own point to equal elements, each at most once."""
    if name not in ANY_OF_EQUALS or call.kwargs.get("stable") or not call.args[0].dim():
        return got
    if got[-1].dtype != np.int64 or got[-1].shape != want[-1].shape or not got[-1].size:
        return got
    at = ANY_OF_EQUALS[name]
    dim = call.kwargs.get("dim", call.args[at] if len(call.args) > at else -1)
    x = as_array(call.args[0])
    ours, eagers = (i if i.ndim == x.ndim else np.expand_dims(i, dim) for i in (got[-1], want[-1]))
    ordered = np.sort(ours, axis=dim)
    distinct = (np.diff(ordered, axis=dim) > 0).all() and ordered.min() >= 0
    if not distinct or ordered.max() >= x.shape[dim]:
        return got
    pointed = (np.take_along_axis(x, i, dim) for i in (ours, eagers))
    return [*got[:-1], want[-1]] if np.array_equal(*pointed) else got


def difference(name, got, want):
    """What differs between two lists of results, or None."""
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        found = _type_difference(g, w) or (None if undefined(name) else _difference(name, g, w))
        if found:
            return f"result {i}: {found}"
    return None


def undefined(name):
    return name in UNDEFINED


def as_array(t):
    """A tensor as numpy holds it; bfloat16 as float32."""
    t = t.detach().resolve_conj().resolve_neg()
    return (t.float() if t.dtype is torch.bfloat16 else t).contiguous().numpy()


def _type_difference(g, w):
    if g.shape != w.shape:
        return f"shape {list(g.shape)}, not {list(w.shape)}"
    if g.dtype != w.dtype:
        return f"dtype {g.dtype}, not {w.dtype}"
    return None


def _difference(name, g, w):
    if w.dtype.kind != "f":
        wrong = int(np.sum(g != w))
        return f"{wrong} of {w.size} {w.dtype} differ{_example(g, w, g != w)}" if wrong else None
    g, w = g.astype(np.float64), w.astype(np.float64)
    rtol, atol, _ = RELAXED.get(name, (RTOL, ATOL, ""))
    close = np.isclose(g, w, rtol=rtol, atol=atol, equal_nan=True)
    return (
        None if close.all() else f"{int(np.sum(~close))} of {w.size} differ{_example(g, w, ~close)}"
    )


def _example(g, w, where):
    at = tuple(int(i) for i in np.argwhere(where)[0])
    return f", at {list(at)} {g[at]!s} not {w[at]!s}"


def distribution_difference(name, got, want):
    """What differs between many runs' results, each a list of arrays for each run, or None.

    The Kolmogorov-Smirnov distance of the pooled elements, which equal distributions exceed once
    in 10^9 times.
    """
    for i, (g, w) in enumerate(zip(zip(*got, strict=True), zip(*want, strict=True), strict=True)):
        found = _type_difference(g[0], w[0])
        if found is None and w[0].size:
            found = _ks_difference(name, np.stack(g), np.stack(w))
        if found:
            return f"result {i}: {found}"
    return None


def _ks_difference(name, g, w):
    runs = len(w)
    independent = runs if name in WHOLE_CHANNELS else w.size
    if all(np.array_equal(g[0], g[k]) for k in range(1, runs)):
        return "every run gives the same values"
    a, b = np.sort(g.astype(np.float64), axis=None), np.sort(w.astype(np.float64), axis=None)
    distance = max(_excess(a, b), _excess(b, a))
    bound = math.sqrt(-math.log(1e-9 / 2) / independent)
    return None if distance <= bound else f"distribution is {distance:.3f} away, bound {bound:.3f}"


def _excess(a, b):
    """How far the share of a below a point exceeds that of b below it, give or take rounding."""
    later = a + ATOL + RTOL * np.abs(a)
    share = np.searchsorted(a, a, "right") / a.size
    return (share - np.searchsorted(b, later, "right") / b.size).max()
