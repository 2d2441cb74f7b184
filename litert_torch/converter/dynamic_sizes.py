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
    if expr.is_Integer:
        return tfl.const([int(expr)], DType.INT32)
    axis = _axis(g, expr)
    if axis is not None:
        return axis
    if expr.is_Symbol:
        return _symbol(g, expr)
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


def _axis(g: Graph, expr: Any) -> Value | None:
    """The size of the first input axis that is exactly `expr`."""
    for v in g.inputs:
        for axis, s in enumerate(v.shape):
            if isinstance(s, Dim) and s.expr == expr:
                return tfl.strided_slice(g, tfl.shape(g, v), [axis], [axis + 1], [1])
    return None


def _symbol(g: Graph, symbol: Any) -> Value:
    """A symbol that an input axis is a multiple of, as 2*h: the axis divided."""
    for s in (s for v in g.inputs for s in v.shape if isinstance(s, Dim)):
        factor, rest = s.expr.as_coeff_Mul()
        axis = _axis(g, s.expr) if rest == symbol and factor.is_Integer else None
        if axis is not None:
            return tfl.floor_div(g, axis, tfl.const([int(factor)], DType.INT32))
    raise UnsupportedCaseError(f"the dynamic size {symbol} is not known from any input's shape")


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
