"""Reading and writing elements by index; indices are int32."""

from collections.abc import Sequence

from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const, retyped
from litert_torch.converter.litert_ops.movement import shape_value


def dynamic_update_slice(g: Graph, x: Value, update: Value, begin: Value) -> Value:
    """x with `update` written at the run-time int32 vector `begin`."""
    return g.emit("DYNAMIC_UPDATE_SLICE", [x, update, begin], x.type)


def embedding_lookup(g: Graph, indices: Value, table: Value) -> Value:
    """Rows of `table` for a vector of int32 indices."""
    shape = (*indices.shape, *table.shape[1:])
    return g.emit("EMBEDDING_LOOKUP", [indices, table], retyped(table, shape=shape))


def gather(g: Graph, x: Value, indices: Value, *, axis: int, batch_dims: int = 0) -> Value:
    """Slices of x along `axis`, one for each index; the first `batch_dims` axes go together."""
    axis %= x.rank
    shape = (*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])
    return g.emit("GATHER", [x, indices], retyped(x, shape=shape), axis=axis, batchDims=batch_dims)


def gather_nd(g: Graph, x: Value, indices: Value) -> Value:
    """Slices of x at index tuples along the last axis of `indices`."""
    depth = int(indices.shape[-1])
    shape = (*indices.shape[:-1], *x.shape[depth:])
    return g.emit("GATHER_ND", [x, indices], retyped(x, shape=shape))


def one_hot(g: Graph, indices: Value, depth: int, *, dtype: DType, axis: int = -1) -> Value:
    """1 at each index along a new `axis` of size `depth`, 0 elsewhere."""
    at = axis % (indices.rank + 1)
    shape = (*indices.shape[:at], depth, *indices.shape[at:])
    operands = [indices, const(depth, DType.INT32), const(1, dtype), const(0, dtype)]
    return g.emit("ONE_HOT", operands, TensorType(shape, dtype), axis=axis)


def scatter_nd(g: Graph, indices: Value, updates: Value, shape: Sequence[Size]) -> Value:
    """Zeros of `shape` with `updates` added at index tuples."""
    operands = [indices, updates, shape_value(g, shape)]
    return g.emit("SCATTER_ND", operands, retyped(updates, shape=tuple(shape)))
