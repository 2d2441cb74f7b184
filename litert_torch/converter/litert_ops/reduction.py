"""Reductions, cumulative sums, sorting."""

from collections.abc import Callable, Sequence

from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const, retyped
from litert_torch.converter.litert_ops.movement import reshape, shape_value


def reduced_shape(x: Value, axes: Sequence[int], keep_dims: bool) -> tuple[Size, ...]:
    """The shape of x reduced over `axes`."""
    gone = {a % x.rank for a in axes}
    if keep_dims:
        return tuple(1 if i in gone else s for i, s in enumerate(x.shape))
    return tuple(s for i, s in enumerate(x.shape) if i not in gone)


def _reducer(kind: str) -> Callable[[Graph, Value, Sequence[int], bool], Value]:
    def emit(g: Graph, x: Value, axes: Sequence[int], keep_dims: bool) -> Value:
        dims = sorted(a % x.rank for a in axes)
        result = retyped(x, shape=reduced_shape(x, dims, keep_dims))
        return g.emit(kind, [x, const(dims, DType.INT32)], result, keepDims=keep_dims)

    emit.__doc__ = f"{kind} over `axes`."
    return emit


mean = _reducer("MEAN")
reduce_all = _reducer("REDUCE_ALL")
reduce_any = _reducer("REDUCE_ANY")
reduce_max = _reducer("REDUCE_MAX")
reduce_min = _reducer("REDUCE_MIN")
reduce_prod = _reducer("REDUCE_PROD")
sum = _reducer("SUM")


def _arg(kind: str) -> Callable[[Graph, Value, int], Value]:
    def emit(g: Graph, x: Value, axis: int) -> Value:
        result = TensorType(reduced_shape(x, [axis], False), DType.INT32)
        return g.emit(kind, [x, const(axis % x.rank, DType.INT32)], result, outputType=DType.INT32)

    emit.__doc__ = f"{kind}: int32 index along `axis`, which is dropped; the first among equals."
    return emit


arg_max = _arg("ARG_MAX")
arg_min = _arg("ARG_MIN")


def cumsum(g: Graph, x: Value, axis: int) -> Value:
    """Running sum along `axis`, inclusive."""
    operands = [x, const(axis % x.rank, DType.INT32)]
    return g.emit("CUMSUM", operands, x.type, exclusive=False, reverse=False)


def topk_v2(g: Graph, x: Value, k: Size) -> list[Value]:
    """The k largest along the last axis, largest first, and their int32 indices."""
    shape = (*x.shape[:-1], k)
    types = [retyped(x, shape=shape), TensorType(shape, DType.INT32)]
    return g.emit_many("TOPK_V2", [x, reshape(g, shape_value(g, [k]), ())], types)
