"""Ops that treat the real and the imaginary part alike: views, joins, sums.

Each is the lowering for real tensors, once for each part.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from litert_torch.converter.complex_values import ComplexValue
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers, lowers_complex
from litert_torch.converter.lowerings.creation import filled
from litert_torch.converter.lowerings.promotion import as_float
from litert_torch.converter.registry import signature_of

aten = torch.ops.aten


def as_complex(g: Graph, x: Any) -> Any:
    """A tensor or number as a `ComplexValue` (numbers: as a Python complex); lists one by one."""
    if isinstance(x, (list, tuple)):
        return [as_complex(g, v) for v in x]
    if isinstance(x, Value):
        return ComplexValue(as_float(g, x), filled(g, x.shape, 0.0, DType.FLOAT32))
    return x if isinstance(x, ComplexValue) or x is None else complex(x)


def _part(x: Any, name: str) -> Any:
    if isinstance(x, (list, tuple)):
        return [_part(v, name) for v in x]
    return x if x is None else getattr(x, name)


def _joined(real: Any, imag: Any) -> Any:
    if isinstance(real, (list, tuple)):
        return [ComplexValue(a, b) for a, b in zip(real, imag, strict=True)]
    return ComplexValue(real, imag)


def _by_part(op: OpOverload[Any, Any], data: Sequence[str]) -> Callable[..., Any]:
    """`op` of the real parts, then of the imaginary ones, of the arguments named in `data`."""
    signature = signature_of(op)

    def lowering(g: Graph, *args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(g, *args, **kwargs).arguments)
        del given["g"]
        numbers = {k: as_complex(g, v) if k in data else v for k, v in given.items()}
        results = []
        for name in ("real", "imag"):
            part = {k: _part(v, name) if k in data else v for k, v in numbers.items()}
            results.append(lowers.all()[op](g, **part))
        return _joined(*results)

    lowering.__name__ = str(op)
    lowering.__doc__ = "Each part by itself."
    lowering.__signature__ = signature  # type: ignore[attr-defined]
    return lowering


BY_PART: dict[OpOverload[Any, Any], tuple[str, ...]] = {
    **dict.fromkeys(
        [
            aten.add.Tensor,
            aten.add.Scalar,
            aten.rsub.Scalar,
            aten.rsub.Tensor,
            aten.sub.Tensor,
            aten.sub.Scalar,
            aten.where.Scalar,
            aten.where.ScalarOther,
            aten.where.ScalarSelf,
            aten.where.self,
        ],
        ("x", "other"),
    ),
    **dict.fromkeys(
        [aten.cat.default, aten.concat.default, aten.stack.default, aten.hstack.default],
        ("tensors",),
    ),
    **dict.fromkeys([aten.slice_scatter.default, aten.select_scatter.default], ("x", "src")),
    **dict.fromkeys([aten.constant_pad_nd.default, aten.masked_fill.Scalar], ("x", "value")),
    aten.copy.default: ("x", "src"),
    aten.index_put.default: ("x", "values"),
    aten.masked_fill.Tensor: ("x", "value"),
    **dict.fromkeys(
        [
            aten._unsafe_view.default,
            aten.alias.default,
            aten.broadcast_to.default,
            aten.chunk.default,
            aten.clone.default,
            aten.contiguous.default,
            aten.cumsum.default,
            aten.detach.default,
            aten.diag_embed.default,
            aten.diagonal.default,
            aten.expand.default,
            aten.flatten.using_ints,
            aten.flip.default,
            aten.gather.default,
            aten.index.Tensor,
            aten.index_select.default,
            aten.lift_fresh_copy.default,
            aten.mT.default,
            aten.mean.default,
            aten.mean.dim,
            aten.movedim.int,
            aten.movedim.intlist,
            aten.narrow.default,
            aten.neg.default,
            aten.numpy_T.default,
            aten.permute.default,
            aten.ravel.default,
            aten.repeat.default,
            aten.repeat_interleave.self_int,
            aten.reshape.default,
            aten.resolve_conj.default,
            aten.resolve_neg.default,
            aten.roll.default,
            aten.select.int,
            aten.slice.Tensor,
            aten.split.Tensor,
            aten.split.sizes,
            aten.split_with_sizes.default,
            aten.squeeze.default,
            aten.squeeze.dim,
            aten.squeeze.dims,
            aten.sum.default,
            aten.sum.dim_IntList,
            aten.swapaxes.default,
            aten.t.default,
            aten.tile.default,
            aten.transpose.int,
            aten.tril.default,
            aten.triu.default,
            aten.unbind.int,
            aten.unflatten.int,
            aten.unsqueeze.default,
            aten.view.default,
        ],
        ("x",),
    ),
}
"""Ops lowered part by part, and which of their arguments have parts."""

for _op, _data in BY_PART.items():
    lowers_complex(_op)(_by_part(_op, _data))


@lowers_complex(aten.view_as.default, aten.reshape_as.default)
def view_as(g: Graph, x: ComplexValue, other: ComplexValue | Value) -> Any:
    """Each part in the shape of `other`."""
    return lowers_complex.all()[aten.reshape.default](g, x, other.shape)


@lowers_complex(aten.expand_as.default)
def expand_as(g: Graph, x: ComplexValue, other: ComplexValue | Value) -> Any:
    """Each part broadcast to the shape of `other`."""
    return lowers_complex.all()[aten.broadcast_to.default](g, x, other.shape)


@lowers_complex(aten.pad.default)
def pad(
    g: Graph, x: ComplexValue, pad: Sequence[Any], mode: str = "constant", value: Any = None
) -> ComplexValue:
    """Each part padded; a constant is added to the real part only."""
    of_real = lowers.all()[aten.pad.default]
    zero = 0.0 if mode == "constant" else None
    return ComplexValue(of_real(g, x.real, pad, mode, value), of_real(g, x.imag, pad, mode, zero))
