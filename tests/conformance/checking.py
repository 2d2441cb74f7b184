"""The verdict on one call: passed, failed in some way, or not applicable."""

import importlib
import operator
import warnings
from dataclasses import dataclass

import torch
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from litert_torch.errors import ConversionError
from tests.conformance import comparison, gauges, tracing

PASSED, NOT_APPLICABLE = "passed", "not applicable"
REFUSED = "refused"  # a clear error
WRONG, LOAD, INTERNAL = "wrong", "does not run", "internal error"  # faults of ours
CRASH, TIMEOUT, UNTRACED = "crash", "timeout", "not traced"
GOOD = (PASSED, NOT_APPLICABLE)

NO_TENSOR = "no tensor output"
DATA_SHAPE = "output shape depends on data"
LAYOUT = "sparse, nested or quantized tensors"
GRADIENT = "gradients"
NO_CPU = "PyTorch does not run it on the CPU"

BACKENDS = {"litert": "tests.conformance.conversion", "tpu": "tests.conformance.tpu_conversion"}
"""Modules that make a program of a traced call: each has `converted`, `exported` and `runner`."""

RUNS = 50  # of a random op
REPEATS = 10  # of eager, after which an op that gave the same is taken for deterministic


@dataclass(frozen=True)
class Verdict:
    """What became of one call, and the reason."""

    status: str
    detail: str = ""


def check(name, call, *, backend="litert", export=False, made=None):
    """Convert the call, run it where it is meant to run and compare it with eager PyTorch.

    `made` keeps the programs of an entry's calls for those that differ in tensors' elements only.
    """
    conversion = importlib.import_module(BACKENDS[backend])
    reason = _not_applicable(name, call)
    if reason:
        return Verdict(NOT_APPLICABLE, reason)
    want = call.eager()
    if not want:
        return Verdict(NOT_APPLICABLE, NO_TENSOR)
    if any(map(_is_special, want)):
        return Verdict(NOT_APPLICABLE, LAYOUT)
    made = {} if made is None else made
    form = call.form
    if form not in made:
        made[form] = _made(name, call, conversion, export)
    if isinstance(made[form], Verdict):
        return made[form]
    module, program = made[form]
    try:
        return _compared(name, call, module, conversion.runner(program, call.tensors), want)
    except (RuntimeError, ValueError) as error:
        return Verdict(LOAD, f"{type(error).__name__}: {error}")


def _made(name, call, conversion, export):
    """The traced call and its program, or why there is none."""
    try:
        module = tracing.traced(call)
    except Exception as error:
        return _untraced(name, error)
    if _is_sized_by_data(module):
        return Verdict(NOT_APPLICABLE, DATA_SHAPE)
    try:
        return module, conversion.exported(call) if export else conversion.converted(module, call)
    except ConversionError as error:
        return Verdict(REFUSED, str(error))
    except Exception as error:
        return Verdict(INTERNAL, f"{type(error).__name__}: {error}")


def _not_applicable(name, call):
    """The reason why no file can be expected of these inputs, or None."""
    if name.startswith("jiterator"):
        return NO_CPU
    if name.endswith("_backward"):
        return GRADIENT
    return LAYOUT if any(map(_is_special, call.tensors)) else None


def _is_special(t):
    return t.layout is not torch.strided or t.is_nested or t.is_quantized


def _untraced(name, error):
    kind = type(error).__name__
    if kind == "DynamicOutputShapeException":
        return Verdict(NOT_APPLICABLE, DATA_SHAPE)
    if name in ("nn.functional.one_hot", "tensor_split"):  # classes, or parts, to be found out
        return Verdict(NOT_APPLICABLE, DATA_SHAPE)
    if isinstance(error, GuardOnDataDependentSymNode):
        return Verdict(UNTRACED, "torch.export refuses: it branches on a tensor's value")
    return Verdict(UNTRACED, f"{kind}: {str(error).strip().splitlines()[0] if str(error) else ''}")


def _is_sized_by_data(module):
    """Whether a result's size is known only when the op runs."""
    (results,) = (n.args[0] for n in module.graph.nodes if n.op == "output")
    nodes = [n for n in results if isinstance(n, torch.fx.Node)]
    sizes = [s for n in nodes for s in n.meta["val"].shape]
    return any(not isinstance(s, int) for s in sizes) or any(map(_counts_elements, nodes))


def _counts_elements(node):
    """An op that sizes its result by data; torch infers the size where the input is empty."""
    if node.target is operator.getitem:
        node = node.args[0]
    op = node.target
    return isinstance(op, OpOverload) and (
        torch.Tag.dynamic_output_shape in op.tags or op._schema.name == "aten::nonzero_numpy"
    )


def _compared(name, call, module, run, want):
    want = [comparison.as_array(w) for w in want]
    got = run()
    found = None
    if _is_random(module) and not comparison.undefined(name) and _varies(name, call, want):
        pairs = [(run(), [comparison.as_array(w) for w in call.eager()]) for _ in range(RUNS)]
        found = comparison.distribution_difference(name, *zip(*pairs, strict=True))
    else:
        got = gauges.aligned(name, comparison.settled(name, call, got, want), want)
        found = comparison.difference(name, got, want)
    return Verdict(WRONG, found) if found else Verdict(PASSED)


def _is_random(module):
    ops = (n.target for n in module.graph.nodes if isinstance(n.target, OpOverload))
    return any(torch.Tag.nondeterministic_seeded in op.tags for op in ops)


def _varies(name, call, want):
    """Whether eager gives other values the next time, beside what it leaves open."""
    again = ([comparison.as_array(w) for w in call.eager()] for _ in range(REPEATS))
    return any(comparison.difference("", gauges.aligned(name, a, want), want) for a in again)


def quiet():
    """Silence what conversions warn of: the verdict is all that is asked for."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._logging.set_logs(all=50)
