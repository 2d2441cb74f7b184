"""Which TRANSPOSEs move channels, and in which direction."""

from litert_torch.converter.ir import Graph, Op, Value
from litert_torch.converter.passes.layout.rules import first_perm, last_perm, rule_of
from litert_torch.converter.passes.transposes import permutation

TO_LAST, TO_FIRST = "to last", "to first"


def transpose_roles(graph: Graph) -> dict[Op, str]:
    """TO_LAST or TO_FIRST for each TRANSPOSE that moves the channels.

    At rank 3 the two are the same permutation. There the role is the one that connects to image
    tensors: TO_LAST where what it reads is in a region of ops that run either way with a rank-4 or
    rank-5 channel move, TO_FIRST where what it makes is.
    """
    roles: dict[Op, str] = {}
    ambiguous: list[Op] = []
    regions = _Regions()
    for op in graph.ops:
        perm = permutation(op)
        if perm is None:
            _connect(op, regions)
        elif len(perm) == 3 and perm == [0, 2, 1]:
            ambiguous.append(op)
        elif len(perm) > 3 and perm == last_perm(len(perm)):
            roles[op] = TO_LAST
        elif len(perm) > 3 and perm == first_perm(len(perm)):
            roles[op] = TO_FIRST
    moved = {
        regions.of(op.inputs[0] if role == TO_LAST else op.output) for op, role in roles.items()
    }
    for op in ambiguous:
        if regions.of(op.inputs[0]) in moved:
            roles[op] = TO_LAST
        elif regions.of(op.output) in moved:
            roles[op] = TO_FIRST
    return roles


def _connect(op: Op, regions: "_Regions") -> None:
    rule = rule_of(op)
    if rule is None or rule.frees_output:
        return
    for i in rule.data:
        for v in op.outputs:
            regions.join(op.inputs[i], v)


class _Regions:
    """Values connected by ops that run either way (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[Value | None, Value | None] = {}

    def of(self, v: Value | None) -> Value | None:
        """The representative of v's region."""
        while (parent := self._parent.get(v, v)) is not v:
            self._parent[v] = self._parent.get(parent, parent)
            v = parent
        return v

    def join(self, a: Value | None, b: Value | None) -> None:
        """Put two values in one region."""
        self._parent[self.of(a)] = self.of(b)
