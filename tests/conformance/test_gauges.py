"""The comparison that leaves free what PyTorch leaves free hides nothing else."""

import numpy as np
import pytest

from tests.conformance import gauges


def _orthogonal(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0].astype(np.float32)


def _pairs(vectors):
    return np.stack([vectors.real, vectors.imag], -1).astype(np.float32)


VALUES = np.float32([[1, 2, 2, 5]])
SINGULAR = np.float32([9, 4, 4, 0])
U, V = _orthogonal(6), _orthogonal(4, 1)
TURN = np.eye(4, dtype=np.float32)
TURN[1:3, 1:3] = _orthogonal(2, 2)
TURN[3, 3] = -1
COMPLEX = np.exp(1j * np.arange(9).reshape(3, 3) ** 2)
ROOTS = np.array([1 + 2j, 1 - 2j, 3])
PHASES = np.exp(1j * np.arange(3))
ORDER = [2, 0, 1]


def _svd_results(turn_u, turn_v):
    u = np.concatenate([U[:, :4] @ turn_u, U[:, 4:] @ _orthogonal(2, 3)], 1)
    return [u, SINGULAR, (V @ turn_v).T]


FREE = [
    ("linalg.eigh", [VALUES, (V @ TURN)[None]], [VALUES, V[None]]),
    ("linalg.svd", _svd_results(TURN, TURN), [U, SINGULAR, V.T]),
    ("linalg.svd", _svd_results(TURN, TURN @ np.diag([1, 1, 1, -1])), [U, SINGULAR, V.T]),
    ("svd", [U[:, :4] @ TURN, SINGULAR, V @ TURN], [U[:, :4], SINGULAR, V]),
    ("linalg.eigvals", [_pairs(ROOTS[ORDER])], [_pairs(ROOTS)]),
    (
        "linalg.eig",
        [_pairs(ROOTS[ORDER])[None], _pairs((COMPLEX * PHASES)[:, ORDER])[None]],
        [_pairs(ROOTS)[None], _pairs(COMPLEX)[None]],
    ),
]


def _differs(name, got, want):
    aligned = gauges.aligned(name, got, want)
    return not all(np.allclose(a, w, atol=1e-5) for a, w in zip(aligned, want, strict=True))


@pytest.mark.parametrize(("name", "got", "want"), FREE, ids=[name for name, *_ in FREE])
def test_what_is_free_is_aligned(name, got, want):
    assert any(not np.allclose(g, w, atol=1e-5) for g, w in zip(got, want, strict=True))
    assert not _differs(name, got, want)


@pytest.mark.parametrize(("name", "got", "want"), FREE, ids=[name for name, *_ in FREE])
@pytest.mark.parametrize("scale", [1.01, 0.5])
def test_wrong_values_and_vectors_still_differ(name, got, want, scale):
    for i in range(len(got)):
        assert _differs(name, [g * scale if k == i else g for k, g in enumerate(got)], want)


def test_singular_vectors_that_do_not_belong_together_differ():
    flipped = TURN @ np.diag([-1, 1, 1, 1])
    assert _differs("linalg.svd", _svd_results(TURN, flipped), [U, SINGULAR, V.T])


def test_a_vector_of_another_space_differs():
    swapped = V[:, [1, 0, 2, 3]]
    assert _differs("linalg.eigh", [VALUES, swapped[None]], [VALUES, V[None]])
