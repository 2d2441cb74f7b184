"""Dtypes that LiteRT's arithmetic kernels take, and casts to them that change no value.

Kernels that only move elements take every dtype. Arithmetic, comparisons and sorting take float32,
int32 and int64; on int8, uint8 and int16 they expect quantization, and without it compute garbage.
"""

from collections.abc import Callable

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const
from litert_torch.errors import UnsupportedCaseError

NARROW = frozenset({DType.BOOL, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16})


def wide(dtype: DType) -> DType:
    """The dtype to compute in: float32, int32 or int64, which holds every value of `dtype`."""
    if dtype is DType.UINT64:
        raise UnsupportedCaseError("LiteRT computes nothing in uint64: cast to int64 first")
    if dtype is DType.UINT32:
        return DType.INT64
    return DType.INT32 if dtype in NARROW else dtype


def widened(g: Graph, x: Value) -> Value:
    """x of any shape as float32, int32 or int64: narrow integers and bool become int32."""
    return tfl.cast(g, x, wide(x.dtype))


def computed_wide(g: Graph, x: Value, function: Callable[[Value], Value]) -> Value:
    """`function` of x computed in a dtype that kernels take, its result in x's own."""
    return tfl.cast(g, function(widened(g, x)), x.dtype)


def accumulated(g: Graph, x: Value, dtype: DType | None) -> Value:
    """x in the dtype that sums and products have: `dtype` if given, else int64 for integers."""
    return tfl.cast(g, x, dtype or (x.dtype if x.dtype.is_float else DType.INT64))


def is_nonzero(g: Graph, x: Value) -> Value:
    """Where x is not zero, as bool."""
    if x.dtype == DType.BOOL:
        return x
    x = widened(g, x)
    return tfl.not_equal(g, x, const(0, x.dtype))
