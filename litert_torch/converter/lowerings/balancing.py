"""Balanced matrices: similar ones whose rows are as long as their columns.

Their eigenvalues are computed as exactly as a matrix of such elements allows, where one of large
and small rows would drown the small ones.
"""

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings.elimination import swapped_axes
from litert_torch.converter.lowerings.iterations import Values, repeated
from litert_torch.converter.lowerings.jacobi import power_of_two
from litert_torch.converter.lowerings.point_sampling import clipped, number

FLOAT32 = DType.FLOAT32

_ROUNDS = 16
_STEP = 16.0  # the most a round scales by


def balanced(g: Graph, a: Value) -> tuple[Value, Value]:
    """B and d with A = diag(d) B diag(1 / d), of matrices [B, n, n]; d is [B, n, 1]."""
    ones = tfl.add(g, tfl.mul(g, tfl.sum(g, a, [2], True), number(0)), number(1))
    if a.shape[1] == 1:
        return a, ones
    scale = power_of_two(g, a)
    a, d = repeated(g, [tfl.div(g, a, scale), ones], _ROUNDS, _balancing_round)
    return tfl.mul(g, a, scale), d


def _balancing_round(g: Graph, state: Values) -> Values:
    """A fourth root: all rows are scaled at once, and half of what each alone would need is enough.

    A row or column that is zero stays.
    """
    a, d = state
    n = int(a.shape[1])
    squares = tfl.square(g, tfl.mul(g, a, const(1 - np.eye(n)[None], FLOAT32)))
    rows = tfl.sqrt(g, tfl.sum(g, squares, [2], True))
    columns = swapped_axes(g, tfl.sqrt(g, tfl.sum(g, squares, [1], True)))
    is_zero = tfl.cast(g, tfl.equal(g, tfl.minimum(g, rows, columns), number(0)), FLOAT32)
    ratio = tfl.div(g, tfl.add(g, rows, is_zero), tfl.add(g, columns, is_zero))
    factor = clipped(g, tfl.sqrt(g, tfl.sqrt(g, ratio)), 1 / _STEP, _STEP)
    has_both = tfl.sub(g, number(1), is_zero)
    factor = tfl.add(g, tfl.mul(g, factor, has_both), is_zero)
    a = tfl.mul(g, tfl.div(g, a, factor), swapped_axes(g, factor))
    return [a, tfl.mul(g, d, factor)]
