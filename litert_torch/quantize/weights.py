"""Float weights as constants of fewer bits, computed when the file is written.

Choosing the scales takes one look at each weight, one at a time; the integers are made from the
weight again as they are written. Nothing but the scales stays in memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from litert_torch.converter.constants import Array, Constant, combined_key
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Quantization, TensorType, Value
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.algorithms import CLIPPING
from litert_torch.quantize.algorithms.gptq import second_moment_key, with_compensation
from litert_torch.quantize.numerics import Layout, grid_of, rounded

BEST_CLIPPING = {DType.INT8: "min_max", DType.INT4: "mse", DType.INT2: "mse"}
"""8 bits have room for the whole range; fewer do better without the outermost elements."""


@dataclass
class WeightStore:
    """Quantized weights by what they were made from; equal ones are made once."""

    _made: dict[Hashable, Value] = field(default_factory=dict)

    def quantized(
        self,
        w: Value,
        dtype: DType,
        layout: Layout,
        algorithm: str | None,
        second_moment: Array | None = None,
        where: str = "",
    ) -> Value:
        """`w` as integers with their scales.

        Args:
            w: A float32 constant.
            dtype: int8, int4 or int2.
            layout: Which elements share a scale.
            algorithm: How scales are chosen; None is the best for the type.
            second_moment: For "gptq", the sum of x x^T over inputs of the op, [K, K].
            where: What to call the weight in an error.

        Raises:
            InvalidInputError: the weight has NaN or infinity.
        """
        assert w.const is not None
        moment = second_moment_key(second_moment)
        key = (w.const.key, w.shape, dtype, layout, algorithm, moment)
        if key not in self._made:
            self._made[key] = _quantized(w.const, dtype, layout, algorithm, second_moment, where)
        return self._made[key]


def _quantized(
    w: Constant,
    dtype: DType,
    layout: Layout,
    algorithm: str | None,
    second_moment: Array | None,
    where: str,
) -> Value:
    rows = layout.rows(w.read())
    if not np.isfinite(rows.sum(dtype=np.float64)):
        raise InvalidInputError(f"the weights of {where or 'an op'} have NaN or infinity")
    clipping = algorithm if algorithm in CLIPPING else BEST_CLIPPING[dtype]
    grid = grid_of(dtype, blocks=layout.block is not None)
    scales = CLIPPING[clipping](rows, grid)
    if layout.block is not None:
        scales = as_float16(scales)
    if second_moment is not None:
        constant = _compensated(w, rows, scales, dtype, layout, second_moment)
    else:
        constant = _lazily_rounded(w, scales, dtype, layout)
    shaped = scales.reshape(layout.scale_shape(w.shape))
    zeros = np.zeros(scales.size, np.int64)
    axis = 0 if layout.axis is None else layout.axis
    parameters = Quantization(shaped, zeros, axis, layout.block)
    return Value(TensorType(w.shape, dtype), const=constant, quantization=parameters)


def as_float16(scales: Array) -> Array:
    """The float16 numbers that blocks have for scales, as float32; never 0 nor infinite."""
    limits = np.finfo(np.float16)
    return (
        np.clip(scales, limits.smallest_subnormal, limits.max).astype(np.float16).astype(np.float32)
    )


def _lazily_rounded(w: Constant, scales: Array, dtype: DType, layout: Layout) -> Constant:
    shape = w.shape
    grid = grid_of(dtype, blocks=layout.block is not None)

    def integers(x: Array) -> Array:
        return layout.restored(rounded(layout.rows(x), scales, grid), shape)

    digest = combined_key(scales.tobytes())
    return w.derive(("rounded", dtype, layout, digest), integers, dtype=dtype)


def _compensated(
    w: Constant, rows: Array, scales: Array, dtype: DType, layout: Layout, second_moment: Array
) -> Constant:
    """The integers that GPTQ chooses, which stay in memory: an eighth of float32's size or less."""
    grid = grid_of(dtype, blocks=layout.block is not None)
    matrix = rows.reshape(-1, second_moment.shape[0])
    per_row = max(1, scales.size // len(matrix))
    chosen = with_compensation(matrix, scales.reshape(-1, per_row), grid, second_moment)
    integers = layout.restored(chosen.reshape(rows.shape), w.shape)
    key = combined_key("gptq", w.key, dtype, layout, second_moment_key(second_moment))
    return Constant(w.shape, dtype, key, lambda: integers)


def restored(v: Value) -> Array:
    """The float32 numbers that a quantized constant stands for."""
    q = v.quantization
    data = v.read()
    if q is None:
        return data.astype(np.float32)
    scales = np.asarray(q.scales, np.float32)
    if q.block_size is not None:
        blocks = data.reshape(*data.shape[:-1], -1, q.block_size)
        return (blocks * scales[..., None]).reshape(data.shape).astype(np.float32)
    zero_points = np.asarray(q.zero_points)
    if not q.is_per_tensor:
        along = [1] * data.ndim
        along[q.axis] = -1
        scales, zero_points = scales.reshape(along), zero_points.reshape(along)
    return ((data.astype(np.float32) - zero_points) * scales).astype(np.float32)
