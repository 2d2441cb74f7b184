"""Random numbers; with seeds of 0 each interpreter seeds its own generators."""

from collections.abc import Callable, Sequence

from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.litert_ops.movement import shape_value


def _random(kind: str) -> Callable[[Graph, Sequence[Size]], Value]:
    def emit(g: Graph, shape: Sequence[Size]) -> Value:
        result = TensorType(tuple(shape), DType.FLOAT32)
        return g.emit(kind, [shape_value(g, shape)], result, seed=0, seed2=0)

    emit.__doc__ = f"{kind}: float32 of `shape`."
    return emit


random_standard_normal = _random("RANDOM_STANDARD_NORMAL")
random_uniform = _random("RANDOM_UNIFORM")  # in [0, 1)


def multinomial(g: Graph, logits: Value, count: int) -> Value:
    """Logits [N, K] to int64 [N, count]: classes drawn with probability softmax(logits)."""
    result = TensorType((logits.shape[0], count), DType.INT64)
    operands = [logits, const(count, DType.INT32)]
    return g.emit("MULTINOMIAL", operands, result, seed=0, seed2=0)
