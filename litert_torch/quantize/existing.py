"""Quantizing a float .tflite file, whoever made it.

The file is mapped, not read: a weight is in memory while it is looked at, or written.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from litert_torch.converter import flatbuffer
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Op, TensorType, Value
from litert_torch.errors import InvalidInputError
from litert_torch.files import atomic_file
from litert_torch.quantize.weights import restored
from litert_torch.runtime_bindings import LiteRTModel
from litert_torch.runtime_bindings.model_file import ModelFile

if TYPE_CHECKING:
    from litert_torch.quantize.recipe import Recipe

Path = str | os.PathLike[str]


def quantize_file(
    source: Path,
    output: Path,
    recipe: Recipe | None = None,
    *,
    progress: Callable[[str], None] = lambda stage: None,
) -> LiteRTModel:
    """Write `source` to `output`, quantized as `recipe` says.

    Operators, names, signatures and metadata stay as they are; what a recipe does not change
    computes what it did. Rules select modules by the names that PyTorch and TensorFlow converters
    write into the file.

    Args:
        source: A .tflite file of float operators. Weights in float16 or integers that are made
            float by DEQUANTIZE count as float, too.
        output: May be `source`.
        recipe: As `litert_torch.convert` takes it; its report tells what was done. None writes the
            file as it is, with weights aligned and each stored once.
        progress: Called with each stage's name.

    Returns:
        The model at `output`.

    Raises:
        InvalidModelFileError: `source` is not there, truncated, damaged or no .tflite file.
        InvalidInputError: a rule matches nothing, or calibration data is needed and absent, or
            does not fit.
        UnsupportedCaseError: the file has tensors of strings, or sparse ones.
        OutputError: `output` cannot be written.
    """
    progress("read")
    file = ModelFile.open(source)
    graphs = flatbuffer.graphs_of(file)
    if recipe is not None:
        check_is_float(graphs, file.name)
        apply_to(graphs, recipe, progress)
    progress("write")
    with atomic_file(output) as stream:
        flatbuffer.to_stream(graphs, stream, flatbuffer.metadata_of(file))
        _copy_archive(source, stream)
    return LiteRTModel(output)


def apply_to(graphs: Sequence[Graph], recipe: Recipe, progress: Callable[[str], None]) -> None:
    """Quantize graphs that were read from a file, in place."""
    for graph in graphs:
        progress(f"quantize {graph.name}")
        hidden = _Stored(graph)
        recipe.apply(graph)
        hidden.put_back()
        graph.remove_dead_ops()
        graph.verify()


class _Stored:
    """Constants behind DEQUANTIZE as float ones, for recipes to see; what stays is put back."""

    def __init__(self, graph: Graph) -> None:
        self.graphs = [graph, *graph.subgraphs()]
        self._small: dict[Value | None, Value] = {}
        for g in self.graphs:
            g.replace_values({op.output: self._large(op) for op in g.ops if _is_stored(op)})

    def _large(self, op: Op) -> Value:
        small = op.inputs[0]
        assert small is not None
        assert small.const is not None
        made = small.const.derive(
            ("restored", small.quantization and small.quantization.key),
            lambda x: restored(replace(small, const=_known(small, x))),
            dtype=DType.FLOAT32,
        )
        large = Value(TensorType(small.shape, DType.FLOAT32), const=made, name=op.output.name)
        self._small[large] = small
        return large

    def put_back(self) -> None:
        """What no recipe made smaller is stored as it was."""
        for g in self.graphs:
            old, g.ops = g.ops, []
            made: dict[Value, Value] = {}
            for op in old:
                for v in [*op.inputs, *g.outputs]:
                    if v is not None and v in self._small and v not in made:
                        made[v] = tfl.dequantize(g, self._small[v])
                        made[v].name = v.name
                g.ops.append(_reading(op, made))
            g.outputs = [made.get(v, v) for v in g.outputs]


def _reading(op: Op, new: Mapping[Value, Value]) -> Op:
    """`op`, or one like it that reads what `new` has; the float graph keeps its own."""
    inputs = [None if v is None else new.get(v, v) for v in op.inputs]
    if inputs == op.inputs:
        return op
    made = replace(op, inputs=inputs)
    for v in made.outputs:
        v.producer = made
    return made


def _is_stored(op: Op) -> bool:
    x = op.inputs[0] if op.kind == "DEQUANTIZE" and op.inputs else None
    return x is not None and x.const is not None and op.output.dtype == DType.FLOAT32


def _known(v: Value, data: Any) -> Any:
    assert v.const is not None
    return replace(v.const, _read=lambda: data, _read_rows=None)


def _copy_archive(source: Path, stream: IO[bytes]) -> None:
    """Copy the files that TensorFlow Lite's metadata keeps in a zip archive behind the model."""
    if not zipfile.is_zipfile(source):
        return
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(stream, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))


def check_is_float(graphs: Sequence[Graph], name: str) -> None:
    """Raise InvalidInputError where nothing in a file could be quantized."""
    ops = [op for graph in graphs for g in (graph, *graph.subgraphs()) for op in g.ops]
    if not any(v.dtype.is_float for op in ops for v in op.outputs):
        raise InvalidInputError(f"{name} computes on integers only: it is quantized already")
