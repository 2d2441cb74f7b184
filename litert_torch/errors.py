"""Every error this package raises on purpose.

* LiteRTTorchError
  x ConversionError
    . ExportError            torch.export refused the module
    . UnsupportedOpError     the model needs ATen ops that have no lowering
    . UnsupportedCaseError   an op is known, but not with these arguments
    . VerificationError      the file runs, but not as eager PyTorch does
    . DoesNotFitError        the program needs more memory than the TPU has
  x InvalidInputError        arguments of ours, or inputs of a model, are wrong (also a ValueError)
  x InvalidModelFileError    a file is truncated, foreign or damaged (also a ValueError)
  x OutputError              a file cannot be written (also an OSError)
  x MissingDependencyError   an optional package is needed and absent (also an ImportError)
  x InvalidGraphError        a pass or a lowering broke the graph: our bug, not the user's
"""

from collections.abc import Mapping, Sequence


class LiteRTTorchError(Exception):
    """Base of all errors; catch this one to catch them all."""


class ConversionError(LiteRTTorchError):
    """A model cannot become a LiteRT file."""


class ExportError(ConversionError):
    """torch.export refused the module; says where in the model and what to try."""


class UnsupportedOpError(ConversionError):
    """The exported program holds ops without a lowering; lists all of them at once."""

    def __init__(self, sites: Mapping[str, Sequence[object]], target: str = "LiteRT") -> None:
        self.sites = dict(sites)
        rows = [f"  {op}  x{len(at)}  first at {at[0]}" for op, at in sorted(sites.items())]
        super().__init__(
            f"No {target} lowering for {len(sites)} op{'s' if len(sites) > 1 else ''}:\n"
            + "\n".join(rows)
            + f"\nRegister one with litert_torch.{'tpu.' if target == 'TPU' else ''}lowers(...) "
            "(docs/add_an_op.md), or rewrite the lines shown."
        )


class UnsupportedCaseError(ConversionError):
    """A lowering met arguments that LiteRT cannot express."""


class VerificationError(ConversionError):
    """The converted file's outputs differ from eager PyTorch's."""


class DoesNotFitError(ConversionError):
    """The program needs more memory than a device of the TPU topology has."""


class InvalidInputError(LiteRTTorchError, ValueError):
    """Wrong arguments: sample inputs, signature names, input counts, shapes or dtypes."""


class InvalidModelFileError(LiteRTTorchError, ValueError):
    """The file is not a whole, well-formed LiteRT model."""


class OutputError(LiteRTTorchError, OSError):
    """A file could not be written; nothing partial is left behind."""


class MissingDependencyError(LiteRTTorchError, ImportError):
    """A package that this feature needs is not installed; the message says how to get it."""


class InvalidGraphError(LiteRTTorchError):
    """The graph breaks one of its own rules."""
