"""Ops whose result has as many elements as the data decides, which LiteRT does not express."""

from typing import NoReturn

import torch

from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers
from litert_torch.errors import UnsupportedCaseError

aten = torch.ops.aten


def _refuse(instead: str) -> NoReturn:
    raise UnsupportedCaseError(f"the result's size depends on data; {instead}")


@lowers(aten.nonzero.default, aten.argwhere.default)
def nonzero(g: Graph, x: Value) -> Value:
    """Refused."""
    _refuse("keep the mask and use torch.where, or topk for a fixed number of positions")


@lowers(aten.where.default)
def where(g: Graph, condition: Value) -> list[Value]:
    """Refused."""
    _refuse("use torch.where(condition, a, b), or topk for a fixed number of positions")


@lowers(aten.masked_select.default)
def masked_select(g: Graph, x: Value, mask: Value) -> Value:
    """Refused."""
    _refuse("use torch.where(mask, x, 0)")


@lowers(aten.bincount.default)
def bincount(g: Graph, x: Value, weights: Value | None = None, minlength: Size = 0) -> Value:
    """Refused."""
    _refuse("use one_hot(x, num_classes).sum(0)")


@lowers(aten._unique2.default)
def unique2(
    g: Graph,
    x: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Value]:
    """Refused."""
    _refuse("compute unique values outside the model")


@lowers(aten.unique_dim.default)
def unique_dim(
    g: Graph,
    x: Value,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[Value]:
    """Refused."""
    _refuse("compute unique values outside the model")


@lowers(aten.unique_consecutive.default)
def unique_consecutive(
    g: Graph,
    x: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> list[Value]:
    """Refused."""
    _refuse("compute unique values outside the model")
