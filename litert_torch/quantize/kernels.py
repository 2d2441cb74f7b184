"""What LiteRT's kernels take, op by op: data, no code.

From ../shared runtime measurements and LiteRT's quantization specification
(https://ai.google.dev/edge/litert/conversion/tensorflow/quantization/quantization_spec).
"""

from __future__ import annotations

from dataclasses import dataclass

from litert_torch.converter.dtypes import DType

INT2, INT4, INT8, INT16 = DType.INT2, DType.INT4, DType.INT8, DType.INT16


@dataclass(frozen=True)
class Operands:
    """Where an op keeps what.

    Attributes:
        x: Position of the activation.
        weights: Position of the weights.
        bias: Position of the bias; None for ops without.
        axis: The weights' axis that may have a scale for each index.
    """

    x: int
    weights: int
    bias: int | None
    axis: int


WEIGHTED = {
    "FULLY_CONNECTED": Operands(0, 1, 2, 0),
    "CONV_2D": Operands(0, 1, 2, 0),
    "DEPTHWISE_CONV_2D": Operands(0, 1, 2, 3),
    "TRANSPOSE_CONV": Operands(2, 1, 3, 0),
    "BATCH_MATMUL": Operands(0, 1, None, -1),  # the last axis, or with adjY the one before
    "EMBEDDING_LOOKUP": Operands(0, 1, None, 0),
}

DYNAMIC: dict[str, frozenset[DType]] = {
    "FULLY_CONNECTED": frozenset({INT8, INT4, INT2}),
    "CONV_2D": frozenset({INT8}),
    "TRANSPOSE_CONV": frozenset({INT8}),
    "BATCH_MATMUL": frozenset({INT8}),
    "EMBEDDING_LOOKUP": frozenset({INT8, INT4, INT2}),  # rows become float as they are read
}
"""Integer weights that a kernel takes beside float activations."""

STATIC_WEIGHTS: dict[str, frozenset[DType]] = {
    "FULLY_CONNECTED": frozenset({INT8, INT4}),
    "CONV_2D": frozenset({INT8, INT4}),
    "DEPTHWISE_CONV_2D": frozenset({INT8}),
    "TRANSPOSE_CONV": frozenset({INT8}),
    "BATCH_MATMUL": frozenset({INT8}),
}
"""Integer weights that a kernel takes beside integer activations."""

DEQUANTIZABLE = frozenset({INT8, INT4, INT2})
"""Weights that DEQUANTIZE takes with a scale a channel."""

MULTIPLE_OF = {INT4: 2, INT2: 4}
"""FULLY_CONNECTED's input channels must be a multiple, so that rows end with a byte."""

RESCALING = frozenset(
    [
        "ADD",
        "SUB",
        "MUL",
        "MEAN",
        "RELU",
        "RELU6",
        "LEAKY_RELU",
        "PRELU",
        "GELU",
        "HARD_SWISH",
        "ELU",
        "SQUARED_DIFFERENCE",
        "BATCH_MATMUL",
    ]
)
"""int8 kernels whose operands and results may each have a scale."""

RESCALING_INT16 = frozenset({"ADD", "SUB", "MUL", "BATCH_MATMUL", "MEAN", "LEAKY_RELU"})

MOVING = frozenset(
    [
        "RESHAPE",
        "TRANSPOSE",
        "SLICE",
        "STRIDED_SLICE",
        "SPLIT",
        "PAD",
        "MIRROR_PAD",
        "MAX_POOL_2D",
        "AVERAGE_POOL_2D",
        "REDUCE_MAX",
        "REDUCE_MIN",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "DEPTH_TO_SPACE",
        "SPACE_TO_DEPTH",
        "TILE",
        "GATHER",
        "UNPACK",
    ]
)
"""Kernels whose results have the scale of the one activation that they read."""

JOINING = frozenset({"CONCATENATION", "PACK", "MAXIMUM", "MINIMUM"})
"""Kernels whose activations and result all have one scale."""

FIXED: dict[str, dict[DType, tuple[float, int]]] = {
    "LOGISTIC": {INT8: (1 / 256, -128), INT16: (1 / 32768, 0)},
    "SOFTMAX": {INT8: (1 / 256, -128), INT16: (1 / 32768, 0)},
    "TANH": {INT8: (1 / 128, 0), INT16: (1 / 32768, 0)},
    "L2_NORMALIZATION": {INT8: (1 / 128, 0)},
}
"""Kernels whose result must have this scale and zero point."""

QUANTIZABLE = frozenset({*WEIGHTED, *RESCALING, *MOVING, *JOINING, *FIXED})
"""Op kinds that a rule may name."""

MATRIX_PRODUCTS = frozenset(WEIGHTED) - {"EMBEDDING_LOOKUP"}
"""Ops worth quantizing operands for; others follow what is around them."""
