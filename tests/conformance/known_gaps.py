"""Entries of the OpInfo database that do not pass fully yet, with the reason.

Each is refused with an error that says so, unless it is listed in `WRONG`. The sweep fails when an
entry that passes is listed here, or one that fails is not.
"""

_ITERATIVE = "singular and eigenvalue decompositions are refused"
_FACTORS = "LU, LDL and QR factors have no lowering"
_EXPORT = "torch.export itself refuses it: it looks at a tensor's value"
_NAN = "LiteRT's maxima and minima drop NaN, and a check would cost more than the op"

GAPS: dict[str, str] = {}

WRONG: dict[str, str] = {}
