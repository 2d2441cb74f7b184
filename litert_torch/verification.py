"""Whether a converted model computes what eager PyTorch does, output by output."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils import _pytree as pytree

from litert_torch.converter import constants
from litert_torch.converter.frontends.module import eval_mode
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature, output_names
from litert_torch.errors import InvalidInputError, VerificationError
from litert_torch.runtime_bindings import Model

_log = logging.getLogger("litert_torch")

Array = npt.NDArray[Any]

DEFAULT_BOUNDS = {"float32": 1e-4, "float64": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Largest relative error by the dtype of an output. Integers and booleans must be equal."""


@dataclass(frozen=True)
class OutputComparison:
    """One output of the model beside eager PyTorch's.

    Attributes:
        name: The output's name in the signature.
        dtype: Its element type.
        shape: Its shape.
        max_abs_error: Largest absolute difference; infinite where only one side is finite.
        relative_error: `max_abs_error` over the largest absolute value that PyTorch gives, or
            itself where that is zero. For integers and booleans, the fraction that differs.
        snr_db: Signal-to-noise ratio in decibels, 10 log10(sum(y²) / sum((y - y')²)); infinite
            where the two are equal.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs_error: float
    relative_error: float
    snr_db: float

    def __str__(self) -> str:
        return (
            f"{self.name} {self.dtype}{list(self.shape)}: max abs error {self.max_abs_error:.3g}, "
            f"relative {self.relative_error:.3g}, SNR {self.snr_db:.1f} dB"
        )

    def within(self, bound: float | None) -> bool:
        """Whether the relative error is at most `bound`, by default that of the dtype."""
        return self.relative_error <= (
            DEFAULT_BOUNDS.get(self.dtype, 0.0) if bound is None else bound
        )


@dataclass(frozen=True)
class Report:
    """All outputs of one signature beside eager PyTorch's."""

    signature: str
    outputs: tuple[OutputComparison, ...]

    def __str__(self) -> str:
        return "\n".join([f"signature {self.signature}", *(f"  {o}" for o in self.outputs)])

    def within(self, bound: float | None = None) -> bool:
        """Whether each output's relative error is at most `bound`, by default that of its dtype."""
        return all(o.within(bound) for o in self.outputs)


def compare(
    model: Model,
    module: torch.nn.Module,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    signature_name: str = DEFAULT_SIGNATURE_NAME,
) -> Report:
    """Run `model` in LiteRT and `module` in eager PyTorch on the same inputs.

    Args:
        model: What `module` was converted to.
        module: Run in eval mode, and left as it was.
        args: Positional inputs, nested as the sample inputs were.
        kwargs: Keyword inputs.
        signature_name: Which entry point of the model.

    Raises:
        InvalidInputError: the inputs are none, or do not fit the signature (also a ValueError).
        VerificationError: the two differ in the number of outputs, their shapes or dtypes.
    """
    return _compare(model, Signature.checked(signature_name, module, args, kwargs))


@dataclass(frozen=True)
class Comparison:
    """Several models of one module beside eager PyTorch, by what they are called."""

    reports: Mapping[str, Report]

    def __str__(self) -> str:
        head = ("output", "model", "dtype", "shape", "max abs error", "relative", "SNR")
        rows = [head]
        for i, output in enumerate(next(iter(self.reports.values())).outputs):
            for name, report in self.reports.items():
                o = report.outputs[i]
                errors = (f"{o.max_abs_error:.3g}", f"{o.relative_error:.3g}", f"{o.snr_db:.1f} dB")
                rows.append((output.name, name, o.dtype, str(list(o.shape)), *errors))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows)
        return "\n".join(line.rstrip() for line in lines)

    def within(self, bound: float | None = None) -> bool:
        """Whether each model's every output is within `bound`, by default that of its dtype."""
        return all(r.within(bound) for r in self.reports.values())


def compare_all(
    models: Mapping[str, Model],
    module: torch.nn.Module,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    signature_name: str = DEFAULT_SIGNATURE_NAME,
) -> Comparison:
    """As `compare`, for several models, such as a .tflite file and a TPU artifact; one table.

    Raises:
        InvalidInputError: there are no models, or as `compare` raises it.
        VerificationError: as `compare` raises it.
    """
    if not models:
        raise InvalidInputError("there are no models to compare")
    entry = Signature.checked(signature_name, module, args, kwargs)
    return Comparison({name: _compare(model, entry) for name, model in models.items()})


def bound_of(verify: bool | float, *, quantized: bool) -> float | None:
    """The bound that `convert(verify=...)` asks for; None stands for the defaults."""
    if verify is True:
        return math.inf if quantized else None
    if not verify >= 0:
        raise InvalidInputError(
            f"verify must be a bool or a relative error of 0 or more, not {verify}"
        )
    return float(verify)


def verify(model: Model, signature: Signature, bound: float | None = None) -> Report:
    """Compare on the sample inputs; raise where an output differs by more than `bound`.

    Raises:
        VerificationError: names each output that differs and the first op from which on they do.
    """
    report = _compare(model, signature)
    _log.info("%s", report)
    if not report.within(bound):
        raise VerificationError(_explain(report, signature, bound))
    return report


def _explain(report: Report, signature: Signature, bound: float | None) -> str:
    from litert_torch.debug.divergence import first_divergence

    wrong = [o for o in report.outputs if not o.within(bound)]
    rows = [f"{len(wrong)} of {len(report.outputs)} outputs differ from eager PyTorch's:"]
    rows += [f"  {o}" for o in wrong]
    limit = "the bound of the output's dtype" if bound is None else f"the bound of {bound:g}"
    rows.append(f"relative errors above {limit}; pass verify=<bound> to allow more")
    try:
        where = first_divergence(signature, bound)
    except Exception as error:  # the search converts parts of the model; the report matters more
        _log.info("the search for the first op that differs failed: %s", error)
        where = None
    rows.append(f"first op that differs: {where or 'not found; no part differs when run alone'}")
    return "\n".join(rows)


def _compare(model: Model, signature: Signature) -> Report:
    leaves = pytree.tree_leaves((signature.args, signature.kwargs))
    feed = {
        name: as_array(leaf)
        for name, leaf in zip(signature.input_names, leaves, strict=True)
        if isinstance(leaf, torch.Tensor)
    }
    with eval_mode(signature.module), torch.no_grad():
        args, kwargs = copy.deepcopy((signature.args, signature.kwargs))
        expected = named_outputs(signature.module(*args, **kwargs))
    got = _by_name(model(signature_name=signature.name, **feed))
    if got.keys() != expected.keys():
        raise VerificationError(
            f"signature {signature.name} has the outputs {', '.join(sorted(got))}, "
            f"but PyTorch gives {', '.join(sorted(expected))}"
        )
    return Report(signature.name, tuple(compare_arrays(n, got[n], expected[n]) for n in expected))


def named_outputs(outputs: Any) -> dict[str, Array]:
    """The tensors of a module's result under the names that they have in the model."""
    leaves, spec = pytree.tree_flatten(outputs)
    pairs = zip(output_names(spec), leaves, strict=True)
    return {name: as_array(x) for name, x in pairs if isinstance(x, torch.Tensor)}


def _by_name(outputs: Any) -> dict[str, Array]:
    listed = outputs if isinstance(outputs, tuple) else (outputs,)
    named = (
        outputs if isinstance(outputs, dict) else {f"output_{i}": x for i, x in enumerate(listed)}
    )
    return {name: _as_pairs(x) if np.iscomplexobj(x) else x for name, x in named.items()}


def _as_pairs(x: Array) -> Array:
    """Complex numbers, which a TPU program gives as they are, as LiteRT has them."""
    return np.stack([x.real, x.imag], -1)


def compare_arrays(name: str, got: Array, expected: Array) -> OutputComparison:
    """How far `got` is from `expected`.

    Raises:
        VerificationError: they differ in shape or dtype.
    """
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        raise VerificationError(
            f"output {name} is {got.dtype}{list(got.shape)}, "
            f"but PyTorch gives {expected.dtype}{list(expected.shape)}"
        )
    kind = expected.dtype.name
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    x, y = got.astype(wide), expected.astype(wide)
    noise = _difference(x, y)
    max_abs = float(noise.max(initial=0.0))
    if kind in DEFAULT_BOUNDS or expected.dtype.kind == "c":
        peak = float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
        relative = max_abs / peak if peak else max_abs
    else:
        relative = float((noise > 0).mean()) if noise.size else 0.0
    snr = _snr_db(y, noise)
    return OutputComparison(name, kind, expected.shape, max_abs, relative, snr)


def _difference(x: Array, y: Array) -> Array:
    """Absolute differences; 0 where both are the same infinity or NaN, inf where only one is."""
    with np.errstate(invalid="ignore"):
        noise = np.abs(x - y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return np.where(same, 0.0, np.where(np.isnan(noise), np.inf, noise))


def _snr_db(y: Array, noise: Array) -> float:
    power = float(np.square(noise).sum())
    if power == 0:
        return math.inf
    signal = float(np.square(np.abs(y[np.isfinite(y)])).sum())
    return 10 * math.log10(signal / power) if signal and math.isfinite(power) else -math.inf


def as_array(tensor: torch.Tensor) -> Array:
    """The tensor as numpy holds it in LiteRT, complex numbers as pairs; a copy."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return constants.from_tensor(tensor.contiguous()).read().copy()
