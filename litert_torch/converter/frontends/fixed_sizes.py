"""A program that was traced once with dynamic sizes, read at chosen sizes.

Tracing costs more than everything after it, so entry points that differ in a size only share it.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import torch
from torch.export import ExportedProgram

from litert_torch.converter.torch_types import symbols_fixed
from litert_torch.errors import InvalidInputError


def fixed_sizes(
    program: ExportedProgram, sizes: Mapping[tuple[int, int], int]
) -> AbstractContextManager[None]:
    """Inside the block, every size in `program` that follows from `sizes` is a number.

    Args:
        program: What torch.export returned for dynamic shapes.
        sizes: The size of (leaf of the inputs, axis). A size below those that the program was
            traced for, as 1, is right where the model does nothing else at that size.

    Raises:
        InvalidInputError: that axis is not a dynamic one.
    """
    return symbols_fixed({_symbol(program, *axis): size for axis, size in sizes.items()})


def _symbol(program: ExportedProgram, leaf: int, axis: int) -> object:
    name = program.graph_signature.user_inputs[leaf]
    node = next(n for n in program.graph.nodes if n.op == "placeholder" and n.name == name)
    size = node.meta["val"].shape[axis]
    if not isinstance(size, torch.SymInt) or not size.node.expr.is_Symbol:
        raise InvalidInputError(f"axis {axis} of input {name} is {size}, not a dynamic size")
    return size.node.expr
