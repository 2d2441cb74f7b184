"""The lowest version of each operator that has what an op uses.

Delegates accept an operator up to some version, so a needlessly high one costs acceleration. The
rules are those of LiteRT's own versioning (tflite/converter/tools/versioning/op_version.cc).
"""

from collections.abc import Callable, Iterable

import numpy as np

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Op, Value

BF16, F16, F32, F64 = DType.BFLOAT16, DType.FLOAT16, DType.FLOAT32, DType.FLOAT64
BOOL, INT2, INT4, UINT4 = DType.BOOL, DType.INT2, DType.INT4, DType.UINT4
INT8, UINT8, INT16, UINT16 = DType.INT8, DType.UINT8, DType.INT16, DType.UINT16
INT32, UINT32, INT64 = DType.INT32, DType.UINT32, DType.INT64

_INT8_INT16 = {INT8: 2, INT16: 3}

_BY_DTYPE: dict[str, dict[DType, int]] = {
    **{key: {INT8: 2, BOOL: 3} for key in ("ARG_MAX", "ARG_MIN")},
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _INT8_INT16),
    **{key: {F16: 2} for key in ("COS", "SIN")},
    **{key: {INT8: 2} for key in ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")},
    **{key: {INT8: 2, INT16: 2} for key in ("EXP", "LOG", "SQRT", "REDUCE_PROD")},
    **{key: {INT8: 2} for key in ("GREATER", "LESS_EQUAL")},
    **dict.fromkeys(("LESS", "GREATER_EQUAL"), _INT8_INT16),
    **{key: {INT8: 2} for key in ("LOG_SOFTMAX", "SPLIT_V", "SQUARED_DIFFERENCE", "SUM")},
    **dict.fromkeys(("LOGISTIC", "TANH"), _INT8_INT16),
    **dict.fromkeys(("MEAN", "MIRROR_PAD", "REDUCE_MAX", "REDUCE_MIN"), _INT8_INT16),
    **dict.fromkeys(("RELU6", "RSQRT", "TOPK_V2"), _INT8_INT16),
    "CONCATENATION": {INT8: 2, INT16: 3, UINT32: 4, INT4: 5, F16: 6},
    "EQUAL": {INT8: 2, INT16: 5},
    "FLOOR_DIV": {F32: 2, INT8: 3, INT16: 3},
    "FLOOR_MOD": {INT8: 2, INT16: 2},
    "GELU": {INT8: 2, UINT8: 2},
    "LEAKY_RELU": {INT16: 2},
    "NOT_EQUAL": {INT8: 2, INT16: 4},
    "PACK": {INT8: 2, INT16: 3, UINT32: 4},
    "RANGE": {INT64: 2},
    "RELU": {INT8: 2, UINT8: 2, INT16: 3},
    "REVERSE_V2": {BOOL: 2, INT8: 3},
    "SELECT_V2": {UINT32: 2},
    "SIGN": {INT32: 2},
    "SOFTMAX": {INT8: 2, INT16: 3, F16: 4},
    "TILE": {INT8: 3},
    "UNPACK": {INT8: 2, UINT8: 2, BOOL: 3, INT16: 4, F16: 5, BF16: 5},
}
"""Operators whose version follows from the first operand's type; 1 for those not named."""

VERSIONS: dict[str, Callable[[Op], int]] = {}


def lowest_version(op: Op) -> int:
    """The version to write for `op`."""
    if op.kind in VERSIONS:
        return VERSIONS[op.kind](op)
    return _of_dtype(op, 0, _BY_DTYPE.get(op.kind, {}))


def _rule(*kinds: str) -> Callable[[Callable[[Op], int]], Callable[[Op], int]]:
    def register(function: Callable[[Op], int]) -> Callable[[Op], int]:
        for kind in kinds:
            VERSIONS[kind] = function
        return function

    return register


def _operand(op: Op, i: int) -> Value | None:
    return op.inputs[i] if i < len(op.inputs) else None


def _dtype(op: Op, i: int = 0) -> DType | None:
    v = _operand(op, i)
    return v.dtype if v is not None else None


def _of_dtype(op: Op, i: int, table: dict[DType, int]) -> int:
    dtype = _dtype(op, i)
    return 1 if dtype is None else table.get(dtype, 1)


def _rank(op: Op) -> int:
    return max(v.rank for v in op.inputs if v is not None)


def _broadcasts_beyond_four_axes(op: Op) -> bool:
    x, y = _operand(op, 0), _operand(op, 1)
    return x is not None and y is not None and x.shape != y.shape and _rank(op) > 4


def _is_quantized(op: Op, operands: Iterable[int]) -> bool:
    values = (_operand(op, i) for i in operands)
    return any(v is not None and v.quantization is not None for v in values)


def _is_per_channel(v: Value | None) -> bool:
    return v is not None and v.quantization is not None and not v.quantization.is_per_tensor


@_rule("CUSTOM")
def _custom(op: Op) -> int:
    return int(op.attrs.get("version", 1))  # whoever made the op knows


@_rule("ABS")
def _abs(op: Op) -> int:
    int16 = 3 if _is_quantized(op, [0]) else 4
    return _of_dtype(op, 0, {INT8: 2, UINT8: 2, INT16: int16, INT32: 5})


@_rule("ADD")
def _add(op: Op) -> int:
    if _dtype(op) == INT16 and not _is_quantized(op, [0]):
        return 5
    int16 = 1 if op.attrs.get("potScaleInt16", True) else 3
    return _of_dtype(op, 0, {INT8: 2, INT16: int16, INT64: 4, F16: 6})


@_rule("BATCH_MATMUL")
def _batch_matmul(op: Op) -> int:
    if _dtype(op) == F32 and _dtype(op, 1) == INT8 and op.attrs.get("asymmetricQuantizeInputs"):
        return 4
    return _of_dtype(op, 0, _INT8_INT16)


@_rule("BROADCAST_TO")
def _broadcast_to(op: Op) -> int:
    return 3 if _dtype(op) in (INT8, INT16) else 2


@_rule("CAST")
def _cast(op: Op) -> int:
    types = {_dtype(op), op.output.dtype}
    if _dtype(op) == INT4 and op.output.dtype == F32:
        return 6
    newest_first = {8: {INT2, UINT4}, 7: {BF16}, 5: {F64, F16}, 4: {UINT16}, 3: {INT8}, 2: {UINT32}}
    return next((v for v, kinds in newest_first.items() if types & kinds), 1)


@_rule("CONV_2D")
def _conv_2d(op: Op) -> int:
    x, weight = op.inputs[0], op.inputs[1]
    assert x is not None
    assert weight is not None
    if x.dtype == INT16 and op.attrs.get("quantizedBiasType"):
        return 8
    if x.shape[-1] != weight.shape[-1]:  # groups
        return 6
    hybrid = 5 if _is_per_channel(weight) else 2
    return _convolution(x, weight, int8=3, int16=4, int8_int4=7, float_int8=hybrid, otherwise=1)


@_rule("DEPTHWISE_CONV_2D")
def _depthwise_conv_2d(op: Op) -> int:
    x, weight = op.inputs[0], op.inputs[1]
    assert x is not None
    assert weight is not None
    dilated = op.attrs.get("dilationWFactor", 1) != 1 or op.attrs.get("dilationHFactor", 1) != 1
    hybrid = 6 if _is_per_channel(weight) else 4
    plain = 2 if dilated else 1
    return _convolution(x, weight, int8=3, int16=5, int8_int4=7, float_int8=hybrid, otherwise=plain)


def _convolution(
    x: Value,
    weight: Value,
    *,
    int8: int,
    int16: int,
    int8_int4: int,
    float_int8: int,
    otherwise: int,
) -> int:
    """The version for the types of activations and weights."""
    if x.dtype == INT16:
        return int16
    types = {(INT8, INT8): int8, (INT8, INT4): int8_int4, (F32, INT8): float_int8}
    return types.get((x.dtype, weight.dtype), otherwise)


@_rule("DEQUANTIZE")
def _dequantize(op: Op) -> int:
    int8 = 5 if _is_per_channel(op.inputs[0]) else 2
    return _of_dtype(op, 0, {INT8: int8, INT16: 3, F16: 3, INT4: 6, INT2: 7, UINT4: 8})


@_rule("DIV")
def _div(op: Op) -> int:
    return 2 if _broadcasts_beyond_four_axes(op) else 1


@_rule("DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(op: Op) -> int:
    of_index = _of_dtype(op, 2, {INT64: 2})
    return max(of_index, _of_dtype(op, 0, {F16: 3, INT16: 4, INT4: 5, BF16: 6}))


@_rule("EMBEDDING_LOOKUP")
def _embedding_lookup(op: Op) -> int:
    per_channel = 4 if _is_per_channel(_operand(op, 1)) else 1
    return max(per_channel, _of_dtype(op, 1, {INT4: 4, INT2: 5}))


@_rule("FILL")
def _fill(op: Op) -> int:
    return _of_dtype(op, 1, {BOOL: 2, INT8: 3, INT16: 3, F16: 4})


@_rule("FULLY_CONNECTED")
def _fully_connected(op: Op) -> int:
    """The highest that a feature needs: 8 would mean sparse weights, which XNNPACK refuses."""
    shape = 6 if _operand(op, 2) is None else 5 if op.attrs.get("keepNumDims") else 1
    x, weight = _dtype(op), _operand(op, 1)
    assert weight is not None
    if weight.dtype == INT2:
        return 14
    scales = 0 if weight.quantization is None else np.size(weight.quantization.scales)
    hybrid = 9 if op.attrs.get("asymmetricQuantizeInputs") else 3
    types = {
        (INT8, INT8): 4,
        (INT8, INT4): 10,
        (INT16, INT16): 7,
        (INT16, INT8): 11 if op.attrs.get("quantizedBiasType") else 1,
        (INT16, INT4): 13,
        (F32, INT8): 12 if scales == weight.shape[0] else hybrid,
    }
    return max(shape, types.get((x or F32, weight.dtype), 1))


@_rule("GATHER")
def _gather(op: Op) -> int:
    of_index = max(5 if op.attrs.get("batchDims") else 1, _of_dtype(op, 1, {INT16: 6}))
    return max(of_index, _of_dtype(op, 0, {INT8: 2, BOOL: 3, INT16: 4, INT4: 7}))


@_rule("GATHER_ND")
def _gather_nd(op: Op) -> int:
    return max(_of_dtype(op, 1, {INT16: 4}), _of_dtype(op, 0, {INT16: 3, BOOL: 5}))


@_rule("MAXIMUM", "MINIMUM")
def _maximum_minimum(op: Op) -> int:
    broadcasting = 3 if _broadcasts_beyond_four_axes(op) else 1
    return max(broadcasting, _of_dtype(op, 0, {INT8: 2, INT16: 4}))


@_rule("MUL")
def _mul(op: Op) -> int:
    int16 = 4 if _is_quantized(op, [0, 1]) else 7
    table = {INT8: 2, INT16: int16, INT64: 5, DType.COMPLEX64: 6, UINT32: 7, F16: 8}
    return max(3 if _grows(op) else 1, _of_dtype(op, 0, table))


def _grows(op: Op) -> bool:
    """Whether the operands' scales give a factor of 1 or more on the result's."""
    parameters = [v.quantization for v in (*op.inputs, op.output) if v is not None]
    if len(parameters) != 3 or any(q is None for q in parameters):
        return False
    x, y, result = (float(np.ravel(q.scales)[0]) for q in parameters if q is not None)
    return x * y / result >= 1


@_rule("PAD", "PADV2")
def _pad(op: Op) -> int:
    return max(4 if _rank(op) > 4 else 1, _of_dtype(op, 0, {INT8: 2, INT16: 3, BOOL: 5}))


@_rule("QUANTIZE")
def _quantize(op: Op) -> int:
    types = {_dtype(op), op.output.dtype}
    if UINT4 in types:
        return 5
    if INT4 in types:
        return 4
    return 3 if _is_per_channel(op.output) else 2 if op.output.dtype == INT16 else 1


@_rule("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(op: Op) -> int:
    aligned = op.kind == "RESIZE_NEAREST_NEIGHBOR" and op.attrs.get("alignCorners")
    shifted = 3 if op.attrs.get("halfPixelCenters") or aligned else 1
    return max(shifted, _of_dtype(op, 0, {INT8: 2, INT16: 4}))


@_rule("SELECT")
def _select(op: Op) -> int:
    return 3 if _rank(op) == 5 else 1


@_rule("SLICE")
def _slice(op: Op) -> int:
    types = {INT8: 2, INT16: 4, UINT32: 6, INT4: 7, F16: 8}
    return max(5 if _rank(op) > 4 else 1, _of_dtype(op, 0, types))


@_rule("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def _space_to_batch(op: Op) -> int:
    x = _operand(op, 0)
    flat = 3 if x is not None and x.rank != 4 else 1
    return max(flat, _of_dtype(op, 0, {INT8: 2, INT16: 4}))


@_rule("SPLIT")
def _split(op: Op) -> int:
    return _of_dtype(op, 1, {INT8: 2, INT32: 3, INT16: 4})


@_rule("STRIDED_SLICE")
def _strided_slice(op: Op) -> int:
    if op.attrs.get("offset"):
        return 8
    masked = 6 if op.attrs.get("ellipsisMask") or op.attrs.get("newAxisMask") else 1
    ranked = 4 if _rank(op) > 4 else 1
    return max(masked, ranked, _of_dtype(op, 0, {INT8: 2, BOOL: 3, UINT32: 7}))


@_rule("SUB")
def _sub(op: Op) -> int:
    int16 = 1 if op.attrs.get("potScaleInt16", True) else 5
    broadcasting = 3 if _broadcasts_beyond_four_axes(op) else 1
    return max(broadcasting, _of_dtype(op, 0, {INT8: 2, INT16: int16, INT64: 4}))


@_rule("TRANSPOSE")
def _transpose(op: Op) -> int:
    x = op.inputs[0]
    assert x is not None
    ranked = 8 if x.rank > 6 else 6 if x.rank > 5 else 4 if x.rank > 4 else 1
    return max(ranked, _of_dtype(op, 0, {INT8: 2, BOOL: 3, INT16: 5, INT4: 7, BF16: 8, F16: 9}))


@_rule("TRANSPOSE_CONV")
def _transpose_conv(op: Op) -> int:
    if op.attrs.get("quantizedBiasType"):
        return 5
    if op.attrs.get("fusedActivationFunction"):
        return 4
    return 3 if _operand(op, 3) is not None else _of_dtype(op, 1, {INT8: 2})


@_rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _unidirectional_sequence_lstm(op: Op) -> int:
    if op.attrs.get("diagonalRecurrentTensors"):
        return 4
    if _dtype(op) == F32 and _dtype(op, 2) == INT8:
        return 3 if op.attrs.get("asymmetricQuantizeInputs") else 2
    return 1


@_rule("WHERE")
def _where(op: Op) -> int:
    return 1 if _dtype(op) == BOOL else 2
