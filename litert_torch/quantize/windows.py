"""What the weights of a product or a convolution are multiplied by, as rows of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.ir import Op
from litert_torch.quantize.planning import weight_of

_SAME = 0  # schema.Padding
_PER_COLUMN = 2
_FEWEST = 256


@dataclass(frozen=True)
class Window:
    """How a kernel slides over an activation.

    Attributes:
        kernel: Height and width; (1, 1) where columns are multiplied alone.
        strides, dilation: Down and across.
        padded: As SAME does; else VALID.
        groups: Of channels, which see kernels of their own.
    """

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padded: bool = False
    groups: int = 1

    def columns(self, channels: int) -> int:
        """Numbers that one output is the weighted sum of."""
        return self.kernel[0] * self.kernel[1] * channels // self.groups

    def rows(self, x: Array) -> Array:
        """What each output sees of `x`, evenly picked where there is much more than it takes.

        Args:
            x: [..., channels], [batch, height, width, channels] where the kernel is not 1x1.

        Returns:
            [groups, rows, columns], columns in the order of the weights.
        """
        channels = x.shape[-1]
        if self.kernel == (1, 1) and self.strides == (1, 1):
            picked = _picked(x.reshape(-1, channels), channels // self.groups)
            return picked.reshape(len(picked), self.groups, -1).transpose(1, 0, 2)
        seen = _picked(self._views(x), self.columns(channels))
        # [rows, channels, kh, kw] to [groups, rows, kh * kw * channels of a group]
        parts = seen.reshape(len(seen), self.groups, -1, *self.kernel)
        return parts.transpose(1, 0, 3, 4, 2).reshape(self.groups, len(seen), -1)

    def _views(self, x: Array) -> Array:
        """[batch, down, across, channels, kh, kw], without copying."""
        spread = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        if self.padded:
            sizes = zip(x.shape[1:3], spread, self.strides, strict=True)
            missing = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in sizes]
            around = [(m // 2, m - m // 2) for m in missing]
            x = np.pad(x, [(0, 0), *around, (0, 0)])
        views = np.lib.stride_tricks.sliding_window_view(x, spread, axis=(1, 2))
        down, across = self.strides
        return views[:, ::down, ::across, :, :: self.dilation[0], :: self.dilation[1]]


def window_of(op: Op) -> Window | None:
    """The window of an op with weights; None where its weights do not see rows of columns."""
    w, x = weight_of(op), op.inputs[0] if op.inputs else None
    if w is None or x is None or x.const is not None:
        return None
    if op.kind == "FULLY_CONNECTED":
        return Window() if x.shape[-1] == w.shape[-1] else None
    if op.kind not in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        return None
    channels, each = x.shape[-1], w.shape[-1]
    if not isinstance(channels, int) or not isinstance(each, int):
        return None
    return Window(
        (int(w.shape[1]), int(w.shape[2])),
        (op.attrs["strideH"], op.attrs["strideW"]),
        (op.attrs["dilationHFactor"], op.attrs["dilationWFactor"]),
        op.attrs["padding"] == _SAME,
        channels if op.kind == "DEPTHWISE_CONV_2D" else channels // each,
    )


def _picked(positions: Array, columns: int) -> Array:
    """Rows [rows, ...] of positions [..., *rest], where rest is the last axis or the last three."""
    leading = positions.ndim - (1 if positions.ndim == 2 else 3)
    count = int(np.prod(positions.shape[:leading]))
    most = max(_FEWEST, _PER_COLUMN * columns)
    if count <= most:
        return positions.reshape(count, *positions.shape[leading:])
    picks = (np.arange(most) * (count / most)).astype(np.int64)
    return positions[np.unravel_index(picks, positions.shape[:leading])]
