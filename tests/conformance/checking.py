"""The verdict on one call: passed, failed in some way, or not applicable."""

import operator
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from ai_edge_litert.interpreter import Interpreter
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from litert_torch.errors import ConversionError
from tests.conformance import comparison, conversion

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

RUNS = 50  # of a random op
REPEATS = 10  # of eager, after which an op that gave the same is taken for deterministic


@dataclass(frozen=True)
class Verdict:
    """What became of one call, and the reason."""

    status: str
    detail: str = ""


def check(name, call, *, export=False):
    """Convert the call, run it in LiteRT and compare it with eager PyTorch."""
    reason = _not_applicable(name, call)
    if reason:
        return Verdict(NOT_APPLICABLE, reason)
    want = call.eager()
    if not want:
        return Verdict(NOT_APPLICABLE, NO_TENSOR)
    if any(map(_is_special, want)):
        return Verdict(NOT_APPLICABLE, LAYOUT)
    try:
        module = conversion.traced(call)
    except Exception as error:
        return _untraced(name, error)
    if _is_sized_by_data(module):
        return Verdict(NOT_APPLICABLE, DATA_SHAPE)
    try:
        content = conversion.exported(call) if export else conversion.converted(module, call)
    except ConversionError as error:
        return Verdict(REFUSED, str(error))
    except Exception as error:
        return Verdict(INTERNAL, f"{type(error).__name__}: {error}")
    try:
        return _compared(name, call, module, content, want)
    except (RuntimeError, ValueError) as error:
        return Verdict(LOAD, f"{type(error).__name__}: {error}")


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
    if kind == "DynamicOutputShapeException" and name != "nn.functional.ctc_loss":
        return Verdict(NOT_APPLICABLE, DATA_SHAPE)
    if name == "nn.functional.one_hot":  # with num_classes to be found out
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


def _compared(name, call, module, content, want):
    want = [comparison.as_array(w) for w in want]
    run = _runner(content, call.tensors)
    got = run()
    found = None
    if _is_random(module) and not comparison.undefined(name) and _varies(call, want):
        pairs = [(run(), [comparison.as_array(w) for w in call.eager()]) for _ in range(RUNS)]
        found = comparison.distribution_difference(name, *zip(*pairs, strict=True))
    else:
        found = comparison.difference(name, comparison.settled(name, call, got, want), want)
    return Verdict(WRONG, found) if found else Verdict(PASSED)


def _is_random(module):
    ops = (n.target for n in module.graph.nodes if isinstance(n.target, OpOverload))
    return any(torch.Tag.nondeterministic_seeded in op.tags for op in ops)


def _varies(call, want):
    """Whether eager gives other values the next time."""
    again = ([comparison.as_array(w) for w in call.eager()] for _ in range(REPEATS))
    return any(comparison.difference("", results, want) for results in again)


def _runner(content, tensors):
    """A function that runs the file on the tensors."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    feed = [comparison.as_array(t).astype(d["dtype"]) for t, d in zip(tensors, inputs, strict=True)]

    def run():
        for detail, array in zip(inputs, feed, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [_as_compared(interpreter.get_tensor(d["index"])) for d in outputs]

    return run


def _as_compared(array):
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else np.array(array)


def quiet():
    """Silence what conversions warn of: the verdict is all that is asked for."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._logging.set_logs(all=50)
