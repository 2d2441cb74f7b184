"""Eigenvalues and eigenvectors of real matrices in general, which are complex."""

from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.complex_values import ComplexValue
from litert_torch.converter.dims import Shape
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import lowers_complex
from litert_torch.converter.lowerings.balancing import balanced
from litert_torch.converter.lowerings.complex_arithmetic import squared_abs
from litert_torch.converter.lowerings.elimination import flat_batch, swapped_axes
from litert_torch.converter.lowerings.iterations import Values, repeated
from litert_torch.converter.lowerings.jacobi import identity
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.schur_form import (
    SchurForm,
    diagonal,
    is_linked,
    schur_form,
    shifted,
    signs,
)
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten

FLOAT32 = DType.FLOAT32

_LARGEST = 128  # rows; the steps of the iteration are some n^2, one after another
_EPSILON = float(np.finfo(np.float32).eps)
_TINY = 1e-30


@lowers_complex(aten.linalg_eig.default)
def linalg_eig(g: Graph, x: Value | ComplexValue) -> list[ComplexValue]:
    """Eigenvalues in no order, and vectors of length 1 whose largest component is positive."""
    flat = _real_matrices(g, x)
    even, sizes = balanced(g, flat)
    form = schur_form(g, even, vectors=True)
    blocks = _blocks(g, form.t)
    vectors = _eigenvectors(g, form, blocks).map(lambda part: tfl.mul(g, part, sizes))
    vectors = _normalized(g, vectors, blocks.values)
    shape = x.shape
    values = _scaled_values(g, form, blocks)
    return [_reshaped(g, values, shape[:-1]), _reshaped(g, vectors, shape)]


@lowers_complex(aten.linalg_eigvals.default, aten._linalg_eigvals.default)
def linalg_eigvals(g: Graph, x: Value | ComplexValue) -> ComplexValue:
    """Eigenvalues in no order."""
    form = schur_form(g, balanced(g, _real_matrices(g, x))[0], vectors=False)
    return _reshaped(g, _scaled_values(g, form, _blocks(g, form.t)), x.shape[:-1])


def _real_matrices(g: Graph, x: Value | ComplexValue) -> Value:
    if isinstance(x, ComplexValue):
        raise UnsupportedCaseError(
            "eigenvalues of a complex matrix; only those of real matrices are computed"
        )
    n = int(x.shape[-1])
    if n > _LARGEST:
        raise UnsupportedCaseError(f"works on a matrix of {n} rows; at most {_LARGEST} make sense")
    return flat_batch(g, x)


def _reshaped(g: Graph, z: ComplexValue, shape: Shape) -> ComplexValue:
    return z.map(lambda part: tfl.reshape(g, part, shape))


def _scaled_values(g: Graph, form: SchurForm, blocks: "_Blocks") -> ComplexValue:
    return blocks.values.map(lambda part: tfl.mul(g, part, form.scale))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The diagonal of Schur's form, block by block; all are columns [B, n, 1].

    Attributes:
        values: Eigenvalues; of a block of two rows, conjugates or two real ones.
        lower: 1 for the second row of a block, else 0.
        head: The first component of the block's eigenvector for its first value, at its second row.
        tail: The second component, which is real.
    """

    values: ComplexValue
    lower: Value
    head: ComplexValue
    tail: Value


def _blocks(g: Graph, t: Value) -> _Blocks:
    """Of [[a, b], [c, d]] the roots of (a - x) (d - x) = b c, and [x - d, c] of length 1."""
    n = int(t.shape[1])
    d = diagonal(g, t)
    lower = is_linked(g, t) if n > 1 else tfl.mul(g, d, number(0))
    if n == 1:
        return _Blocks(ComplexValue(d, lower), lower, ComplexValue(lower, lower), lower)
    c = tfl.sum(g, tfl.mul(g, t, const(np.eye(n, k=-1)[None], FLOAT32)), [2], True)
    b = shifted(g, tfl.sum(g, tfl.mul(g, t, const(np.eye(n, k=1)[None], FLOAT32)), [2], True), 1)
    c, b = tfl.mul(g, c, lower), tfl.mul(g, b, lower)
    half = tfl.mul(g, tfl.mul(g, tfl.sub(g, shifted(g, d, 1), d), number(0.5)), lower)
    cross = tfl.mul(g, b, c)
    inside = tfl.add(g, tfl.square(g, half), cross)
    root = tfl.sqrt(g, tfl.maximum(g, inside, number(0)))
    imag = tfl.sqrt(g, tfl.maximum(g, tfl.neg(g, inside), number(0)))
    is_real = tfl.greater_equal(g, inside, number(0))
    far = tfl.add(g, half, tfl.mul(g, signs(g, half), root))
    is_zero = tfl.cast(g, tfl.equal(g, far, number(0)), FLOAT32)
    near = tfl.neg(g, tfl.div(g, cross, tfl.add(g, far, is_zero)))
    first = tfl.select_v2(g, is_real, far, half)  # less d, as is the next
    second = tfl.select_v2(g, is_real, near, half)
    own = ComplexValue(tfl.add(g, d, tfl.mul(g, second, lower)), tfl.neg(g, imag))
    values = ComplexValue(*(
        _joined(g, lower, part, above)
        for part, above in ((own.real, tfl.add(g, d, first)), (own.imag, imag))
    ))  # fmt: skip
    length = tfl.sqrt(
        g, tfl.add(g, tfl.add(g, tfl.square(g, first), tfl.square(g, imag)), tfl.square(g, c))
    )
    length = tfl.add(g, length, tfl.sub(g, number(1), lower))
    head = ComplexValue(first, imag).map(lambda part: tfl.div(g, part, length))
    return _Blocks(values, lower, head, tfl.div(g, c, length))


def _joined(g: Graph, lower: Value, own: Value, above: Value) -> Value:
    """`own`, but in the first row of a block what `above` has in its second row."""
    upper = shifted(g, lower, -1)
    kept = tfl.mul(g, own, tfl.sub(g, number(1), upper))
    return tfl.add(g, kept, shifted(g, tfl.mul(g, above, lower), -1))


def _eigenvectors(g: Graph, form: SchurForm, blocks: _Blocks) -> ComplexValue:
    q = form.q
    assert q is not None
    turn = _turned_blocks(g, form.t, blocks)
    right = turn.map(lambda part: tfl.batch_matmul(g, form.t, part))
    triangle = ComplexValue(
        tfl.add(g, _inner(g, turn.real, right.real), _inner(g, turn.imag, right.imag)),
        tfl.sub(g, _inner(g, turn.real, right.imag), _inner(g, turn.imag, right.real)),
    )
    basis = turn.map(lambda part: tfl.batch_matmul(g, q, part))
    return _product(g, basis, _triangular_vectors(g, triangle, blocks.values))


def _inner(g: Graph, a: Value, b: Value) -> Value:
    return tfl.batch_matmul(g, a, b, adj_x=True)


def _product(g: Graph, a: ComplexValue, b: ComplexValue) -> ComplexValue:
    """The matrix product."""
    return ComplexValue(
        tfl.sub(g, tfl.batch_matmul(g, a.real, b.real), tfl.batch_matmul(g, a.imag, b.imag)),
        tfl.add(g, tfl.batch_matmul(g, a.real, b.imag), tfl.batch_matmul(g, a.imag, b.real)),
    )


def _turned_blocks(g: Graph, t: Value, blocks: _Blocks) -> ComplexValue:
    """[[head, -tail], [tail, conj(head)]] for each block, 1 for a row that is none: unitary."""
    n = int(t.shape[1])
    head, tail = blocks.head, blocks.tail
    if n == 1:
        unit = identity(g, 1, t)
        return ComplexValue(unit, tfl.mul(g, unit, number(0)))
    below = const(np.eye(n, k=-1)[None], FLOAT32)
    diagonal_mask = const(np.eye(n)[None], FLOAT32)
    single = tfl.sub(g, tfl.sub(g, number(1), blocks.lower), shifted(g, blocks.lower, -1))
    real = tfl.add(g, tfl.add(g, head.real, shifted(g, head.real, -1)), single)
    imag = tfl.sub(g, shifted(g, head.imag, -1), head.imag)
    beside = tfl.mul(g, below, tail)
    full = tfl.add(g, tfl.mul(g, diagonal_mask, real), beside)
    return ComplexValue(tfl.sub(g, full, swapped_axes(g, beside)), tfl.mul(g, diagonal_mask, imag))


def _triangular_vectors(g: Graph, t: ComplexValue, values: ComplexValue) -> ComplexValue:
    """Eigenvectors of upper triangular matrices, as columns: solved row by row from below.

    A column that grows is scaled down, so that those of defective matrices do not overflow.
    """
    n = int(t.shape[1])
    unit = identity(g, n, t.real)
    nothing = tfl.mul(g, unit, number(0))
    if n == 1:
        return ComplexValue(unit, nothing)
    above = const(np.triu(np.ones((1, n, n)), 1), FLOAT32)
    strict = t.map(lambda part: tfl.mul(g, part, above))
    own = (diagonal(g, t.real), diagonal(g, t.imag))
    rows = values.map(lambda part: swapped_axes(g, part))
    gap = ComplexValue(tfl.sub(g, own[0], rows.real), tfl.sub(g, own[1], rows.imag))
    least = _least_gap(g, t)
    size = squared_abs(g, gap)
    is_small = tfl.less(g, size, tfl.square(g, least))
    gap = ComplexValue(
        tfl.select_v2(g, is_small, least, gap.real),
        tfl.mul(g, gap.imag, tfl.cast(g, tfl.logical_not(g, is_small), FLOAT32)),
    )
    size = squared_abs(g, gap)
    inverse = ComplexValue(tfl.neg(g, tfl.div(g, gap.real, size)), tfl.div(g, gap.imag, size)).map(
        lambda part: tfl.mul(g, part, above)
    )
    state = [
        *(const(n - 2, DType.INT32), unit, nothing),
        *(strict.real, strict.imag, inverse.real, inverse.imag),
    ]
    done = repeated(g, state, n - 1, _substitution)
    return ComplexValue(done[1], done[2])


def _least_gap(g: Graph, t: ComplexValue) -> Value:
    largest = tfl.reduce_max(g, tfl.add(g, tfl.abs(g, t.real), tfl.abs(g, t.imag)), [1, 2], True)
    return tfl.maximum(g, tfl.mul(g, largest, number(_EPSILON)), number(1e-15))


def _substitution(g: Graph, state: Values) -> Values:
    """Row i of the vectors from the rows below: minus (row i of T) X, over T[i, i] - value."""
    index, real, imag, *fixed = state
    n = int(real.shape[1])
    batch = real.shape[0]

    def row(x: Value) -> Value:
        return tfl.reshape(g, tfl.gather(g, x, index, axis=1), (batch, 1, n))

    t, inverse = (
        ComplexValue(row(fixed[0]), row(fixed[1])),
        ComplexValue(row(fixed[2]), row(fixed[3])),
    )
    sums = _product(g, t, ComplexValue(real, imag))
    solved = ComplexValue(
        tfl.sub(g, tfl.mul(g, sums.real, inverse.real), tfl.mul(g, sums.imag, inverse.imag)),
        tfl.add(g, tfl.mul(g, sums.real, inverse.imag), tfl.mul(g, sums.imag, inverse.real)),
    )
    place = tfl.reshape(g, tfl.gather(g, const(np.eye(n), FLOAT32), index, axis=0), (1, n, 1))
    growth = tfl.maximum(g, tfl.abs(g, solved.real), tfl.abs(g, solved.imag))
    shrink = tfl.div(g, number(1), tfl.maximum(g, growth, number(1)))
    new = (
        tfl.mul(g, tfl.add(g, old, tfl.mul(g, place, part)), shrink)
        for old, part in ((real, solved.real), (imag, solved.imag))
    )
    return [tfl.sub(g, index, const(1, DType.INT32)), *new, *fixed]


def _normalized(g: Graph, vectors: ComplexValue, values: ComplexValue) -> ComplexValue:
    """Columns of length 1 whose largest component is positive; real ones for real values."""
    n = int(vectors.shape[1])
    squares = squared_abs(g, vectors)
    length = tfl.sqrt(g, tfl.sum(g, squares, [1], True))
    best = tfl.one_hot(g, tfl.arg_max(g, squares, 1), n, dtype=FLOAT32)
    pick = swapped_axes(g, best)
    real, imag = (
        tfl.sum(g, tfl.mul(g, part, pick), [1], True) for part in (vectors.real, vectors.imag)
    )
    size = tfl.sqrt(g, tfl.add(g, tfl.square(g, real), tfl.square(g, imag)))
    scale = tfl.add(g, tfl.mul(g, size, length), number(_TINY))
    phase = ComplexValue(tfl.div(g, real, scale), tfl.neg(g, tfl.div(g, imag, scale)))
    is_complex = tfl.cast(g, tfl.not_equal(g, swapped_axes(g, values.imag), number(0)), FLOAT32)
    return ComplexValue(
        tfl.sub(g, tfl.mul(g, vectors.real, phase.real), tfl.mul(g, vectors.imag, phase.imag)),
        tfl.mul(
            g,
            tfl.add(g, tfl.mul(g, vectors.real, phase.imag), tfl.mul(g, vectors.imag, phase.real)),
            is_complex,
        ),
    )
