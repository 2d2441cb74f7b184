"""The lowest version of each operator that has what an op uses.

Delegates accept an operator up to some version, so a needlessly high one costs acceleration. The
rules are those of LiteRT's own versioning (tflite/converter/tools/versioning/op_version.cc).
"""

from collections.abc import Callable

from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Op

VERSIONS: dict[str, Callable[[Op], int]] = {}


def lowest_version(op: Op) -> int:
    """The version to write for `op`."""
    rule = VERSIONS.get(op.kind)
    return rule(op) if rule else 1


def _rule(*kinds: str) -> Callable[[Callable[[Op], int]], Callable[[Op], int]]:
    def register(function: Callable[[Op], int]) -> Callable[[Op], int]:
        for kind in kinds:
            VERSIONS[kind] = function
        return function

    return register


def _dtype(op: Op, i: int = 0) -> DType | None:
    v = op.inputs[i] if i < len(op.inputs) else None
    return v.dtype if v is not None else None


@_rule("FULLY_CONNECTED")
def _fully_connected(op: Op) -> int:
    if len(op.inputs) == 2 or op.inputs[2] is None:
        return 6
    return 5 if op.attrs.get("keepNumDims") else 1


@_rule("TRANSPOSE_CONV")
def _transpose_conv(op: Op) -> int:
    return 3 if len(op.inputs) == 4 else 1
