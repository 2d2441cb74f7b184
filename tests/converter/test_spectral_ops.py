"""Eigenvalues and singular values: against numpy in float64, and by what the vectors are for."""

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch.converter.lowerings.jacobi import next_places
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import (
    assert_matches_torch,
    f32,
    graph_of,
    in_numpy,
    lowered_alone,
    op_case,
    run,
)

aten = torch.ops.aten

RELATIVE = 1e-5  # of a matrix's norm: what is asked of every result


def _basis(n):
    return torch.linalg.qr(f32(n, n))[0]


def _symmetric(*shape):
    return f32(*shape) + f32(*shape).mT


def _with_values(*values):
    q = _basis(len(values))
    return (q * torch.tensor(values)) @ q.mT


def _of_rank(r, m, n):
    return f32(m, r) @ f32(r, n)


SYMMETRIC = {
    "one row": f32(3, 1, 1),
    "two rows": _symmetric(2, 2, 2),
    "three": _symmetric(3, 1, 3, 3),
    "seven": _symmetric(2, 7, 7),
    "eight": _symmetric(8, 8),
    "thirty-three": _symmetric(33, 33),
    "zero": torch.zeros(2, 4, 4),
    "unit": torch.eye(5),
    "ones": torch.ones(9, 9),
    "both signs": torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
    "repeated": _with_values(1.0, 1.0, 1.0, 2.0, 2.0, -3.0, -3.0, 0.0),
    "close": _with_values(*(1 + 1e-6 * i for i in range(9)), 0.0, 1e-6),
    "graded": _with_values(*(10.0**-i for i in range(10))),
    "huge": _symmetric(5, 5) * 1e30,
    "minute": _symmetric(5, 5) * 1e-25,
    "unlike matrices": torch.stack([torch.zeros(6, 6), torch.eye(6), _symmetric(6, 6)]),
}

RECTANGULAR = {
    "one element": f32(2, 1, 1),
    "one row": f32(1, 4),
    "one column": f32(2, 4, 1),
    "tall": f32(2, 5, 3),
    "wide": f32(3, 1, 3, 5),
    "square": f32(7, 7),
    "larger": f32(40, 17),
    "zero": torch.zeros(5, 3),
    "ones": torch.ones(6, 9),
    "unit": torch.eye(4),
    "orthogonal": _basis(8),
    "deficient": _of_rank(2, 7, 7),
    "deficient and tall": _of_rank(1, 20, 3),
    "deficient and wide": _of_rank(3, 6, 20),
    "repeated": SYMMETRIC["repeated"],
    "graded": SYMMETRIC["graded"],
    "huge": f32(5, 4) * 1e30,
    "minute": f32(4, 5) * 1e-25,
    "unlike matrices": torch.stack([_of_rank(2, 6, 4), f32(6, 4), torch.zeros(6, 4)]),
}

GENERAL = {
    "one row": f32(2, 1, 1),
    "two rows, real": torch.tensor([[[2.0, 1.0], [3.0, -1.0]], [[1.0, 5.0], [0.0, 2.0]]]),
    "two rows, complex": torch.tensor([[1.0, -2.0], [3.0, 1.0]]),
    "three": f32(3, 1, 3, 3),
    "seven": f32(2, 7, 7),
    "sixteen": f32(16, 16),
    "zero": torch.zeros(4, 4),
    "unit": torch.eye(4),
    "cyclic": torch.eye(6).roll(1, 0),  # its shifts are of no use
    "symmetric": SYMMETRIC["repeated"],
    "triangular": f32(6, 6).triu(),
    "defective": torch.tensor([[2.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]),
    "nilpotent": torch.diag(torch.ones(6), -1),
    "unbalanced": f32(5, 5) * 10.0 ** (torch.arange(5)[:, None] - torch.arange(5)),
    "huge": f32(5, 5) * 1e30,
    "minute": f32(5, 5) * 1e-25,
    "unlike matrices": torch.stack([torch.zeros(6, 6), f32(6, 6), torch.eye(6).roll(1, 0)]),
}


def _results(op, *args):
    case = op_case(op, *args)
    return run(lowered_alone(case), *case.tensors)


def _norm(a):
    return np.linalg.norm(a, ord=2, axis=(-2, -1)).max() + 1e-37


def _assert_orthonormal_columns(x):
    gram = x.swapaxes(-1, -2) @ x
    np.testing.assert_allclose(
        gram, np.broadcast_to(np.eye(x.shape[-1]), gram.shape), atol=RELATIVE
    )


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("kind", SYMMETRIC)
def test_symmetric_eigenvectors(kind, uplo):
    a = SYMMETRIC[kind]
    noise = torch.triu(torch.ones_like(a), 1)  # in the triangle that is not read
    values, vectors = _results(
        aten._linalg_eigh.default, a + (noise if uplo == "L" else noise.mT), uplo
    )
    a = a.double().numpy()
    assert (values.shape, vectors.shape) == (a.shape[:-1], a.shape)
    atol = RELATIVE * _norm(a)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=atol, rtol=0)
    vectors = vectors.astype(np.float64)
    _assert_orthonormal_columns(vectors)
    np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=atol, rtol=0)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", RECTANGULAR)
def test_singular_vectors(kind, full):
    a = RECTANGULAR[kind]
    u, s, vh = (x.astype(np.float64) for x in _results(aten._linalg_svd.default, a, full))
    want = torch.linalg.svd(a, full_matrices=full)
    assert [x.shape for x in (u, s, vh)] == [x.shape for x in want]
    a = a.double().numpy()
    atol = RELATIVE * _norm(a)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=atol, rtol=0)
    _assert_orthonormal_columns(u)
    _assert_orthonormal_columns(vh.swapaxes(-1, -2))
    k = s.shape[-1]
    back = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    np.testing.assert_allclose(back, a, atol=atol, rtol=0)


def test_small_singular_values_are_exact():
    sizes = torch.tensor([1.0, 1e-3, 1e-6, 1e-9])
    a = f32(6, 4) * sizes
    (s,) = _results(aten._linalg_svd.default, a, False)[1:2]
    want = np.linalg.svd(a.double().numpy(), compute_uv=False)
    np.testing.assert_allclose(s, want, rtol=1e-5)


@pytest.mark.parametrize("kind", GENERAL)
def test_general_eigenvectors(kind):
    a = GENERAL[kind]
    case = op_case(aten.linalg_eig.default, a)
    values, vectors = (_complex(x) for x in run(lowered_alone(case), *case.tensors))
    alone = _complex(_results(aten.linalg_eigvals.default, a)[0])
    a = a.double().numpy()
    assert (values.shape, vectors.shape) == (a.shape[:-1], a.shape)
    np.testing.assert_array_equal(alone, values)
    atol = RELATIVE * _norm(a)
    np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=atol, rtol=0)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), np.ones(a.shape[:-1]), rtol=1e-5)
    for ours, wanted in zip(_as_rows(values), _as_rows(np.linalg.eigvals(a)), strict=True):
        distances = np.abs(ours[:, None] - wanted)
        assert max(distances.min(0).max(), distances.min(1).max()) <= atol
        assert ours.sum().imag == pytest.approx(0, abs=atol)


def _complex(x):
    return x[..., 0].astype(np.float64) + 1j * x[..., 1].astype(np.float64)


def _as_rows(x):
    return x.reshape(-1, x.shape[-1])


def test_eigenvalues_of_real_matrices_come_in_exact_conjugates():
    values = _complex(_results(aten.linalg_eigvals.default, f32(9, 9))[0])
    pairs = values[values.imag != 0]
    assert len(pairs)
    assert sorted(pairs, key=str) == sorted(pairs.conj(), key=str)


@pytest.mark.parametrize(
    "op", [aten._linalg_eigh.default, aten._linalg_svd.default, aten.linalg_eig.default], ids=str
)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_matrix_that_is_not_finite_does_not_harm_its_neighbour(op, bad):
    good, other = _symmetric(2, 6, 6)
    content = lowered_alone(op_case(op, torch.stack([good, other])))
    other = other.clone()
    other[3, 3] = bad
    alone = run(content, torch.stack([good, torch.zeros(6, 6)]))
    for result, want in zip(run(content, torch.stack([good, other])), alone, strict=True):
        np.testing.assert_allclose(result[0], want[0], atol=1e-5)
        assert not np.isfinite(result[1]).any()


def _definite(*shape):
    return f32(*shape) @ f32(*shape).mT + torch.eye(shape[-1])


_TALL, _FLAT = f32(2, 5, 3), _of_rank(2, 6, 4)

UNIQUE = [
    op_case(aten._linalg_svd.default, f32(2, 3, 5), False, False),
    op_case(aten._linalg_eigh.default, _symmetric(3, 4, 4), "L", False),
    op_case(aten.linalg_matrix_sqrth.default, _definite(2, 5, 5)),
    op_case(aten.linalg_matrix_sqrth.default, _definite(1, 1)),
    op_case(aten.linalg_polar.default, _TALL),
    op_case(aten.linalg_polar.default, f32(1, 1, 2, 2)),
    op_case(aten.linalg_polar.default, f32(3, 1)),
    op_case(aten.linalg_pinv.atol_rtol_tensor, _TALL),
    op_case(aten.linalg_pinv.atol_rtol_tensor, f32(1, 2, 3, 5)),
    op_case(aten.linalg_pinv.atol_rtol_tensor, torch.zeros(2, 3)),
    op_case(aten.linalg_pinv.atol_rtol_tensor, _FLAT),
    op_case(aten.linalg_pinv.atol_rtol_tensor, _TALL, atol=torch.tensor(1.5)),
    op_case(aten.linalg_pinv.atol_rtol_tensor, _TALL, atol=torch.tensor([0.0, 1.5])),
    op_case(aten.linalg_pinv.atol_rtol_tensor, _TALL, rtol=torch.tensor(0.5)),
    op_case(
        aten.linalg_pinv.atol_rtol_tensor,
        torch.diag(torch.tensor([1.0, 1e-12])),
        rtol=torch.tensor(1e-15),
    ),
    op_case(aten.linalg_pinv.atol_rtol_tensor, _symmetric(2, 5, 5), hermitian=True),
    op_case(
        aten.linalg_pinv.atol_rtol_tensor,
        _with_values(3.0, -2.0, 1e-8, 0.0),
        hermitian=True,
    ),
]


@pytest.mark.parametrize("case", UNIQUE, ids=str)
def test_values(case):
    assert_matches_torch(case, rtol=1e-4, atol=2e-5)


class Spectra(torch.nn.Module):
    """What PyTorch makes of the decompositions above."""

    def forward(self, a, b):
        u, s, v = torch.svd(a)
        values, vectors = torch.linalg.eigh(b)
        roots = torch.linalg.eigvals(a[:, :3])
        return (
            (u * s[:, None]) @ v.mT,
            torch.linalg.svdvals(a),
            torch.linalg.pinv(a, rtol=0.1),
            torch.pinverse(a),
            torch.linalg.pinv(b, hermitian=True),
            torch.linalg.matrix_rank(a),
            torch.linalg.matrix_rank(b, hermitian=True),
            torch.linalg.cond(b),
            *(torch.linalg.matrix_norm(a, p) for p in (2, -2, "nuc")),
            torch.linalg.eigvalsh(b),
            (vectors * values[:, None]) @ vectors.mT,
            torch.view_as_real(roots.sum(-1)),
            roots.abs().sort(-1).values,
        )


def test_through_torch_export():
    args = (f32(2, 4, 3), _symmetric(2, 3, 3))
    got = litert_torch.convert(Spectra().eval(), args)(*(a.numpy() for a in args))
    for g, w in zip(got, Spectra()(*args), strict=True):
        np.testing.assert_allclose(g, in_numpy(w), rtol=1e-3, atol=1e-4)


class Rotations(torch.nn.Module):
    """The rotation nearest to each matrix, as Kabsch's algorithm has it."""

    def forward(self, x):
        u, _, vh = torch.linalg.svd(x)
        return u @ vh, torch.linalg.eigvalsh(x.mT @ x)


def test_dynamic_batch():
    sizes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    model = litert_torch.convert(Rotations().eval(), (f32(2, 3, 3),), dynamic_shapes=sizes)
    for count in (2, 5):
        for g, w in zip(
            model(f32(count, 3, 3).numpy()), Rotations()(f32(count, 3, 3)), strict=True
        ):
            np.testing.assert_allclose(g, w.numpy(), rtol=1e-4, atol=1e-5)


def _ops(graph):
    return sum(len(g.ops) for g in [graph, *graph.subgraphs()])


@pytest.mark.parametrize(
    "op", [aten._linalg_eigh.default, aten._linalg_svd.default, aten.linalg_eig.default], ids=str
)
def test_as_many_ops_for_any_size(op):
    assert _ops(graph_of(op_case(op, f32(5, 5)))) == _ops(graph_of(op_case(op, f32(33, 33))))


@pytest.mark.parametrize("n", range(2, 12))
def test_all_rows_meet_in_a_sweep(n):
    half, rows, met = n // 2, list(range(n)), set()
    for _ in range(n - 1 + n % 2):
        met |= {frozenset((rows[i], rows[i + half])) for i in range(half)}
        rows = [rows[i] for i in next_places(n)]
    assert len(met) == n * (n - 1) // 2
    assert rows == list(range(n))


TOO_LARGE = [
    op_case(aten._linalg_eigh.default, torch.eye(300)),
    op_case(aten._linalg_svd.default, torch.ones(260, 300)),
    op_case(aten.linalg_polar.default, torch.eye(300)),
    op_case(aten.linalg_pinv.atol_rtol_tensor, torch.eye(300)),
    op_case(aten.linalg_eig.default, torch.eye(300)),
]


@pytest.mark.parametrize("case", TOO_LARGE, ids=str)
def test_large_matrices_are_refused(case):
    with pytest.raises(UnsupportedCaseError, match="at most"):
        graph_of(case)


def test_complex_matrices_are_refused():
    with pytest.raises(UnsupportedCaseError, match="complex"):
        graph_of(op_case(aten.linalg_eig.default, torch.eye(3) * 1j))
