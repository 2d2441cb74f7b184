"""What stands around FULLY_CONNECTED and can go into its weights or past it."""

import numpy as np

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dims import Dim
from litert_torch.converter.ir import Op, Value, const, retyped
from litert_torch.converter.passes import Sweep
from litert_torch.converter.passes.transposes import operand


def scale_into_product(s: Sweep, op: Op) -> Value | None:
    """A constant factor for each column, such as layer norm's, goes into the weights.

    before: fully_connected(mul(x, c), w, b)
    after:  fully_connected(x, w * c, b)

    Weights that are also an embedding's table stay as they are, and so stay one tensor.
    """
    found = _columns_before(s, op, "MUL")
    if found is None or found[2].key in s.tables:
        return None
    x, c, weights = found
    scaled = weights.derive("columns times", lambda w, f: w * f.reshape(-1), c)
    return s.graph.emit(op.kind, [x, const(scaled), op.inputs[2]], op.output.type, **op.attrs)


def offset_into_product(s: Sweep, op: Op) -> Value | None:
    """A constant added to each column, such as layer norm's, goes into the bias.

    before: fully_connected(add(x, c), w, b)
    after:  fully_connected(x, w, b + w @ c)
    """
    found = _columns_before(s, op, "ADD")
    bias = op.inputs[2] if op.kind == "FULLY_CONNECTED" else None
    if found is None or (bias is not None and bias.const is None):
        return None
    x, c, weights = found

    def product(w: Array, offset: Array) -> Array:
        wide = np.broadcast_to(offset.reshape(-1).astype(np.float64), w.shape[1:])
        return (w @ wide).astype(np.float32)

    added = weights.derive("times", product, c, shape=weights.shape[:1])
    if bias is not None and bias.const is not None:
        added = bias.const.derive("add", np.add, added)
    return s.graph.emit(op.kind, [x, op.inputs[1], const(added)], op.output.type, **op.attrs)


def _columns_before(s: Sweep, op: Op, kind: str) -> tuple[Value, Constant, Constant] | None:
    """(x, c, weights) where `op` is a product of `kind`(x, c) that only products read."""
    y = operand(op, "FULLY_CONNECTED")
    maker = y.producer if y is not None else None
    if y is None or maker is None or maker.kind != kind or y in s.outputs:
        return None
    if maker.attrs["fusedActivationFunction"] or not all(
        _is_weighted_product(reader, y) for reader in s.users.get(y, [])
    ):
        return None
    x, c = maker.inputs
    if x is not None and x.const is not None:
        x, c = c, x
    weights = op.inputs[1]
    if x is None or c is None or c.const is None or weights is None or weights.const is None:
        return None
    width = weights.const.shape[1]
    per_column = c.const.size == 1 or (c.const.size == width and c.const.shape[-1] == width)
    return (x, c.const, weights.const) if per_column and x.shape == y.shape else None


def _is_weighted_product(op: Op, x: Value) -> bool:
    if op.kind != "FULLY_CONNECTED" or op.inputs[0] is not x:
        return False
    weights, bias = op.inputs[1], op.inputs[2]
    return (
        weights is not None
        and weights.const is not None
        and (bias is None or bias.const is not None)
    )


def reshape_after_product(s: Sweep, op: Op) -> Value | None:
    """A reshape of the leading axes goes behind the product if another reshape is there.

    before: reshape(fully_connected(reshape(x [1,5,6], [5,1,6]), w), [5,2,3])
    after:  reshape(reshape(fully_connected(x, w), [5,1,6]), [5,2,3])
    """
    y = operand(op, "FULLY_CONNECTED")
    x = operand(y.producer, "RESHAPE") if y is not None else None
    if y is None or x is None or x.rank < 2 or x.shape[-1] != y.shape[-1]:
        return None
    readers = s.users.get(op.output, [])
    if op.output in s.outputs or not readers or any(r.kind != "RESHAPE" for r in readers):
        return None
    shape = (*x.shape[:-1], op.output.shape[-1])
    product = s.graph.emit(
        op.kind, [x, *op.inputs[1:]], retyped(op.output, shape=shape), **op.attrs
    )
    return tfl.reshape(s.graph, product, op.output.shape)


def reshape_before_product(s: Sweep, op: Op) -> Value | None:
    """A reshape of the leading axes goes before the product if another reshape is there.

    before: reshape(fully_connected(reshape(x, [5,6]), w), [1,5,4])
    after:  fully_connected(reshape(x, [1,5,6]), w)
    """
    y = operand(op, "RESHAPE")
    product = y.producer if y is not None else None
    flat = operand(product, "FULLY_CONNECTED")
    x = operand(flat.producer, "RESHAPE") if flat is not None else None
    if y is None or product is None or flat is None or x is None or not s.only_user(y):
        return None
    if op.output.rank < 2 or op.output.shape[-1] != y.shape[-1] or not s.only_user(flat):
        return None
    shaped = tfl.reshape(s.graph, x, (*op.output.shape[:-1], flat.shape[-1]))
    return s.graph.emit(
        product.kind, [shaped, *product.inputs[1:]], op.output.type, **product.attrs
    )


def flat_product(s: Sweep, op: Op) -> Value | None:
    """A product that keeps no leading axes makes rows of its operand itself.

    before: fully_connected(reshape(x [1,1,1,5], [1,5]), w)
    after:  fully_connected(x, w, keep_num_dims=False)
    """
    y = operand(op, "FULLY_CONNECTED")
    x = operand(y.producer, "RESHAPE") if y is not None else None
    if y is None or x is None or y.rank != 2 or x.rank < 2 or x.shape[-1] != y.shape[-1]:
        return None
    if any(isinstance(n, Dim) for n in x.shape):
        return None
    attrs = {**op.attrs, "keepNumDims": False}
    return s.graph.emit(op.kind, [x, *op.inputs[1:]], op.output.type, **attrs)
