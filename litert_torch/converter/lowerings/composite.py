"""Marks of composites; `converter/composites.py` makes ops of what they enclose."""

from litert_torch.converter import composites
from litert_torch.converter.ir import Graph, Value
from litert_torch.converter.lowerings import lowers


@lowers(composites.mark_tensor)
def mark_tensor(
    g: Graph,
    x: Value,
    name: str,
    position: int,
    id: str,
    is_input: bool,
    attributes: str,
) -> Value:
    """x itself, at the border of a composite."""
    return g.emit(
        composites.MARK,
        [x],
        x.type,
        name=name,
        position=position,
        id=id,
        is_input=is_input,
        attributes=attributes,
    )
