"""What a rule may ask of weights: their type, and how many of them share a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from litert_torch.converter.dtypes import DType
from litert_torch.errors import InvalidInputError

BLOCKS = (32, 64, 128, 256)


@dataclass(frozen=True)
class Weights:
    """How weights are stored.

    Attributes:
        dtype: int8, int4, int2 or float16; float32 leaves them as they are.
        per: A scale for each output channel, or one for the tensor.
        block: A scale for each run of this many input channels; int4 only.
    """

    dtype: DType
    per: Literal["channel", "tensor"] = "channel"
    block: int | None = None

    def __post_init__(self) -> None:
        if self.per not in ("channel", "tensor"):
            raise InvalidInputError(f"per must be 'channel' or 'tensor', not {self.per!r}")
        if self.block is not None and (self.dtype != DType.INT4 or self.block not in BLOCKS):
            raise InvalidInputError(
                f"LiteRT takes blocks of {', '.join(map(str, BLOCKS))} int4 weights; "
                f"got {self.dtype} with blocks of {self.block}"
            )

    @property
    def is_integer(self) -> bool:
        """Weights with scales."""
        return self.dtype.is_integer

    def __str__(self) -> str:
        if self.block is not None:
            return f"{self.dtype} block {self.block}"
        return f"{self.dtype} per {self.per}" if self.is_integer else str(self.dtype)


def int8(per: Literal["channel", "tensor"] = "channel") -> Weights:
    """8-bit weights: a quarter of float32's size."""
    return Weights(DType.INT8, per)


def int4(block: int | None = None, per: Literal["channel", "tensor"] = "channel") -> Weights:
    """4-bit weights, with a scale for each output channel or each block of 32, 64, 128 or 256."""
    return Weights(DType.INT4, per, block)


def int2(per: Literal["channel", "tensor"] = "channel") -> Weights:
    """2-bit weights: four values; for weights that were trained so."""
    return Weights(DType.INT2, per)


def float16() -> Weights:
    """Half precision: half of float32's size; computes in float32."""
    return Weights(DType.FLOAT16)


def float32() -> Weights:
    """Weights as they are: in a later rule, an exception to an earlier one."""
    return Weights(DType.FLOAT32)
