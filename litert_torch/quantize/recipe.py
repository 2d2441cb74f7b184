"""Recipes: ordered rules, which of a model's ops are quantized and how.

Example:
    recipe = Recipe.named("dynamic_wi8_afp32").rule(module="layers.0.*", weights=float32())
    model = litert_torch.convert(module, args, quant_config=recipe)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.calibration_data import Calibration, repeatable
from litert_torch.quantize.interfaces import Interface, Kind, normalization
from litert_torch.quantize.report import Report
from litert_torch.quantize.resuming import Resumable
from litert_torch.quantize.rules import Compute, Rule
from litert_torch.quantize.schemes import Weights, float16, int2, int4, int8

OBSERVERS = ("min_max", "moving_average", "percentile", "mse")


@dataclass(frozen=True)
class Recipe:
    """Rules for a model's ops; of the rules that match an op, the last one counts.

    Attributes:
        rules: In the order they were added.
        calibration: Batches of inputs, where a rule needs them: see `Recipe.static`.
        observer: How the range of an activation is taken from the batches.
        least_sqnr: In dB. A calibrated activation whose median channel int8 would leave less
            signal to noise stays in float; -inf for accelerators that compute on integers only.
        smoothing: See `smoothed`; None leaves it out.
        interface: See `with_interface`; None leaves inputs and outputs in float.
        report: What was done to the graphs of the conversions so far.
    """

    rules: tuple[Rule, ...] = ()
    calibration: Calibration | None = None
    observer: str = "min_max"
    least_sqnr: float = 12.0
    smoothing: float | None = None
    interface: Interface | None = None
    report: Report = field(default_factory=Report, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.observer not in OBSERVERS:
            raise InvalidInputError(
                f"no observer {self.observer!r}; there is: {', '.join(OBSERVERS)}"
            )

    @classmethod
    def named(
        cls, name: str, *, calibration: Calibration | None = None, observer: str = "min_max"
    ) -> Recipe:
        """One of the recipes of `names()`.

        Args:
            name: As "dynamic_wi8_afp32": how it computes, bits of weights, bits of activations.
                "wi4b32" is 4-bit weights in blocks of 32.
            calibration: For static recipes, as `Recipe.static` takes it.
            observer: See `Recipe.static`.

        Raises:
            InvalidInputError: there is no such recipe; names those that come near.
        """
        if name not in _NAMED:
            near = difflib.get_close_matches(name, _NAMED, 4, 0.5) or list(_NAMED)
            raise InvalidInputError(f"no recipe {name!r}; there is: {', '.join(near)}")
        rules = _NAMED[name]()
        if calibration is None and any(r.compute == "static" for r in rules):
            raise InvalidInputError(
                f"{name} needs calibration data: batches of inputs that are like real ones"
            )
        return cls(rules, calibration, observer)

    @classmethod
    def static(
        cls,
        name: str = "wi8_ai8",
        *,
        calibration: Calibration,
        observer: str = "min_max",
        least_sqnr: float = 12.0,
    ) -> Recipe:
        """Integer weights and activations; what computes in float is in the report.

        Args:
            name: "wi8_ai8", "wi4_ai8" or "wi8_ai16".
            calibration: Inputs that are like real ones: a list, a generator, or a function that
                returns one; each batch is an array, a tuple of arrays or a dict by input name.
            observer: How the range of an activation is taken from the batches: "min_max" covers
                all, "moving_average" averages the batches' ranges, "percentile" leaves out
                0.01 % of the elements, "mse" has the least squared error.
            least_sqnr: See the attribute.
        """
        recipe = cls.named(f"static_{name}", calibration=calibration, observer=observer)
        return replace(recipe, least_sqnr=least_sqnr)

    @staticmethod
    def names() -> tuple[str, ...]:
        """What `named` knows."""
        return tuple(_NAMED)

    def rule(
        self,
        module: str | re.Pattern[str] | None = None,
        op: str | None = None,
        *,
        name: str | None = None,
        min_size: int = 0,
        weights: Weights | None = None,
        compute: Compute | None = None,
        activations: DType | str | None = None,
        algorithm: str | None = None,
        optional: bool = False,
    ) -> Recipe:
        """This recipe and one more rule, which goes before those that it has.

        Args:
            module: Glob of the user's module paths ("layers.*.mlp" is also for what is inside), or
                a compiled regular expression.
            op: LiteRT op kind, as "FULLY_CONNECTED".
            name: Glob of names of results in the file.
            min_size: Only weights of at least so many elements.
            weights: int8(), int4(block=32), int2(), float16(), or float32() for none; int8() by
                default.
            compute: "dynamic", "weight_only" or "static"; by default "static" where `activations`
                is given, else "dynamic".
            activations: "int8" or "int16", for static ops.
            algorithm: How scales are chosen: "min_max", "mse", "octav", "percentile" or "gptq".
            optional: That it matches nothing is no error.

        Raises:
            InvalidInputError: an unknown op kind or algorithm (names those that come near).
        """
        pattern = f"regex:{module.pattern}" if isinstance(module, re.Pattern) else module
        chosen = compute or ("static" if activations is not None else "dynamic")
        kind = DType(activations) if activations is not None else None
        if chosen == "static" and kind is None:
            kind = DType.INT8
        added = Rule(
            module=pattern,
            op=op,
            name=name,
            min_size=min_size,
            weights=weights or int8(),
            compute=chosen,
            activations=kind,
            algorithm=algorithm,
            optional=optional,
        )
        return replace(self, rules=(*self.rules, added))

    def calibrated(self, calibration: Calibration, observer: str | None = None) -> Recipe:
        """This recipe with other calibration data."""
        return replace(self, calibration=calibration, observer=observer or self.observer)

    def smoothed(self, strength: float = 0.5) -> Recipe:
        """This recipe with SmoothQuant, which needs calibration data.

        Channels that stand out in what FULLY_CONNECTED reads are scaled down by one MUL, and its
        weights up, so that integers have room for the other channels.

        Args:
            strength: From 0, all difficulty stays with the activations, to 1, all goes to the
                weights.

        Raises:
            InvalidInputError: `strength` is not between 0 and 1.
        """
        if not 0 <= strength <= 1:
            raise InvalidInputError(f"strength must be between 0 and 1, not {strength}")
        return replace(self, smoothing=strength)

    def with_interface(
        self,
        inputs: Kind = "float32",
        outputs: Kind = "float32",
        *,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
    ) -> Recipe:
        """This recipe with inputs and outputs of 8 bits.

        Args:
            inputs: "uint8" takes pixels 0..255, "int8" pixels less 128; "float32" stays.
            outputs: "uint8" or "int8", whose scale and zero point are in the file.
            mean: With `std`, says that the model was trained on (pixel - mean) / std, pixels being
                0..255. One number becomes the scale and zero point of the input, and costs
                nothing as the model runs; one a channel costs a product and a sum.
            std: See `mean`. Without both, the input's scale is that of the calibration data.

        Raises:
            InvalidInputError: an unknown type, or numbers that do not go together.
        """
        first, second = normalization(mean, std)
        return replace(self, interface=Interface(inputs, outputs, first, second))

    def apply(self, graph: Graph) -> None:
        """Quantize `graph` in place; the report tells what was done.

        Raises:
            InvalidInputError: a rule that names a module or a tensor matches nothing, or a rule
                needs calibration data that is absent or does not fit.
        """
        from litert_torch.quantize import interfaces
        from litert_torch.quantize.apply import apply

        if self.calibration is not None:  # several passes, and several signatures, go through it
            object.__setattr__(self, "calibration", repeatable(self.calibration))
        apply(self, graph)
        if self.interface is not None:
            interfaces.apply(self, graph)
        if isinstance(self.calibration, Resumable):
            self.calibration.finished()

    def to_json(self) -> str:
        """The rules as JSON; `from_json` reads them back."""
        from litert_torch.quantize import recipe_files

        settings = {
            "observer": self.observer,
            "least_sqnr": self.least_sqnr,
            "smoothing": self.smoothing,
            "interface": self.interface and vars(self.interface),
        }
        return recipe_files.to_json(self.rules, settings)

    @classmethod
    def from_json(cls, text: str, *, calibration: Calibration | None = None) -> Recipe:
        """Rules that `to_json` wrote, or a recipe of ai-edge-quantizer.

        Raises:
            InvalidInputError: the text is neither.
        """
        from litert_torch.quantize import recipe_files

        rules, settings = recipe_files.from_json(text)
        return cls(rules, calibration, **settings)


def _weights(weights: Weights, compute: Compute, **ops: Weights) -> Callable[[], tuple[Rule, ...]]:
    """A rule for all ops, and exceptions by kind."""

    def rules() -> tuple[Rule, ...]:
        first = Rule(weights=weights, compute=compute)
        return first, *(Rule(op=k, weights=w, compute=compute) for k, w in ops.items())

    return rules


_CONVOLUTIONS: dict[str, Weights] = dict.fromkeys(
    ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "BATCH_MATMUL"), int8()
)
"""Stay at 8 bits in recipes of fewer: XNNPACK has no other kernels for them."""


def _static(weights: Weights, activations: DType, **ops: Weights) -> Callable[[], tuple[Rule, ...]]:
    def rules() -> tuple[Rule, ...]:
        first = Rule(weights=weights, compute="static", activations=activations)
        return first, *(
            Rule(op=k, weights=w, compute="static", activations=activations) for k, w in ops.items()
        )

    return rules


def _dynamic(weights: Weights, **ops: Weights) -> Callable[[], tuple[Rule, ...]]:
    """As `_weights`, but small filters keep 16 bits: the first ones of a network cost most."""

    def rules() -> tuple[Rule, ...]:
        small = Rule(op="CONV_2D", weights=float16(), compute="weight_only")
        large = Rule(op="CONV_2D", min_size=_SMALL_FILTER, weights=int8())
        return (*_weights(weights, "dynamic", **ops)(), small, large)

    return rules


_SMALL_FILTER = 8192
"""Elements; below it, 8 bits save little, and in efficientnet-lite0 they were half the error."""

_NAMED: dict[str, Callable[[], tuple[Rule, ...]]] = {
    "dynamic_wi8_afp32": _dynamic(int8()),
    "dynamic_wi4_afp32": _dynamic(int4(), **_CONVOLUTIONS),
    **{
        f"dynamic_wi4b{b}_afp32": _dynamic(int4(block=b), EMBEDDING_LOOKUP=int4(), **_CONVOLUTIONS)
        for b in (32, 64, 128, 256)
    },
    "dynamic_wi2_afp32": _dynamic(int2(), EMBEDDING_LOOKUP=int4(), **_CONVOLUTIONS),
    "weight_only_wi8_afp32": _weights(int8(), "weight_only"),
    "weight_only_wi4_afp32": _weights(int4(), "weight_only"),
    "float16": _weights(float16(), "weight_only"),
    "static_wi8_ai8": _static(int8(), DType.INT8),
    "static_wi4_ai8": _static(int4(), DType.INT8, **_CONVOLUTIONS),
    "static_wi8_ai16": _static(int8(), DType.INT16),
}
