"""Between PyTorch's [N, C, *spatial] and LiteRT's [N, *spatial, C].

Each image op goes there and back by itself; the layout pass removes the pairs between ops.
"""

from collections.abc import Callable, Sequence

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Size
from litert_torch.converter.ir import Graph, Value
from litert_torch.errors import UnsupportedCaseError

Pair = tuple[int, int]


def to_channel_last(g: Graph, x: Value) -> Value:
    """[N, C, *spatial] as [N, *spatial, C]."""
    if x.rank == 3:
        # at rank 4 the direction shows, which the layout pass goes by
        n, c, length = x.shape
        image = tfl.transpose(g, tfl.reshape(g, x, (n, c, 1, length)), (0, 2, 3, 1))
        return tfl.reshape(g, image, (n, length, c))
    return tfl.transpose(g, x, (0, *range(2, x.rank), 1))


def to_channel_first(g: Graph, x: Value) -> Value:
    """[N, *spatial, C] as [N, C, *spatial]."""
    if x.rank == 3:
        n, length, c = x.shape
        image = tfl.transpose(g, tfl.reshape(g, x, (n, 1, length, c)), (0, 3, 1, 2))
        return tfl.reshape(g, image, (n, c, length))
    return tfl.transpose(g, x, (0, x.rank - 1, *range(1, x.rank - 1)))


def on_channel_last(g: Graph, x: Value, spatial: int, function: Callable[[Value], Value]) -> Value:
    """`function` of x as [N, *spatial, C], its result as [N, C, *spatial]; x may lack N."""
    batched = x if x.rank == spatial + 2 else tfl.expand_dims(g, x, 0)
    y = to_channel_first(g, function(to_channel_last(g, batched)))
    return y if batched is x else tfl.reshape(g, y, y.shape[1:])


def as_image(g: Graph, x: Value) -> Value:
    """[N, L, C] as [N, 1, L, C], and [N, H, W, C] as it is."""
    return tfl.expand_dims(g, x, 1) if x.rank == 3 else x


def from_image(g: Graph, x: Value, rank: int) -> Value:
    """Undo `as_image` where the operand had `rank` 3."""
    return tfl.reshape(g, x, (x.shape[0], *x.shape[2:])) if rank == 3 else x


def per_axis(value: int | Sequence[int], spatial: int) -> tuple[int, ...]:
    """A number for each spatial axis, from one for all or one each."""
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * spatial if len(values) == 1 else values


def padded(g: Graph, x: Value, pads: Sequence[Pair], value: float = 0) -> Value:
    """[N, *spatial, C] with (before, after) elements added, or removed where negative."""
    if any(p < 0 for pair in pads for p in pair):
        begin = [0, *(max(-before, 0) for before, _ in pads), 0]
        size = [x.shape[0], *map(_cropped, x.shape[1:-1], pads), x.shape[-1]]
        x = tfl.slice(g, x, begin, size)
    return tfl.pad(g, x, [(0, 0), *((max(b, 0), max(a, 0)) for b, a in pads), (0, 0)], value)


def _cropped(size: Size, pads: Pair) -> Size:
    return size + min(pads[0], 0) + min(pads[1], 0)


def require_float(x: Value, what: str) -> None:
    """Raise where LiteRT's kernel would not take x's dtype."""
    if not x.dtype.is_float:
        raise UnsupportedCaseError(f"{what} of {x.dtype}: cast the operands to float32 first")
