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
from litert_torch.quantize.algorithms.gptq import SecondMoment, with_compensation
from litert_torch.quantize.algorithms.squant import balanced
from litert_torch.quantize.numerics import Grid, Layout, grid_of, rounded

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
        second_moment: SecondMoment | None = None,
        where: str = "",
        *,
        kernels: int | None = None,
    ) -> Value:
        """`w` as integers with their scales.

        Args:
            w: A float32 constant.
            dtype: int8, int4 or int2.
            layout: Which elements share a scale.
            algorithm: How scales are chosen; None is the best for the type.
            second_moment: Of what is multiplied by the weights: "gptq" then chooses the integers.
            where: What to call the weight in an error.
            kernels: Of a convolution's weights, the kernels in a row: rounding is then such that
                each one's errors cancel. None rounds to the nearest.

        Raises:
            InvalidInputError: the weight has NaN or infinity.
        """
        assert w.const is not None
        moment = second_moment.key if second_moment is not None else None
        key = (w.const.key, w.shape, dtype, layout, algorithm, moment, kernels)
        if key not in self._made:
            how = _How(dtype, layout, algorithm, kernels)
            self._made[key] = _quantized(w.const, how, second_moment, where)
        return self._made[key]


@dataclass(frozen=True)
class _How:
    """How a weight is quantized; see `WeightStore.quantized`."""

    dtype: DType
    layout: Layout
    algorithm: str | None
    kernels: int | None

    @property
    def grid(self) -> Grid:
        return grid_of(self.dtype, blocks=self.layout.block is not None)

    def scales(self, rows: Array) -> Array:
        name = self.algorithm if self.algorithm in CLIPPING else BEST_CLIPPING[self.dtype]
        found = CLIPPING[name](rows, self.grid)
        return found if self.layout.block is None else as_float16(found)

    def integers(self, w: Array, scales: Array) -> Array:
        rows = self.layout.rows(w)
        if self.kernels is None or self.layout.axis is None:
            return self.layout.restored(rounded(rows, scales, self.grid), w.shape)
        units = (rows / scales[:, None]).reshape(len(rows), -1, self.kernels)
        by_kernel = np.ascontiguousarray(units.transpose(0, 2, 1)).reshape(rows.shape)
        chosen = balanced(by_kernel, self.kernels, self.grid)
        chosen = chosen.reshape(len(rows), self.kernels, -1).transpose(0, 2, 1)
        return self.layout.restored(chosen.reshape(rows.shape), w.shape)


def _quantized(w: Constant, how: _How, second_moment: SecondMoment | None, where: str) -> Value:
    rows = how.layout.rows(w.read())
    if not np.isfinite(rows.sum(dtype=np.float64)):
        raise InvalidInputError(f"the weights of {where or 'an op'} have NaN or infinity")
    scales = how.scales(rows)
    if second_moment is not None:
        constant = _compensated(w, rows, scales, how, second_moment)
    else:
        key = ("rounded", how, combined_key(scales.tobytes()))
        constant = w.derive(key, lambda x: how.integers(x, scales), dtype=how.dtype)
    shaped = scales.reshape(how.layout.scale_shape(w.shape))
    zeros = np.zeros(scales.size, np.int64)
    axis = 0 if how.layout.axis is None else how.layout.axis
    parameters = Quantization(shaped, zeros, axis, how.layout.block)
    return Value(TensorType(w.shape, how.dtype), const=constant, quantization=parameters)


def as_float16(scales: Array) -> Array:
    """The float16 numbers that blocks have for scales, as float32; never 0 nor infinite."""
    limits = np.finfo(np.float16)
    return (
        np.clip(scales, limits.smallest_subnormal, limits.max).astype(np.float16).astype(np.float32)
    )


def _compensated(
    w: Constant, rows: Array, scales: Array, how: _How, second_moment: SecondMoment
) -> Constant:
    """The integers that GPTQ chooses, which stay in memory: a quarter of float32's size."""
    matrix = rows.reshape(-1, second_moment.total.shape[-1])
    per_row = max(1, scales.size // len(matrix))
    chosen = with_compensation(matrix, scales.reshape(-1, per_row), how.grid, second_moment)
    integers = how.layout.restored(chosen.reshape(rows.shape), w.shape)
    key = combined_key("gptq", w.key, how, second_moment.key)
    return Constant(w.shape, how.dtype, key, lambda: integers)


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
