"""Systems of equations of symmetric matrices, from the LDL factors of `ldl_factors.py`."""

from dataclasses import dataclass

import numpy as np
import torch

from litert_torch.converter import dims
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.converter.lowerings import loops, lowers
from litert_torch.converter.lowerings.elimination import flat_batch, worked_off
from litert_torch.converter.lowerings.point_sampling import number
from litert_torch.converter.lowerings.rearranging import diagonal, tril
from litert_torch.converter.lowerings.row_exchanges import exchange, rows
from litert_torch.converter.lowerings.views import broadcast

aten = torch.ops.aten

FLOAT32, INT32 = DType.FLOAT32, DType.INT32


@dataclass(frozen=True, eq=False)
class _Blocks:
    """What pivots [B, n] say of D's blocks.

    Attributes:
        is_paired: Whether a row is of a block of two: bool [B, n].
        first: 1 for the first row of such a block, else 0: int32 [B, n].
        second: 1 for the second: int32 [B, n].
        own: Each row's index: int32 [1, n].
    """

    is_paired: Value
    first: Value
    second: Value
    own: Value


@lowers(aten.linalg_ldl_solve.default)
def linalg_ldl_solve(
    g: Graph,
    LD: Value,  # noqa: N803
    pivots: Value,
    B: Value,  # noqa: N803
    *,
    hermitian: bool = False,
) -> Value:
    """x of A x = B, of the packed factors of a symmetric A."""
    lead = dims.broadcast(LD.shape[:-2], B.shape[:-2])
    n = int(LD.shape[-1])
    packed = flat_batch(g, broadcast(g, LD, (*lead, n, n)))
    places = broadcast(g, tfl.reshape(g, pivots, (*pivots.shape, 1)), (*lead, n, 1))
    places = tfl.reshape(g, flat_batch(g, places), packed.shape[:2])
    b = flat_batch(g, broadcast(g, B, (*lead, *B.shape[-2:])))
    blocks = _blocks(g, places)
    reads, columns = _exchanges(g, places, blocks), _columns(g, packed, blocks)
    here = np.eye(n).reshape(n, 1, n, 1)
    steps = loops.Operands([reads, columns, const(here, FLOAT32)], [b], [], ())
    b = _divided(g, worked_off(g, _forward, steps)[1][0], packed, blocks)
    last_first = [tfl.reverse_v2(g, v, [0]) for v in (reads, columns)]
    steps = loops.Operands([*last_first, const(here[::-1], FLOAT32)], [b], [], ())
    x = worked_off(g, _backward, steps)[1][0]
    return tfl.reshape(g, x, (*lead, *B.shape[-2:]))


def _blocks(g: Graph, pivots: Value) -> _Blocks:
    """Negative pivots come in pairs, so the first of each is the one after an even number."""
    is_paired = tfl.less(g, pivots, const(0, INT32))
    paired = tfl.cast(g, is_paired, INT32)
    position = tfl.floor_mod(g, tfl.cumsum(g, paired, 1), const(2, INT32))
    first = tfl.mul(g, paired, position)
    own = const(np.arange(int(pivots.shape[1])).reshape(1, -1), INT32)
    return _Blocks(is_paired, first, tfl.sub(g, paired, first), own)


def _exchanges(g: Graph, pivots: Value, blocks: _Blocks) -> Value:
    """Which rows each step reads: int32 [n, B, n]. The second step of a pair exchanges nothing."""
    n = int(pivots.shape[1])
    size = tfl.maximum(g, pivots, tfl.sub(g, const(0, INT32), pivots))
    is_second = tfl.greater(g, blocks.second, const(0, INT32))
    target = tfl.select_v2(g, is_second, blocks.own, tfl.sub(g, size, const(1, INT32)))
    source = tfl.add(g, blocks.own, blocks.first)
    return tfl.transpose(g, exchange(g, source, target, n), (1, 0, 2))


def _columns(g: Graph, packed: Value, blocks: _Blocks) -> Value:
    """The columns of L below D's blocks: [n, B, n, 1]."""
    batch, n = packed.shape[0], int(packed.shape[1])
    first = tfl.reshape(g, tfl.cast(g, blocks.first, FLOAT32), (batch, 1, n))
    of_block = tfl.mul(g, const(np.eye(n, k=-1), FLOAT32), first)
    below = tfl.mul(g, tril(g, packed, -1), tfl.sub(g, number(1), of_block))
    return tfl.reshape(g, tfl.transpose(g, below, (2, 0, 1)), (n, batch, n, 1))


def _forward(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """Rows exchanged, then row k's multiples off the rows below."""
    (read, column, here), (b,) = xs, state
    b = rows(g, b, read)
    row = tfl.sum(g, tfl.mul(g, b, here), [1], True)
    return [], [tfl.sub(g, b, tfl.mul(g, column, row))]


def _backward(
    g: Graph, xs: loops.Values, state: loops.Values, fixed: loops.Values
) -> tuple[loops.Values, loops.Values]:
    """The transpose of `_forward`."""
    (read, column, here), (b,) = xs, state
    known = tfl.batch_matmul(g, column, b, adj_x=True)
    return [], [rows(g, tfl.sub(g, b, tfl.mul(g, here, known)), read)]


def _divided(g: Graph, b: Value, packed: Value, blocks: _Blocks) -> Value:
    """x of D x = b; in a block of two, scaled by the element off its diagonal."""
    batch, n = packed.shape[0], int(packed.shape[1])
    own = diagonal(g, packed, 0, -2, -1)
    partner = tfl.sub(g, tfl.add(g, blocks.own, blocks.first), blocks.second)
    other = rows(g, own, partner)
    off = rows(g, _below_diagonal(g, packed), tfl.sub(g, blocks.own, blocks.second))
    off = tfl.select_v2(g, blocks.is_paired, off, number(1))

    def column(x: Value) -> Value:
        return tfl.reshape(g, x, (batch, n, 1))

    off_column = column(off)
    own_b, other_b = tfl.div(g, b, off_column), tfl.div(g, rows(g, b, partner), off_column)
    own_d, other_d = (column(tfl.div(g, d, off)) for d in (own, other))
    top = tfl.sub(g, tfl.mul(g, other_d, own_b), other_b)
    of_pair = tfl.div(g, top, tfl.sub(g, tfl.mul(g, own_d, other_d), number(1)))
    of_single = tfl.div(g, b, column(own))
    return tfl.select_v2(g, column(blocks.is_paired), of_pair, of_single)


def _below_diagonal(g: Graph, packed: Value) -> Value:
    """Elements (i + 1, i) of packed [B, n, n], and 0 at the end: [B, n]."""
    if packed.shape[1] == 1:
        return tfl.mul(g, diagonal(g, packed, 0, -2, -1), number(0))
    return tfl.pad(g, diagonal(g, packed, -1, -2, -1), [(0, 0), (0, 1)])
