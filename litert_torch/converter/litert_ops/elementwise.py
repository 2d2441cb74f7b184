"""Element-wise operators, with numpy broadcasting where they take two operands."""

from collections.abc import Callable

from litert_torch.converter import dims
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const, retyped

Unary = Callable[[Graph, Value], Value]
Binary = Callable[[Graph, Value, Value], Value]


def _unary(kind: str) -> Unary:
    def emit(g: Graph, x: Value) -> Value:
        return g.emit(kind, [x], x.type)

    emit.__doc__ = f"{kind} of each element; the result has x's type."
    return emit


def _binary(kind: str, *, result: DType | None = None, activation: bool = False) -> Binary:
    def emit(g: Graph, x: Value, y: Value) -> Value:
        shape = dims.broadcast(x.shape, y.shape)
        attrs = {"fusedActivationFunction": NO_ACTIVATION} if activation else {}
        return g.emit(kind, [x, y], TensorType(shape, result or x.dtype), **attrs)

    emit.__doc__ = f"{kind} of broadcast operands of one dtype."
    return emit


NO_ACTIVATION = 0  # ActivationFunctionType.NONE

abs = _unary("ABS")
ceil = _unary("CEIL")
cos = _unary("COS")
elu = _unary("ELU")
exp = _unary("EXP")
floor = _unary("FLOOR")
hard_swish = _unary("HARD_SWISH")
log = _unary("LOG")
logical_not = _unary("LOGICAL_NOT")
logistic = _unary("LOGISTIC")
neg = _unary("NEG")
relu = _unary("RELU")
relu6 = _unary("RELU6")
relu_0_to_1 = _unary("RELU_0_TO_1")
relu_n1_to_1 = _unary("RELU_N1_TO_1")
round = _unary("ROUND")
rsqrt = _unary("RSQRT")
sign = _unary("SIGN")
sin = _unary("SIN")
sqrt = _unary("SQRT")
square = _unary("SQUARE")
tanh = _unary("TANH")

add = _binary("ADD", activation=True)
atan2 = _binary("ATAN2")
bitwise_xor = _binary("BITWISE_XOR")
div = _binary("DIV", activation=True)
equal = _binary("EQUAL", result=DType.BOOL)
floor_div = _binary("FLOOR_DIV")
floor_mod = _binary("FLOOR_MOD")
greater = _binary("GREATER", result=DType.BOOL)
greater_equal = _binary("GREATER_EQUAL", result=DType.BOOL)
less = _binary("LESS", result=DType.BOOL)
less_equal = _binary("LESS_EQUAL", result=DType.BOOL)
logical_and = _binary("LOGICAL_AND", result=DType.BOOL)
logical_or = _binary("LOGICAL_OR", result=DType.BOOL)
maximum = _binary("MAXIMUM")
minimum = _binary("MINIMUM")
mul = _binary("MUL", activation=True)
not_equal = _binary("NOT_EQUAL", result=DType.BOOL)
pow = _binary("POW")
right_shift = _binary("RIGHT_SHIFT")
squared_difference = _binary("SQUARED_DIFFERENCE")
stablehlo_and = _binary("STABLEHLO_AND")  # bitwise; both operands of one shape
stablehlo_shift_left = _binary("STABLEHLO_SHIFT_LEFT")  # int32; both operands of one shape
sub = _binary("SUB", activation=True)


def bitcast(g: Graph, x: Value, dtype: DType) -> Value:
    """The bits of x read as another type of the same width."""
    return g.emit("BITCAST", [x], retyped(x, dtype=dtype))


def cast(g: Graph, x: Value, dtype: DType | str) -> Value:
    """Convert the elements to `dtype`; x itself where it has it already."""
    dtype = DType(dtype)
    if x.dtype == dtype:
        return x
    if x.const is not None:
        return const(x.const.astype(dtype))
    return g.emit("CAST", [x], retyped(x, dtype=dtype), inDataType=x.dtype, outDataType=dtype)


def gelu(g: Graph, x: Value, *, approximate: bool = False) -> Value:
    """x * Phi(x); with `approximate`, by tanh."""
    return g.emit("GELU", [x], x.type, approximate=approximate)


def leaky_relu(g: Graph, x: Value, *, alpha: float) -> Value:
    """x where positive, else alpha * x."""
    return g.emit("LEAKY_RELU", [x], x.type, alpha=alpha)


def prelu(g: Graph, x: Value, alpha: Value) -> Value:
    """x where positive, else alpha * x with a constant alpha that broadcasts to x."""
    return g.emit("PRELU", [x, alpha], x.type)


def select_v2(g: Graph, condition: Value, x: Value, y: Value) -> Value:
    """x where the condition holds, else y; all three broadcast."""
    shape = dims.broadcast(condition.shape, x.shape, y.shape)
    return g.emit("SELECT_V2", [condition, x, y], TensorType(shape, x.dtype))
