"""Grouped-query attention without repeated keys and values."""

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Op, Value
from litert_torch.converter.passes import Sweep
from litert_torch.converter.passes.transposes import operand


def share_repeated_heads(s: Sweep, op: Op) -> Value | None:
    """Queries of the heads that share a key are rows of one product with it.

    before: batch_matmul(q [B,K*R,S,D], repeat(k [B,K,T,D], R), adj_y=True)
    after:  reshape(batch_matmul(reshape(q, [B,K,R*S,D]), k, adj_y=True), [B,K*R,S,T])
    """
    if op.kind != "BATCH_MATMUL" or op.attrs["adjX"]:
        return None
    x, y = op.inputs
    shared = _before_repeat(y) if y is not None and y.rank == 4 else None
    if x is None or y is None or shared is None or x.rank != 4 or x.shape[:2] != y.shape[:2]:
        return None
    batch, heads, rows, width = x.shape
    groups, heads = int(shared.shape[1]), int(heads)
    grouped = tfl.reshape(s.graph, x, (batch, groups, heads // groups * rows, width))
    product = tfl.batch_matmul(s.graph, grouped, shared, adj_y=op.attrs["adjY"])
    return tfl.reshape(s.graph, product, op.output.shape)


def _before_repeat(y: Value) -> Value | None:
    """k [B,K,T,D] where y [B,K*R,T,D] is k with each head R times in a row."""
    copies = operand(y.producer, "RESHAPE")
    x = operand(copies.producer, "BROADCAST_TO") if copies is not None else None
    if copies is None or x is None or copies.rank != 5 or x.rank != 5:
        return None
    batch, groups, repeats, *matrix = copies.shape
    if y.shape != (batch, groups * repeats, *matrix) or x.shape != (batch, groups, 1, *matrix):
        return None
    k = operand(x.producer, "RESHAPE")
    return k if k is not None and k.shape == (batch, groups, *matrix) else None
