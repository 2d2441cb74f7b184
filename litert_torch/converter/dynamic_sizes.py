"""Dynamic sizes as int32 tensors, computed when the model runs from the shapes of its inputs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim, Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.errors import UnsupportedCaseError


def vector(g: Graph, sizes: Sequence[Size]) -> Value:
    """The sizes as an int32 vector."""
    return tfl.concatenation(g, [_element(g, s) for s in sizes], axis=0)


def scalar(g: Graph, size: Size) -> Value:
    """The size as an int32 scalar."""
    return tfl.reshape(g, _element(g, size), ())


def _element(g: Graph, size: Size) -> Value:
    if isinstance(size, int):
        return tfl.const([size], DType.INT32)
    return _evaluate(g, size.expr)


def _evaluate(g: Graph, expr: Any) -> Value:
    """An expression as an int32 vector of one element."""
    if expr.is_Symbol:
        return _symbol(g, expr)
    if expr.is_Integer:
        return tfl.const([int(expr)], DType.INT32)
    name = type(expr).__name__
    if name == "floor" and len(expr.args) == 1:
        numerator, denominator = expr.args[0].as_numer_denom()
        return tfl.floor_div(g, _evaluate(g, numerator), _evaluate(g, denominator))
    if name == "Pow" and expr.args[1].is_Integer and expr.args[1] > 0:
        return _fold(g, tfl.mul, [expr.args[0]] * int(expr.args[1]))
    if name in _BINARY:
        return _fold(g, _BINARY[name], expr.args)
    raise UnsupportedCaseError(f"cannot compute the dynamic size {expr} at run time")


def _fold(g: Graph, op: Callable[[Graph, Value, Value], Value], operands: Sequence[Any]) -> Value:
    values = [_evaluate(g, operand) for operand in operands]
    return functools.reduce(lambda a, b: op(g, a, b), values)


def _symbol(g: Graph, symbol: Any) -> Value:
    """The size of the first input axis that is exactly this symbol."""
    for v in g.inputs:
        for axis, s in enumerate(v.shape):
            if isinstance(s, Dim) and s.expr == symbol:
                return tfl.strided_slice(g, tfl.shape(g, v), [axis], [axis + 1], [1])
    raise UnsupportedCaseError(f"the dynamic size {symbol} is no input's own axis")


_BINARY: dict[str, Callable[[Graph, Value, Value], Value]] = {
    "Add": tfl.add,
    "Mul": tfl.mul,
    "FloorDiv": tfl.floor_div,
    "CleanDiv": tfl.floor_div,
    "Mod": tfl.floor_mod,
    "PythonMod": tfl.floor_mod,
    "Max": tfl.maximum,
    "Min": tfl.minimum,
}
