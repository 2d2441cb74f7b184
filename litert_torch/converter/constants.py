"""Constants that are read when they are written, not before.

A graph never holds weight bytes: a `Constant` knows its shape, its dtype and how to read itself.
Transposing, casting or folding composes onto that reader, and the writer streams one tensor at a
time, so that peak memory does not grow with the model. Two constants with equal `key` are one
buffer in the file.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
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
    _read_rows: Callable[[int, int], Array] | None = field(default=None, repr=False)

    def read(self) -> Array:
        """The contents, C-contiguous, of `dtype.numpy` and `shape`."""
        data = np.ascontiguousarray(self._read(), self.dtype.numpy)
        return data.reshape(self.shape)

    def chunks(self, limit: int) -> Iterator[Array]:
        """The contents in order, in parts of about `limit` bytes where rows can be read alone."""
        if self._read_rows is None or self.nbytes <= limit or self.dtype.bits < 8:
            yield self.read()
            return
        step = max(1, limit * self.shape[0] // self.nbytes)
        for begin in range(0, self.shape[0], step):
            rows = self._read_rows(begin, min(begin + step, self.shape[0]))
            yield np.ascontiguousarray(rows, self.dtype.numpy)

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
        by_rows: bool = False,
    ) -> "Constant":
        """A constant computed from this one (and `others`) by `function` when it is read.

        `key` names the computation: with equal operands, equal keys must mean equal results.
        `by_rows` says that `function` of some rows of axis 0 gives the same rows of the result.
        """
        operands = (self, *others)
        read_rows = self._read_rows
        return Constant(
            self.shape if shape is None else tuple(shape),
            dtype or self.dtype,
            combined_key(key, *(c.key for c in operands)),
            lambda: function(*(c.read() for c in operands)),
            (lambda a, b: function(read_rows(a, b))) if by_rows and read_rows else None,
        )

    def transpose(self, perm: Sequence[int]) -> "Constant":
        """Axes reordered: result axis i is axis perm[i]."""
        order = tuple(perm)
        shape = tuple(self.shape[axis] for axis in order)
        return self.derive(
            ("transpose", order),
            lambda x: x.transpose(order),
            shape=shape,
            by_rows=bool(order) and order[0] == 0,
        )

    def reshape(self, shape: Sequence[int]) -> "Constant":
        """The same elements in row-major order under another shape."""
        new = tuple(shape)
        by_rows = bool(new) and new[:1] == self.shape[:1] and 0 not in new
        return self.derive(
            ("reshape", new),
            lambda x: x.reshape((-1, *new[1:]) if by_rows else new),
            shape=new,
            by_rows=by_rows,
        )

    def astype(self, dtype: DType) -> "Constant":
        """Elements converted as numpy does."""
        if dtype == self.dtype:
            return self
        return self.derive(
            ("astype", dtype), lambda x: x.astype(dtype.numpy), dtype=dtype, by_rows=True
        )


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
    tensor = tensor.detach()
    kind = DType(str(tensor.dtype).removeprefix("torch."))
    key = (
        "storage",
        tensor.untyped_storage().data_ptr() or id(tensor),
        tensor.storage_offset(),
        tensor.stride(),
        tuple(tensor.shape),
        kind,
        tensor.is_conj(),
        tensor.is_neg(),
    )

    rows = (lambda a, b: as_array(tensor[a:b])) if tensor.dim() else None
    return Constant(tuple(tensor.shape), kind, key, lambda: as_array(tensor), rows)


def as_array(tensor: "torch.Tensor") -> Array:
    """The elements as numpy holds them; the same memory where that is possible."""
    import torch

    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(DType.BFLOAT16.numpy)
    return tensor.resolve_conj().resolve_neg().numpy()
