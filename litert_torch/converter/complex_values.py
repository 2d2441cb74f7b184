"""Complex tensors as pairs of real ones: LiteRT's kernels compute with real numbers only."""

from collections.abc import Callable
from dataclasses import dataclass

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Shape
from litert_torch.converter.ir import Graph, Value


@dataclass(frozen=True, eq=False)
class ComplexValue:
    """A complex tensor; both parts are float32 and have its shape."""

    real: Value
    imag: Value

    @property
    def shape(self) -> Shape:
        """The shape of the complex tensor."""
        return self.real.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.real.rank

    def map(self, function: Callable[[Value], Value]) -> "ComplexValue":
        """`function` of each part."""
        return ComplexValue(function(self.real), function(self.imag))


def interleaved(g: Graph, z: ComplexValue) -> Value:
    """Z as float32 [..., 2], the form it has at the borders of a file."""
    return tfl.concatenation(
        g, [tfl.expand_dims(g, part, -1) for part in (z.real, z.imag)], axis=-1
    )


def from_interleaved(g: Graph, x: Value) -> ComplexValue:
    """The complex tensor that float32 x [..., 2] holds."""
    shape = x.shape[:-1]
    begins = ((*[0] * len(shape), part) for part in (0, 1))
    parts = [tfl.reshape(g, tfl.slice(g, x, begin, (*shape, 1)), shape) for begin in begins]
    return ComplexValue(*parts)
