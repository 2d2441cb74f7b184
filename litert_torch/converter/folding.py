"""Constant folding: an op whose tensors are all constants is run by PyTorch when it is written.

Nothing is computed while the graph is built: a `Folded` remembers the op and its operands, so
that a folded weight costs no memory and has exactly the value that eager PyTorch gives it.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch._ops import OpOverload
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from litert_torch.converter import constants, ir
from litert_torch.converter.complex_values import ComplexValue
from litert_torch.converter.constants import Constant
from litert_torch.converter.dims import Dim, is_static, static
from litert_torch.converter.dtypes import DType

_KEEPS_INTEGERS = "quantized_decomposed::dequantize"  # folded, weights would be floats again
_ALWAYS = 1 << 20  # bytes; a larger result is folded only if it is no larger than what made it


@dataclass(frozen=True, eq=False)
class Folded:
    """A tensor known at conversion time, in the dtype that PyTorch gives it.

    `integers` is what `stored_integers` remembers of it.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    key: Hashable
    compute: Callable[[], torch.Tensor] = field(repr=False)
    is_stored: bool = False
    integers: Any = None

    @classmethod
    def of_tensor(cls, tensor: torch.Tensor) -> "Folded":
        """A parameter, buffer or lifted constant."""
        plain = tensor.layout is torch.strided and not is_traceable_wrapper_subclass(tensor)
        key = constants.from_tensor(tensor).key if plain else id(tensor)
        return cls(tuple(tensor.shape), tensor.dtype, key, lambda: tensor.detach(), is_stored=True)

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def part(self, take: Callable[[torch.Tensor], torch.Tensor]) -> "Folded":
        """The real or imaginary part of a complex tensor; `take` is torch.real or torch.imag."""
        key = (take.__name__, self.key)
        return Folded(
            self.shape, self.dtype.to_real(), key, lambda: take(self.compute().resolve_conj())
        )

    def constant(self, dtype: DType) -> Constant:
        """The constant, converted to `dtype`."""
        stored = DType(str(self.dtype).removeprefix("torch."))

        def read() -> constants.Array:
            return constants.as_array(self.compute().contiguous())

        def read_rows(begin: int, end: int) -> constants.Array:
            return constants.as_array(self.compute()[begin:end].contiguous())

        rows = read_rows if self.is_stored and self.shape else None
        return Constant(self.shape, stored, self.key, read, rows).astype(dtype)


def fold(op: OpOverload[Any, Any], args: Any, kwargs: Any, fake: Any) -> Any:
    """The op's result as `Folded`, or None where it depends on inputs or is better computed."""
    fakes = list(fake) if isinstance(fake, (tuple, list)) else [fake]
    if not all(isinstance(f, torch.Tensor) for f in fakes) or not is_deterministic(op):
        return None
    if op._schema.name.startswith(_KEEPS_INTEGERS):
        return None
    leaves, spec = pytree.tree_flatten((args, kwargs))
    if op in _SHAPE_ONLY:
        leaves = [_shape_of(leaf) for leaf in leaves]
    if any(
        isinstance(leaf, (ir.Value, ComplexValue, Dim)) or not _is_known(leaf) for leaf in leaves
    ):
        return None
    operands = sum(leaf.nbytes for leaf in leaves if isinstance(leaf, Folded))
    if sum(_nbytes(f) for f in fakes) > max(_ALWAYS, operands):
        return None
    key = constants.combined_key(str(op), str(spec), *(_leaf_key(leaf) for leaf in leaves))
    call = _Call(op, leaves, spec, key)

    def result(i: int | None, f: torch.Tensor) -> Folded:
        shape = tuple(int(s) for s in f.shape)
        compute = call.run if i is None else lambda: call.run()[i]
        return Folded(shape, f.dtype, (key, i), compute)

    if isinstance(fake, (tuple, list)):
        return [result(i, f) for i, f in enumerate(fakes)]
    return result(None, fake)


@dataclass(frozen=True, eq=False)
class _Call:
    """An op on constants, run when a result is read."""

    op: OpOverload[Any, Any]
    leaves: list[Any]
    spec: pytree.TreeSpec
    key: bytes

    def run(self) -> Any:
        """The op's results; what several operands share is computed once for each read."""
        outermost = not hasattr(_reading, "results")
        if outermost:
            _reading.results = {}
        try:
            if self.key not in _reading.results:
                _reading.results[self.key] = self._compute()
            return _reading.results[self.key]
        finally:
            if outermost:
                del _reading.results

    def _compute(self) -> Any:
        real = [leaf.compute() if isinstance(leaf, Folded) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(real, self.spec)
        with torch.no_grad():
            return self.op(*args, **kwargs)


_reading = threading.local()


aten = torch.ops.aten
_SHAPE_ONLY = frozenset(
    {
        aten.full_like.default,
        aten.new_full.default,
        aten.new_ones.default,
        aten.new_zeros.default,
        aten.ones_like.default,
        aten.zeros_like.default,
    }
)
"""Ops that look at a tensor's shape and dtype only."""


def _shape_of(leaf: Any) -> Any:
    """A tensor of unknown contents in place of a Value with a static shape."""
    if not isinstance(leaf, ir.Value) or not is_static(leaf.shape):
        return leaf
    return empty(torch.empty(static(leaf.shape), dtype=getattr(torch, leaf.dtype), device="meta"))


def is_empty(fake: Any) -> bool:
    """Whether a tensor, or each of several, has no elements, and so nothing that could vary."""
    fakes = fake if isinstance(fake, (tuple, list)) else [fake]
    return bool(fakes) and all(isinstance(f, torch.Tensor) and _nbytes(f) == 0 for f in fakes)


def empty(fake: Any) -> Any:
    """`fake` as `Folded` of undefined contents."""
    if isinstance(fake, (tuple, list)):
        return [empty(f) for f in fake]
    shape, dtype = tuple(fake.shape), fake.dtype
    return Folded(shape, dtype, ("empty", shape, dtype), lambda: torch.empty(shape, dtype=dtype))


def as_values(tree: Any, compute_dtype: Callable[[torch.dtype], DType]) -> Any:
    """The tree with each `Folded` as a constant of its compute type; complex ones are pairs."""

    def value(leaf: Any) -> Any:
        if not isinstance(leaf, Folded):
            return leaf
        if leaf.dtype.is_complex:
            return ComplexValue(value(leaf.part(torch.real)), value(leaf.part(torch.imag)))
        return ir.const(leaf.constant(compute_dtype(leaf.dtype)))

    return pytree.tree_map(value, tree)


def _is_known(leaf: Any) -> bool:
    known = (Folded, int, float, bool, complex, str, type(None), torch.dtype, torch.device)
    return isinstance(leaf, (*known, torch.layout, torch.memory_format))


def _leaf_key(leaf: Any) -> Hashable:
    return leaf.key if isinstance(leaf, Folded) else (type(leaf), str(leaf))


def _nbytes(fake: torch.Tensor) -> int:
    if not all(isinstance(s, int) for s in fake.shape):
        return 1 << 62
    return fake.numel() * fake.element_size()


def is_deterministic(op: Any) -> bool:
    """Whether `op` writes nothing and gives the same result every time."""
    return (
        isinstance(op, OpOverload)
        and torch.Tag.nondeterministic_seeded not in op.tags
        and not op._schema.is_mutable
    )
