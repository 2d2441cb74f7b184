import ast
import itertools
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import litert_torch.converter
from litert_torch.converter.dtypes import DType
from litert_torch.converter.flatbuffer.versions import lowest_version
from litert_torch.converter.ir import Op, Quantization, TensorType, Value

# What the runtime registers (ai-edge-litert 2.3.0), as highest version: operators. The lowest is 1.
HIGHEST = {
    1: """ASSIGN_VARIABLE ATAN2 BITCAST BITWISE_XOR CALL_ONCE CEIL CONV_3D CUMSUM ELU FLOOR
        HARD_SWISH IF LOGICAL_AND LOGICAL_NOT LOGICAL_OR MULTINOMIAL NEG
        NON_MAX_SUPPRESSION_V4 ONE_HOT POW PRELU RANDOM_STANDARD_NORMAL RANDOM_UNIFORM
        READ_VARIABLE REDUCE_ALL REDUCE_ANY RELU_0_TO_1
        RELU_N1_TO_1 RESHAPE RIGHT_SHIFT ROUND SCATTER_ND SHAPE SQUARE STABLEHLO_AND
        STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT VAR_HANDLE WHILE""",
    2: """COS DEPTH_TO_SPACE DIV EXP FLOOR_MOD GREATER LEAKY_RELU LESS_EQUAL LOG LOG_SOFTMAX RANGE
        REDUCE_PROD SELECT_V2 SIGN SIN SPACE_TO_DEPTH SQRT SQUARED_DIFFERENCE SUM WHERE""",
    3: """ARG_MAX ARG_MIN AVERAGE_POOL_2D FLOOR_DIV GELU GREATER_EQUAL LESS LOGISTIC MAX_POOL_2D
        MEAN MIRROR_PAD REDUCE_MAX REDUCE_MIN RELU RELU6 RSQRT SPLIT_V TANH TILE TOPK_V2""",
    4: """BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_TO MAXIMUM MINIMUM NOT_EQUAL RESIZE_BILINEAR
        RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT SOFTMAX SPACE_TO_BATCH_ND
        UNIDIRECTIONAL_SEQUENCE_LSTM""",
    5: "ABS EMBEDDING_LOOKUP EQUAL FILL PACK SPLIT SUB TRANSPOSE_CONV",
    6: "ADD DYNAMIC_UPDATE_SLICE GATHER_ND PAD PADV2 QUANTIZE UNPACK",
    7: "CONCATENATION DEPTHWISE_CONV_2D",
    8: "CONV_2D GATHER MUL SLICE STRIDED_SLICE",
    9: "CAST DEQUANTIZE TRANSPOSE",
    14: "FULLY_CONNECTED",
}
RANGES = {kind: highest for highest, kinds in HIGHEST.items() for kind in kinds.split()}
FLAGS = (
    "batchDims",
    "asymmetricQuantizeInputs",
    "diagonalRecurrentTensors",
    "ellipsisMask",
    "halfPixelCenters",
    "offset",
    "quantizedBiasType",
)
TYPES = ("float32", "float16", "bool", "int8", "int16", "int32", "int64", "uint8", "int4")
SECOND_TYPES = ("float32", "int8", "int16", "int64", "int4")


def per_channel(count=3):
    return Quantization(np.linspace(0.1, 0.2, count, dtype=np.float32), np.zeros(count, np.int64))


def tensor(dtype, *shape, quantization=None):
    return Value(TensorType(shape, DType(dtype)), quantization=quantization)


def op(kind, *inputs, output=None, **attrs):
    return Op(kind, list(inputs), [output or inputs[0]], attrs)


@pytest.mark.parametrize("kind", sorted(RANGES))
def test_never_beyond_what_the_runtime_registers(kind):
    for first, second, rank, attrs, quantization in itertools.product(
        TYPES,
        SECOND_TYPES,
        (4, 5, 7),
        ({}, dict.fromkeys(FLAGS, 1), {"potScaleInt16": False}),
        (None, per_channel()),
    ):
        x = tensor(first, *[3] * rank, quantization=quantization)
        y = tensor(second, 3, *[1] * (rank - 1), quantization=quantization)
        lowest = 2 if kind == "BROADCAST_TO" else 1
        assert lowest <= lowest_version(op(kind, x, y, y, output=x, **attrs)) <= RANGES[kind]


def test_every_operator_that_we_write_is_in_the_table():
    root = Path(litert_torch.converter.__file__).parent
    constants = {
        node.value
        for folder in ("litert_ops", "lowerings", "passes")
        for path in (root / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    ours = {c for c in constants if hasattr(schema.BuiltinOperator, c)} - {"CUSTOM"}
    assert ours <= set(RANGES)


F4, F5 = tensor("float32", 2, 3, 4, 5), tensor("float32", 2, 3, 4, 5, 6)
ROW, COLUMN = tensor("float32", 3), tensor("float32", 2, 3, 1, 1, 1)
I8, I16, I32, I64, B = (tensor(t, 2, 3, 4, 6) for t in ("int8", "int16", "int32", "int64", "bool"))
WEIGHT = tensor("float32", 3, 5)
ONE_SCALE = Quantization(np.float32([0.5]), np.int64([0]))
Q16 = tensor("int16", 2, 3, quantization=ONE_SCALE)
Q8 = tensor("int8", 2, 3, quantization=ONE_SCALE)


@pytest.mark.parametrize(
    ("operator", "version"),
    [
        (op("ABS", F4), 1),
        (op("ABS", I32), 5),
        (op("ABS", I16), 4),
        (op("ABS", Q16), 3),
        (op("ADD", F5, COLUMN), 1),
        (op("ADD", I64, I64), 4),
        (op("ADD", I16, I16), 5),
        (op("ADD", Q16, Q16, potScaleInt16=False), 3),
        (op("SUB", F5, F5), 1),
        (op("SUB", F5, COLUMN), 3),
        (op("SUB", I64, I64), 4),
        (op("MUL", F5, COLUMN), 1),
        (op("MUL", I64, I64), 5),
        (op("MUL", I16, I16), 7),
        (op("MUL", Q16, Q16), 4),
        (op("MUL", Q8, Q8), 2),
        (op("MUL", Q8, Q8, output=tensor("int8", 2, quantization=per_channel(1))), 3),
        (op("DIV", F5, COLUMN), 2),
        (op("DIV", F4, ROW), 1),
        (op("MAXIMUM", F5, COLUMN), 3),
        (op("MINIMUM", I16, I16), 4),
        (op("FLOOR_DIV", F4, F4), 2),
        (op("FLOOR_DIV", I32, I32), 1),
        (op("SIGN", I32), 2),
        (op("EQUAL", I64, I64), 1),
        (op("SELECT_V2", B, F5, F5), 1),
        (op("RANGE", I64, I64, I64), 2),
        (op("FILL", I32, B), 2),
        (op("FILL", I32, F4), 1),
        (op("GATHER", B, I32), 3),
        (op("GATHER", F4, I32, batchDims=1), 5),
        (op("GATHER_ND", B, I32), 5),
        (op("TRANSPOSE", F4, I32), 1),
        (op("TRANSPOSE", F5, I32), 4),
        (op("TRANSPOSE", B, I32), 3),
        (op("SLICE", F5, I32, I32), 5),
        (op("STRIDED_SLICE", F5, I32, I32, I32), 4),
        (op("STRIDED_SLICE", B, I32, I32, I32), 3),
        (op("SPLIT", I32, F4), 1),
        (op("SPLIT", I32, I32), 3),
        (op("PAD", F5, I32), 4),
        (op("PADV2", B, I32), 5),
        (op("UNPACK", B), 3),
        (op("REVERSE_V2", B, I32), 2),
        (op("ARG_MAX", F4, I32), 1),
        (op("BROADCAST_TO", F4, I32), 2),
        (op("BROADCAST_TO", I8, I32), 3),
        (op("CAST", I64, output=F4), 1),
        (op("CAST", I8, output=F4), 3),
        (op("CAST", F4, output=tensor("float16", 2)), 5),
        (op("CAST", tensor("bfloat16", 2), output=F4), 7),
        (op("CAST", tensor("int4", 2), output=F4), 6),
        (op("RESIZE_BILINEAR", F4, I32, halfPixelCenters=True), 3),
        (op("RESIZE_BILINEAR", F4, I32, alignCorners=True), 1),
        (op("RESIZE_NEAREST_NEIGHBOR", F4, I32, alignCorners=True), 3),
        (op("CONV_2D", F4, tensor("float32", 7, 1, 1, 5), ROW), 1),
        (op("CONV_2D", F4, tensor("float32", 10, 1, 1, 1), ROW), 6),
        (op("CONV_2D", I8, tensor("int8", 7, 1, 1, 6), ROW), 3),
        (op("CONV_2D", F4, tensor("int8", 3, 1, 1, 5, quantization=per_channel()), ROW), 5),
        (op("DEPTHWISE_CONV_2D", F4, F4, ROW, dilationHFactor=2), 2),
        (op("DEPTHWISE_CONV_2D", I16, I8, ROW), 5),
        (op("TRANSPOSE_CONV", I32, F4, F4), 1),
        (op("TRANSPOSE_CONV", I32, F4, F4, ROW), 3),
        (op("FULLY_CONNECTED", F4, WEIGHT, ROW), 1),
        (op("FULLY_CONNECTED", F4, WEIGHT, ROW, keepNumDims=True), 5),
        (op("FULLY_CONNECTED", F4, WEIGHT, None, keepNumDims=True), 6),
        (op("FULLY_CONNECTED", Q8, Q8, ROW), 4),
        (op("FULLY_CONNECTED", Q8, tensor("int4", 3, 5), ROW, keepNumDims=True), 10),
        (op("FULLY_CONNECTED", F4, tensor("int8", 3, 5, quantization=per_channel()), None), 12),
        (op("FULLY_CONNECTED", F4, tensor("int2", 3, 8), ROW), 14),
        (op("EMBEDDING_LOOKUP", I32, F4), 1),
        (op("EMBEDDING_LOOKUP", I32, tensor("int4", 3, 5)), 4),
        (op("DEQUANTIZE", tensor("float16", 2), output=F4), 3),
        (op("DEQUANTIZE", Q8, output=F4), 2),
        (op("DEQUANTIZE", tensor("int8", 3, quantization=per_channel()), output=F4), 5),
        (op("QUANTIZE", F4, output=Q16), 2),
        (op("QUANTIZE", F4, output=Q8), 1),
        (op("DYNAMIC_UPDATE_SLICE", F4, F4, I64), 2),
        (op("WHERE", B), 1),
        (op("BITCAST", F4), 1),
    ],
    ids=lambda v: f"{v.kind} {v.inputs[0].type}" if isinstance(v, Op) else str(v),
)
def test_rule(operator, version):
    assert lowest_version(operator) == version
