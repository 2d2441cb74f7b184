"""0, 1, 2, ... along an axis whose size may be dynamic."""

import numpy as np

from litert_torch.converter import dynamic_sizes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const


def positions(g: Graph, size: Size) -> Value:
    """Int32 [size]: a constant, or a RANGE where the size is dynamic."""
    if isinstance(size, int):
        return const(np.arange(size), DType.INT32)
    limit = dynamic_sizes.scalar(g, size)
    return tfl.range(g, const(0, DType.INT32), limit, const(1, DType.INT32), size)
