"""The ordered list of passes."""

from litert_torch.converter.passes import Pass, sweeping
from litert_torch.converter.passes.transposes import merge_transposes

PIPELINE: tuple[Pass, ...] = (
    sweeping(merge_transposes),  # first: leaves fewer ops for the rest to look at
)
