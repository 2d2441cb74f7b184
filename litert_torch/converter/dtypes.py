"""Element types of LiteRT tensors."""

import enum
from typing import Any

import ml_dtypes
import numpy as np


class DType(enum.StrEnum):
    """An element type; equal to its own name, so `x.dtype == "int32"` reads well."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT64 = "float64"
    INT2 = "int2"
    INT4 = "int4"
    UINT4 = "uint4"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    BOOL = "bool"
    COMPLEX64 = "complex64"
    RESOURCE = "resource"

    @property
    def is_float(self) -> bool:
        """A real floating-point type."""
        return "float" in self.value

    @property
    def is_integer(self) -> bool:
        """A signed or unsigned integer type (not bool)."""
        return "int" in self.value

    @property
    def bits(self) -> int:
        """Bits per element in the file; bool takes a byte."""
        if self is DType.BOOL:
            return 8
        return int("".join(c for c in self.value if c.isdigit()))

    @property
    def numpy(self) -> np.dtype[Any]:
        """How numpy holds it: sub-byte integers unpacked in (u)int8, bfloat16 by ml_dtypes."""
        return np.dtype(_IN_NUMPY.get(self, self.value))

    def bytes_of(self, elements: int) -> int:
        """Bytes that `elements` of this type take in the file."""
        return (elements * self.bits + 7) // 8


_IN_NUMPY: dict[DType, Any] = {
    DType.INT2: "int8",
    DType.INT4: "int8",
    DType.UINT4: "uint8",
    DType.BFLOAT16: ml_dtypes.bfloat16,
}
