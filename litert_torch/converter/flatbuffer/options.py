"""Ops and types as the LiteRT schema spells them."""

import functools
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Op
from litert_torch.errors import InvalidGraphError

_REDUCERS = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")

_TABLES = {
    **dict.fromkeys(_REDUCERS, "Reducer"),
    "ATAN2": "ATan2",
    "AVERAGE_POOL_2D": "Pool2D",
    "BATCH_MATMUL": "BatchMatMul",
    "BATCH_TO_SPACE_ND": "BatchToSpaceND",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNN",
    "CONV_2D": "Conv2D",
    "CONV_3D": "Conv3D",
    "CONV_3D_TRANSPOSE": "Conv3D",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "L2_NORMALIZATION": "L2Norm",
    "L2_POOL_2D": "Pool2D",
    "LSH_PROJECTION": "LSHProjection",
    "LSTM": "LSTM",
    "MAXIMUM": "MaximumMinimum",
    "MAX_POOL_2D": "Pool2D",
    "MINIMUM": "MaximumMinimum",
    "MULTINOMIAL": "Random",
    "PADV2": "PadV2",
    "RANDOM_STANDARD_NORMAL": "Random",
    "RANDOM_UNIFORM": "Random",
    "RNN": "RNN",
    "SPACE_TO_BATCH_ND": "SpaceToBatchND",
    "STABLEHLO_COMPOSITE": "StableHLOComposite",
    "SVDF": "SVDF",
    "TOPK_V2": "TopKV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNN",
}
"""Options tables whose name is not the op's in camel case."""

_SECOND_UNION = ("STABLEHLO_", "DILATE", "REDUCE_WINDOW")  # their options: builtin_options_2

_TENSOR_TYPES = {dtype: getattr(schema.TensorType, dtype.name) for dtype in DType}


_DTYPES = {number: dtype for dtype, number in _TENSOR_TYPES.items()}


def dtype_of(tensor_type: int) -> DType | None:
    """The element type with that number in the schema; None where we have none such."""
    return _DTYPES.get(tensor_type)


def tensor_type(dtype: DType) -> int:
    """The schema's TensorType of `dtype`."""
    return int(_TENSOR_TYPES[dtype])


def builtin_code(kind: str) -> int:
    """The schema's BuiltinOperator of an op kind."""
    code = getattr(schema.BuiltinOperator, kind, None)
    if code is None:
        raise InvalidGraphError(f"LiteRT has no operator {kind}")
    return int(code)


@functools.cache
def table_name(kind: str) -> str:
    """The options table of an op kind, if the schema has it."""
    stem = _TABLES.get(kind) or "".join(part.capitalize() for part in kind.split("_"))
    return stem + "Options"


def operator(op: Op, subgraph_index: dict[Any, int]) -> Any:
    """The Operator record of `op` with its options; operands are left to the caller."""
    record = schema.OperatorT()
    if op.kind == "CUSTOM":
        given = np.frombuffer(op.attrs.get("custom_options", b""), np.uint8)
        record.customOptions = given if given.size else None
        return record
    name = table_name(op.kind)
    table = getattr(schema, name + "T", None)
    if table is None:
        if op.attrs:
            raise InvalidGraphError(f"{op.kind} has attributes but the schema has no {name}")
        return record
    options = table()
    for key, value in op.attrs.items():
        if not hasattr(options, key):
            raise InvalidGraphError(f"{name} has no field {key}")
        setattr(options, key, _field(value, subgraph_index))
    if op.kind.startswith(_SECOND_UNION):
        record.builtinOptions2Type = getattr(schema.BuiltinOptions2, name)
        record.builtinOptions2 = options
    else:
        record.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        record.builtinOptions = options
    return record


def _field(value: Any, subgraph_index: dict[Any, int]) -> Any:
    if isinstance(value, DType):
        return tensor_type(value)
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    return subgraph_index.get(value, value) if value.__hash__ else value
