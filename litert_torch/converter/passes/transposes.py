"""Rewrites of TRANSPOSE and RESHAPE among themselves."""

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Op, Value
from litert_torch.converter.passes import Sweep


def permutation(op: Op | None) -> list[int] | None:
    """The permutation of a TRANSPOSE, else None."""
    if op is None or op.kind != "TRANSPOSE":
        return None
    perm = op.inputs[1]
    return [int(p) for p in perm.read()] if perm is not None and perm.const is not None else None


def merge_transposes(s: Sweep, op: Op) -> Value | None:
    """Two transposes become one, or none when the second undoes the first.

    before: transpose(transpose(x, p), q)
    after:  transpose(x, p[q]), or x when p[q] is the identity
    """
    q = permutation(op)
    inner = op.inputs[0].producer if q is not None and op.inputs[0] is not None else None
    p = permutation(inner)
    if p is None or q is None or inner is None or inner.inputs[0] is None:
        return None
    return tfl.transpose(s.graph, inner.inputs[0], [p[i] for i in q])
