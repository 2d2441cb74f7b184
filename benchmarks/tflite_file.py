"""Facts about a .tflite file and how the LiteRT interpreter runs it. Needs no torch."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

_KIND = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}


@dataclass(frozen=True)
class Contents:
    """What stands in a file's first subgraph.

    Attributes:
        ops: Number of ops of each kind.
        edge_transposes: TRANSPOSE ops that read an input or make an output of the model.
        inner_transposes: The other TRANSPOSE ops.
        size: Bytes of the file.
    """

    ops: Counter[str]
    edge_transposes: int
    inner_transposes: int
    size: int


def read_contents(path: str | Path) -> Contents:
    """Parse the file at `path`."""
    data = Path(path).read_bytes()
    model = schema.ModelT.InitFromPackedBuf(data)
    graph = model.subgraphs[0]
    codes = [_kind(c) for c in model.operatorCodes]
    kinds = [codes[op.opcodeIndex] for op in graph.operators]
    border = {*graph.inputs, *graph.outputs}
    edge = inner = 0
    for op, kind in zip(graph.operators, kinds, strict=True):
        if kind == "TRANSPOSE":
            at_border = op.inputs[0] in border or op.outputs[0] in border
            edge, inner = edge + at_border, inner + (not at_border)
    return Contents(Counter(kinds), edge, inner, len(data))


def _kind(code: Any) -> str:
    return _KIND[max(code.builtinCode, code.deprecatedBuiltinCode)]


def open_interpreter(path: str | Path, threads: int = 1) -> Interpreter:
    """An interpreter with the XNNPACK delegate, ready to run."""
    interpreter = Interpreter(
        model_path=str(path),
        num_threads=threads,
        experimental_default_delegate_latest_features=True,
    )
    interpreter.allocate_tensors()
    return interpreter


def set_inputs(interpreter: Interpreter, arrays: Sequence[np.ndarray]) -> None:
    """Give the first signature its inputs args_0, args_1, ..., in the dtypes of the file."""
    runner = interpreter.get_signature_runner(next(iter(interpreter.get_signature_list())))
    details = runner.get_input_details()
    for i, array in enumerate(arrays):
        detail = details[f"args_{i}"]
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))


def get_outputs(interpreter: Interpreter) -> list[np.ndarray]:
    """The outputs output_0, output_1, ... of the first signature."""
    runner = interpreter.get_signature_runner(next(iter(interpreter.get_signature_list())))
    details = runner.get_output_details()
    indices = [details[f"output_{i}"]["index"] for i in range(len(details))]
    return [interpreter.get_tensor(i) for i in indices]


@dataclass(frozen=True)
class Delegation:
    """How much of a model XNNPACK runs.

    Attributes:
        covered: Ops inside XNNPACK's partitions.
        total: All ops.
        partitions: Number of partitions.
        left: Number of ops of each kind that the built-in kernels run.
    """

    covered: int
    total: int
    partitions: int
    left: Counter[str]


def read_delegation(interpreter: Interpreter) -> Delegation:
    """Walk from each partition's outputs back to its inputs; the ops passed are delegated."""
    nodes = interpreter._get_ops_details()
    delegates = [n for n in nodes if n["op_name"] == "DELEGATE"]
    originals = [n for n in nodes if n["op_name"] != "DELEGATE"]
    producer = {int(t): i for i, n in enumerate(originals) for t in n["outputs"]}
    covered: set[int] = set()
    for delegate in delegates:
        stop = {int(t) for t in delegate["inputs"]}
        pending = [int(t) for t in delegate["outputs"]]
        while pending:
            tensor = pending.pop()
            node = producer.get(tensor)
            if tensor in stop or node is None or node in covered:
                continue
            covered.add(node)
            pending.extend(int(t) for t in originals[node]["inputs"] if t >= 0)
    left = Counter(n["op_name"] for i, n in enumerate(originals) if i not in covered)
    return Delegation(len(covered), len(originals), len(delegates), left)
