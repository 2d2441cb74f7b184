"""Small .tflite files of each kind, made from graphs: milliseconds, without torch.export."""

import numpy as np

from litert_torch.converter import flatbuffer
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dims import Dim
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.runtime_bindings import LiteRTModel

WEIGHTS = np.arange(-15, 15, dtype=np.float32).reshape(5, 6)


def graph_of(inputs, outputs, name="serving_default"):
    """A graph whose `outputs(g, *values)` is a dict by name; `inputs` maps names to types."""
    g = Graph(name=name)
    for key, (shape, dtype) in inputs.items():
        g.inputs.append(Value(TensorType(shape, DType(dtype)), name=key))
        g.input_names.append(key)
    made = outputs(g, *g.inputs)
    g.outputs, g.output_names = list(made.values()), list(made)
    return g


def batch():
    import sympy

    return Dim(sympy.Symbol("batch", positive=True, integer=True))


def dense(rows=2, name="serving_default"):
    """relu(x @ WEIGHTS.T): two operators, 120 bytes of weights, which all signatures share."""
    weights = const(WEIGHTS)

    def outputs(g, x):
        return {"output_0": tfl.relu(g, tfl.fully_connected(g, x, weights, None))}

    return graph_of({"args_0": ((rows, 6), "float32")}, outputs, name)


def add_int64():
    def outputs(g, x):
        return {"output_0": tfl.add(g, x, const([[1, 2, 2**40]], DType.INT64))}

    return graph_of({"args_0": ((2, 3), "int64")}, outputs)


def named():
    """Twelve inputs, some of whose names sort otherwise than they come; a dict of outputs."""

    def outputs(g, *values):
        total = values[0]
        for factor, v in enumerate(values[1:], 2):
            total = tfl.add(g, total, tfl.mul(g, v, const(factor, DType.FLOAT32)))
        return {"sum": total, "first": tfl.add(g, values[0], values[0])}

    return graph_of({f"args_{i}": ((2,), "float32") for i in range(12)}, outputs)


def half_delegated():
    """ADD, FLOOR_MOD (which XNNPACK does not take), MUL: two partitions."""

    def outputs(g, x):
        y = tfl.add(g, x, x)
        y = tfl.floor_mod(g, y, const(2.5, DType.FLOAT32))
        return {"output_0": tfl.mul(g, y, y)}

    return graph_of({"args_0": ((3, 4), "float32")}, outputs)


def counter():
    """A variable that `init` sets to zero and `add` adds to."""
    vector = TensorType((2,), DType.FLOAT32)

    def handle(g):
        resource = TensorType((), DType.RESOURCE)
        return g.emit("VAR_HANDLE", [], resource, container="", sharedName="count")

    def init(g):
        g.emit_many("ASSIGN_VARIABLE", [handle(g), const([0.0, 0.0], DType.FLOAT32)], [])
        return {"done": tfl.add(g, const([1.0], DType.FLOAT32), const([0.0], DType.FLOAT32))}

    def add(g, x):
        total = tfl.add(g, g.emit("READ_VARIABLE", [handle(g)], vector), x)
        g.emit_many("ASSIGN_VARIABLE", [handle(g), total], [])
        return {"output_0": tfl.add(g, total, const([0.0, 0.0], DType.FLOAT32))}

    return [graph_of({}, init, "init"), graph_of({"args_0": ((2,), "float32")}, add, "add")]


def content(*graphs):
    return flatbuffer.to_bytes(list(graphs))


def model(*graphs):
    return LiteRTModel(content(*graphs))


def without_signatures(data):
    """The file, its signatures removed by renaming their slot in the root table away."""
    from ai_edge_litert import schema_py_generated as schema

    data = bytearray(data)
    root = schema.Model.GetRootAs(data, 0)._tab
    vtable = root.Pos - int.from_bytes(data[root.Pos : root.Pos + 4], "little", signed=True)
    slot = vtable + 4 + 2 * 7  # signature_defs is field 7
    data[slot : slot + 2] = b"\0\0"
    return bytes(data)
