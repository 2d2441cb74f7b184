"""What a .tflite file holds, and what of it XNNPACK takes."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from litert_torch.errors import LiteRTTorchError
from litert_torch.runtime_bindings import child
from litert_torch.runtime_bindings.model_file import ModelFile, SignatureSpec, TensorSpec, text


@dataclass(frozen=True)
class Weights:
    """Constants of one element type.

    Attributes:
        tensors: How many tensors have such a value.
        buffers: How many buffers hold them; less where tensors share one.
        nbytes: Bytes of these buffers.
    """

    tensors: int
    buffers: int
    nbytes: int


@dataclass(frozen=True)
class Node:
    """One operator of the main subgraph, as the runtime sees it.

    Attributes:
        index: Its place in execution order.
        kind: The schema's name of the operator.
        delegated: Whether XNNPACK runs it.
        results: The names of its result tensors, to find it in the file.
    """

    index: int
    kind: str
    delegated: bool
    results: tuple[str, ...]


@dataclass(frozen=True)
class Delegation:
    """How XNNPACK divides the main subgraph.

    Attributes:
        nodes: The operators in execution order.
        partitions: Connected groups that XNNPACK runs; 1 is best.
    """

    nodes: tuple[Node, ...]
    partitions: int

    @property
    def delegated(self) -> int:
        """How many operators XNNPACK runs."""
        return sum(node.delegated for node in self.nodes)

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Of each kind of operator, how many XNNPACK runs and how many there are."""
        total = Counter(node.kind for node in self.nodes)
        taken = Counter(node.kind for node in self.nodes if node.delegated)
        return {kind: (taken[kind], count) for kind, count in total.most_common()}


@dataclass(frozen=True)
class Inspection:
    """What a file holds.

    Attributes:
        path: The file.
        nbytes: Its size.
        description: Who wrote it.
        signatures: Its entry points.
        subgraphs: How many subgraphs it has, bodies of control flow included.
        ops: How often each operator occurs, in all subgraphs.
        tensors: How many tensors all subgraphs have.
        weights: Constants by element type.
        metadata: Names of its metadata.
        delegation: What XNNPACK takes; None where the runtime cannot load the file.
        problem: Why it cannot, else "".
    """

    path: str
    nbytes: int
    description: str
    signatures: tuple[SignatureSpec, ...]
    subgraphs: int
    ops: dict[str, int]
    tensors: int
    weights: dict[str, Weights]
    metadata: tuple[str, ...]
    delegation: Delegation | None = None
    problem: str = ""


def inspect(path: str | os.PathLike[str], *, delegation: bool = True) -> Inspection:
    """Read the file at `path`; with `delegation`, also load it in a child process.

    Raises:
        InvalidModelFileError: it is not a whole, well-formed model.
    """
    file = ModelFile.open(path)
    subgraphs = range(file.model.SubgraphsLength())
    found, problem = _delegation_or_problem(str(path)) if delegation else (None, "")
    ops = Counter(kind for i in subgraphs for kind, _ in file.operators(i))
    tensors = [t for i in subgraphs for t in file.tensors(i)]
    return Inspection(
        path=str(path),
        nbytes=file.nbytes,
        description=file.description,
        signatures=tuple(file.signatures.values()),
        subgraphs=len(subgraphs),
        ops=dict(ops.most_common()),
        tensors=len(tensors),
        weights=_weights(file, tensors),
        metadata=tuple(
            text(file.model.Metadata(i).Name()) for i in range(file.model.MetadataLength())
        ),
        delegation=found,
        problem=problem,
    )


def _weights(file: ModelFile, tensors: list[TensorSpec]) -> dict[str, Weights]:
    constants = [t for t in tensors if file.buffer_nbytes(t.buffer)]
    found = {}
    for dtype in sorted({t.dtype for t in constants}):
        buffers = [t.buffer for t in constants if t.dtype == dtype]
        nbytes = sum(map(file.buffer_nbytes, set(buffers)))
        found[dtype] = Weights(len(buffers), len(set(buffers)), nbytes)
    return dict(sorted(found.items(), key=lambda item: -item[1].nbytes))


def _delegation_or_problem(path: str) -> tuple[Delegation | None, str]:
    try:
        return child.call(delegation_of, path=path), ""
    except (LiteRTTorchError, RuntimeError, ValueError) as error:
        return None, str(error)


def delegation_of(path: str) -> Delegation:
    """What XNNPACK takes of the main subgraph, asked of a freshly loaded interpreter.

    The interpreter lists the file's operators, then one DELEGATE a partition: what lies between its
    results and its operands is what it runs.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=path)
    interpreter.allocate_tensors()
    listed = interpreter._get_ops_details()
    partitions = [node for node in listed if node["op_name"] == "DELEGATE"]
    nodes = [node for node in listed if node["op_name"] != "DELEGATE"]
    producer = {int(t): node for node in nodes for t in node["outputs"]}
    taken: set[int] = set()
    for partition in partitions:
        taken |= _between(partition, producer)
    names = {t["index"]: t["name"] for t in interpreter.get_tensor_details()}
    return Delegation(
        tuple(
            Node(
                node["index"],
                node["op_name"],
                node["index"] in taken,
                tuple(names.get(int(t), "") for t in node["outputs"]),
            )
            for node in nodes
        ),
        len(partitions),
    )


def _between(partition: dict[str, Any], producer: dict[int, Any]) -> set[int]:
    """The nodes from which the partition's results come, back to its operands."""
    border = {int(t) for t in partition["inputs"]}
    found: set[int] = set()
    pending = [int(t) for t in partition["outputs"]]
    while pending:
        tensor = pending.pop()
        node = producer.get(tensor)
        if node is None or tensor in border or node["index"] in found:
            continue
        found.add(node["index"])
        pending += [int(t) for t in node["inputs"]]
    return found
