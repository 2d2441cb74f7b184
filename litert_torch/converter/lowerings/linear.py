"""Matrix products."""

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers

aten = torch.ops.aten


@lowers(aten.linear.default)
def linear(g: Graph, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """FULLY_CONNECTED keeps its operand's leading axes."""
    return tfl.fully_connected(g, x, weight, bias)
