"""Constants that are read when they are written, not before.

A graph never holds weight bytes: a `Constant` knows its shape, its dtype and how to read itself.
Transposing, casting or folding composes onto that reader, and the writer streams one tensor at a
time, so that peak memory does not grow with the model. Two constants with equal `key` are one
buffer in the file.
"""

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from litert_torch.converter.dtypes import DType

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]

_COMPARED_BY_CONTENT = 4096  # bytes; larger arrays are shared by identity only


@dataclass(frozen=True, eq=False)
class Constant:
    """A tensor known at conversion time.

    Attributes:
        shape: Its static shape.
        dtype: Its element type; sub-byte integers are read unpacked, one per int8.
        key: Equal keys mean equal contents, hence one buffer in the file.
    """

    shape: tuple[int, ...]
    dtype: DType
    key: Hashable
    _read: Callable[[], Array] = field(repr=False)

    def read(self) -> Array:
        """The contents, C-contiguous, of `dtype.numpy` and `shape`."""
        data = np.ascontiguousarray(self._read(), self.dtype.numpy)
        return data.reshape(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return self.dtype.bytes_of(self.size)

    def derive(
        self,
        key: Hashable,
        function: Callable[..., Array],
        *others: "Constant",
        shape: Sequence[int] | None = None,
        dtype: DType | None = None,
    ) -> "Constant":
        """A constant computed from this one (and `others`) by `function` when it is read.

        `key` names the computation: with equal operands, equal keys must mean equal results.
        """
        operands = (self, *others)
        return Constant(
            self.shape if shape is None else tuple(shape),
            dtype or self.dtype,
            combined_key(key, *(c.key for c in operands)),
            lambda: function(*(c.read() for c in operands)),
        )

    def transpose(self, perm: Sequence[int]) -> "Constant":
        """Axes reordered: result axis i is axis perm[i]."""
        order = tuple(perm)
        shape = tuple(self.shape[axis] for axis in order)
        return self.derive(("transpose", order), lambda x: x.transpose(order), shape=shape)

    def reshape(self, shape: Sequence[int]) -> "Constant":
        """The same elements in row-major order under another shape."""
        new = tuple(shape)
        return self.derive(("reshape", new), lambda x: x.reshape(new), shape=new)

    def astype(self, dtype: DType) -> "Constant":
        """Elements converted as numpy does."""
        if dtype == self.dtype:
            return self
        return self.derive(("astype", dtype), lambda x: x.astype(dtype.numpy), dtype=dtype)


def combined_key(*parts: Hashable) -> bytes:
    """A key for what is computed from `parts`; of fixed size, however long the computation."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def from_array(array: npt.ArrayLike, dtype: DType | str | None = None) -> Constant:
    """A constant with the contents of `array`, which must not change afterwards."""
    data = np.asarray(array, None if dtype is None else DType(dtype).numpy)
    kind = DType(dtype) if dtype is not None else DType(data.dtype.name)
    data = np.ascontiguousarray(data).reshape(data.shape)
    small = data.nbytes <= _COMPARED_BY_CONTENT
    key = ("content", kind, data.shape, data.tobytes() if small else id(data))
    return Constant(data.shape, kind, key, lambda: data)


def from_tensor(tensor: "torch.Tensor") -> Constant:
    """A constant that reads `tensor`'s storage in place; equal views of it are one constant."""
    import torch

    tensor = tensor.detach()
    kind = DType(str(tensor.dtype).removeprefix("torch."))
    key = (
        "storage",
        tensor.untyped_storage().data_ptr() or id(tensor),
        tensor.storage_offset(),
        tensor.stride(),
        tuple(tensor.shape),
        kind,
    )

    def read() -> Array:
        if tensor.dtype is torch.bfloat16:
            return tensor.contiguous().view(torch.int16).numpy().view(DType.BFLOAT16.numpy)
        return tensor.numpy()

    return Constant(tuple(tensor.shape), kind, key, read)
