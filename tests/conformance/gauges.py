"""Results that are not unique, turned into the one that eager gave before they are compared.

OpInfo itself compares what is left of them without the free part, mostly their absolute values.
Here vectors are turned by the rotation, sign or phase that is free, found from eager's, so that
every element is compared, and that vectors which belong together were turned alike.
"""

import numpy as np

CLOSE = 1e-3
"""Values nearer than that, relative to the largest, share their vectors' space."""

FREE = {
    "linalg.eig": "order of the eigenvalues, and phase of each vector",
    "linalg.eigvals": "order of the eigenvalues",
    "linalg.eigh": "sign of each vector, or rotation of those of equal eigenvalues",
    "linalg.svd": "sign of each pair of vectors, rotation of those of equal singular values",
    "pca_lowrank": "sign of each pair of vectors, which follows from random numbers",
    "svd": "sign of each pair of vectors, rotation of those of equal singular values",
    "svd_lowrank": "sign of each pair of vectors, which follows from random numbers",
}
"""Entry: what PyTorch leaves open. Everything else is compared as it is."""


def aligned(name, got, want):
    """`got` with its free part as in `want`; as it is where shapes differ or it is not finite."""
    if name not in FREE or [g.shape for g in got] != [w.shape for w in want]:
        return got
    if not all(g.size and np.isfinite(g).all() for g in got):
        return got
    return _ALIGNMENTS[name](got, want)


def _eigh(got, want):
    vectors = _by_matrix(_turned_eigenvectors, [*want[:1], got[1], want[1]])
    return [got[0], vectors[0]]


def _turned_eigenvectors(values, ours, eagers):
    turned = np.zeros_like(ours)
    for group in _groups(values):
        turned[:, group] = ours[:, group] @ (ours[:, group].T @ eagers[:, group])
    return (turned,)


def _svd(got, want):
    """Of U, S, V^T."""
    u, vt = _by_matrix(_turned_pairs, [want[1], got[0], want[0], got[2], want[2]])
    return [u, got[1], vt]


def _svd_with_v(got, want):
    """Of U, S, V."""
    u, s, vt = _svd(_with_transposed(got), _with_transposed(want))
    return [u, s, vt.swapaxes(-1, -2)]


def _with_transposed(usv):
    return [usv[0], usv[1], usv[2].swapaxes(-1, -2)]


def _turned_pairs(values, u, eager_u, vt, eager_vt):
    new_u, new_vt = np.zeros_like(u), np.zeros_like(vt)
    for group in _groups(values):
        turn = turn_v = u[:, group].T @ eager_u[:, group]
        if values[group].max() <= CLOSE * values.max():  # of the null space, each for itself
            turn_v = vt[group] @ eager_vt[group].T
        new_u[:, group] = u[:, group] @ turn
        new_vt[group] = turn_v.T @ vt[group]
    beyond = slice(len(values), None)
    new_u[:, beyond] = u[:, beyond] @ (u[:, beyond].T @ eager_u[:, beyond])
    new_vt[beyond] = (eager_vt[beyond] @ vt[beyond].T) @ vt[beyond]
    return new_u, new_vt


def _groups(values):
    """Runs of sorted values that are as good as equal."""
    ends = np.flatnonzero(np.abs(np.diff(values)) > CLOSE * np.abs(values).max()) + 1
    return np.split(np.arange(len(values)), ends)


def _eigvals(got, want):
    return _by_matrix(lambda w, eagers: (w[_order(w, eagers)],), [got[0], want[0]], axes=2)


def _eig(got, want):
    return _by_matrix(_turned_complex_pairs, [got[0], want[0], got[1], want[1]], axes=(2, 2, 3, 3))


def _turned_complex_pairs(values, eager_values, vectors, eagers):
    order = _order(values, eager_values)
    v, w = ((x[..., 0] + 1j * x[..., 1]) for x in (vectors[:, order], eagers))
    phases = (v.conj() * w).sum(0)
    v = v * (phases / np.abs(phases))
    return values[order], np.stack([v.real, v.imag], -1).astype(vectors.dtype)


def _order(values, eagers):
    """Which of our values is nearest to each of eager's, each taken once."""
    distances = np.linalg.norm(values[None] - eagers[:, None], axis=-1)
    order = np.zeros(len(values), int)
    for _ in values:
        i, j = np.unravel_index(np.argmin(distances), distances.shape)
        order[i], distances[i], distances[:, j] = j, np.inf, np.inf
    return order


def _by_matrix(function, arrays, axes=None):
    """The results of `function` for each matrix of a batch; `axes` of each array are a matrix's."""
    if axes is None:
        axes = [a.ndim - arrays[0].ndim + 1 for a in arrays]  # of values and matrices
    elif isinstance(axes, int):
        axes = [axes] * len(arrays)
    batch = arrays[0].shape[: arrays[0].ndim - axes[0]]
    flat = [a.reshape(-1, *a.shape[a.ndim - k :]) for a, k in zip(arrays, axes, strict=True)]
    results = zip(*(function(*parts) for parts in zip(*flat, strict=True)), strict=True)
    return [np.stack(r).reshape(*batch, *r[0].shape) for r in results]


_ALIGNMENTS = {
    "linalg.eig": _eig,
    "linalg.eigvals": _eigvals,
    "linalg.eigh": _eigh,
    "linalg.svd": _svd,
    "pca_lowrank": _svd_with_v,
    "svd": _svd_with_v,
    "svd_lowrank": _svd_with_v,
}
