"""Linear maps along one axis whose weights PyTorch itself computes.

Interpolation and averaging along an axis are products with a constant matrix. Its columns are what
the PyTorch op gives for unit vectors, so that coordinates, filters and edges are exactly eager's.
"""

from collections.abc import Sequence
from typing import Any

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.constants import Array, Constant
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value, const


def resampled(
    g: Graph, x: Value, axis: int, size: int, op: Any, args: Sequence[Any], *, image: bool = False
) -> Value:
    """x with `axis` resampled to `size` by the linear `op`.

    Args:
        g: The graph.
        x: Any tensor with a static size along `axis`.
        axis: The axis to resample.
        size: Its new size.
        op: An ATen op of [N, C, L], or with `image` of [N, C, L, 2].
        args: The op's arguments after the tensor.
        image: Whether the op takes images.
    """
    weights = const(_matrix(int(x.shape[axis]), size, op, args, image))
    perm = [a for a in range(x.rank) if a != axis] + [axis]
    moved = tfl.fully_connected(g, tfl.transpose(g, x, perm), weights, None)
    return tfl.transpose(g, moved, [perm.index(a) for a in range(x.rank)])


def _matrix(size_in: int, size_out: int, op: Any, args: Sequence[Any], image: bool) -> Constant:
    """float32 [size_out, size_in]: what each element of the result takes of each operand's."""

    def read() -> Array:
        unit_vectors = torch.eye(size_in).reshape(1, size_in, size_in)
        if image:  # two equal columns: PyTorch's antialiased ops are wrong for one
            columns = unit_vectors[..., None].repeat(1, 1, 1, 2)
            return op(columns, *args)[0, :, :, 0].T.numpy()
        return op(unit_vectors, *args)[0].T.numpy()

    key = ("resampling", str(op), size_in, size_out, str(args))
    return Constant((size_out, size_in), DType.FLOAT32, key, read)
