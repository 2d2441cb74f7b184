"""Recurrent layers against eager, through the lowering alone, twice in a row: no state may stay."""

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter
from torch import nn
from torch.utils import _pytree as pytree

import litert_torch
from litert_torch.converter import flatbuffer, passes
from litert_torch.converter.ir import Graph, TensorType, Value, const
from litert_torch.converter.lowerings import loops, lowers, recurrent
from litert_torch.converter.torch_types import dtype_of
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import f32

aten = torch.ops.aten

INPUT, HIDDEN = 3, 5


def layer(kind, **options):
    torch.manual_seed(1)
    return kind(INPUT, HIDDEN, **options).eval()


def states(module, batch, zero):
    """Initial states: (h, c) for an LSTM, [h] for the others."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [module.proj_size or HIDDEN] + [HIDDEN] * (module.mode == "LSTM")
    make = torch.zeros if zero else f32
    return [make(count, batch, size) * (i + 1) for i, size in enumerate(sizes)]


def op_of(module):
    return getattr(aten, module.mode.lower()).input


def call(function, module, x, hx, weights):
    flags = (module.bias, module.num_layers, 0.0, False, module.bidirectional, module.batch_first)
    return function(x, hx if module.mode == "LSTM" else hx[0], weights, *flags)


def graph_of(module, x, hx, constant_state):
    graph = Graph(name="serving_default")

    def as_input(tensor):
        graph.inputs.append(Value(TensorType(tuple(tensor.shape), dtype_of(tensor.dtype))))
        graph.input_names.append(f"args_{len(graph.inputs)}")
        return graph.inputs[-1]

    x = as_input(x)
    hx = [const(h.numpy()) if constant_state else as_input(h) for h in hx]
    weights = [const(p.detach().numpy()) for p in module._flat_weights]
    lowering = lowers.all()[op_of(module)]
    graph.outputs = call(lambda *args: lowering(graph, *args), module, x, hx, weights)
    graph.output_names = [f"output_{i}" for i in range(len(graph.outputs))]
    graph.verify()
    return graph


def kinds_of(graph):
    return [op.kind for g in [graph, *graph.subgraphs()] for op in g.ops]


def assert_matches(module, steps, batch=2, constant_state=False):
    shape = (batch, steps, INPUT) if module.batch_first else (steps, batch, INPUT)
    x, hx = f32(*shape), states(module, batch, constant_state)
    graph = graph_of(module, x, hx, constant_state)
    passes.run(graph)
    interpreter = Interpreter(model_content=flatbuffer.to_bytes([graph]))
    interpreter.allocate_tensors()
    with torch.no_grad():
        want = call(op_of(module), module, x, hx, module._flat_weights)
    for _ in range(2):
        given = [x] if constant_state else [x, *hx]
        for detail, tensor in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.set_tensor(detail["index"], tensor.numpy())
        interpreter.invoke()
        for detail, w in zip(interpreter.get_output_details(), want, strict=True):
            got = interpreter.get_tensor(detail["index"])
            np.testing.assert_allclose(got, w.numpy(), rtol=1e-5, atol=1e-5)


CASES = [
    (nn.LSTM, {}, 7),
    (nn.LSTM, {"bias": False}, 5),
    (nn.LSTM, {"num_layers": 3, "batch_first": True}, 6),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True}, 7),
    (nn.LSTM, {"num_layers": 2, "bidirectional": True, "proj_size": 2, "batch_first": True}, 9),
    (nn.LSTM, {"proj_size": 4, "bias": False}, 5),
    (nn.GRU, {}, 7),
    (nn.GRU, {"bias": False, "batch_first": True}, 5),
    (nn.GRU, {"num_layers": 2, "bidirectional": True}, 6),
    (nn.RNN, {}, 7),
    (nn.RNN, {"nonlinearity": "relu", "num_layers": 2, "bidirectional": True}, 5),
    (nn.RNN, {"bias": False, "batch_first": True}, 6),
]


@pytest.mark.parametrize(("kind", "options", "steps"), CASES, ids=str)
def test_matches_torch(kind, options, steps):
    assert_matches(layer(kind, **options), steps)


@pytest.mark.parametrize("steps", [1, 2, 4, 5, 64, 65, 96, 131])
def test_every_form_of_loop_matches_torch(steps):
    assert_matches(layer(nn.LSTM, bidirectional=True), steps)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_constant_initial_state(kind, batch):
    assert_matches(layer(kind, batch_first=True), 6, batch, constant_state=True)


def test_short_sequences_are_unrolled_unless_their_weights_are_large(monkeypatch):
    module = layer(nn.GRU)
    x, hx = f32(3, 2, INPUT), states(module, 2, False)
    assert "WHILE" not in kinds_of(graph_of(module, x, hx, False))
    monkeypatch.setattr(recurrent, "UNROLLED_BYTES", 100)
    assert "WHILE" in kinds_of(graph_of(module, x, hx, False))
    assert_matches(module, 3)


def test_file_does_not_grow_with_the_sequence():
    module = layer(nn.LSTM, num_layers=2)

    def size(steps):
        x, hx = f32(steps, 1, INPUT), states(module, 1, True)
        return len(flatbuffer.to_bytes([graph_of(module, x, hx, True)]))

    assert size(2000) - size(100) < 256
    assert size(loops.NESTED_ABOVE) - size(10) < 256


def test_training_with_dropout_is_refused():
    weights = [const(p.detach().numpy()) for p in layer(nn.GRU, num_layers=2)._flat_weights]
    x, h = (Value(TensorType(s, "float32")) for s in ((4, 2, INPUT), (2, 2, HIDDEN)))
    lowering = lowers.all()[aten.gru.input]
    with pytest.raises(UnsupportedCaseError, match="dropout"):
        lowering(Graph(), x, h, weights, True, 2, 0.5, True, False, False)


def test_weights_that_are_inputs_are_refused():
    x, h, w = (Value(TensorType(s, "float32")) for s in ((2, 5), (2, 5), (5, 5)))
    with pytest.raises(UnsupportedCaseError, match="constants"):
        lowers.all()[aten.rnn_tanh_cell.default](Graph(), x, h, w, w)


class StateGiven(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, h):
        return self.module(x, h)


def assert_exports(module, *args, sizes=(), dynamic_shapes=None):
    model = litert_torch.convert(module, args, dynamic_shapes=dynamic_shapes).model_content()
    interpreter = Interpreter(model_content=model)
    for case in [args, *sizes]:
        given = pytree.tree_leaves(case)
        for detail, tensor in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.resize_tensor_input(detail["index"], list(tensor.shape))
        interpreter.allocate_tensors()
        for detail, tensor in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.set_tensor(detail["index"], tensor.numpy())
        interpreter.invoke()
        with torch.no_grad():
            want = pytree.tree_leaves(module(*case))
        for detail, w in zip(interpreter.get_output_details(), want, strict=True):
            got = interpreter.get_tensor(detail["index"])
            assert got.shape == tuple(w.shape)
            np.testing.assert_allclose(got, w.numpy(), rtol=1e-5, atol=1e-5)


def test_dynamic_batch_and_steps():
    steps, batch = torch.export.Dim("steps", min=2), torch.export.Dim("batch", max=64)
    assert_exports(
        StateGiven(layer(nn.GRU, num_layers=2, bidirectional=True)),
        f32(9, 2, INPUT),
        f32(4, 2, HIDDEN),
        dynamic_shapes=({0: steps, 1: batch}, {1: batch}),
        sizes=[(f32(20, 1, INPUT), f32(4, 1, HIDDEN)), (f32(4, 3, INPUT), f32(4, 3, HIDDEN))],
    )


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_unbatched(kind):
    assert_exports(layer(kind, bidirectional=True), f32(9, INPUT))


def test_export_does_not_run_every_step():
    """PyTorch's own fake LSTM costs milliseconds a step, and would fix the number of steps."""
    before = dict(aten.lstm.input.py_kernels)
    steps = torch.export.Dim("steps", min=2)
    assert_exports(layer(nn.LSTM, num_layers=2), f32(70, 2, INPUT), dynamic_shapes=({0: steps},))
    assert aten.lstm.input.py_kernels == before


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(kind, bias):
    h = f32(2, HIDDEN)
    module = StateGiven(layer(kind, bias=bias))
    assert_exports(module, f32(2, INPUT), (h, -h) if kind is nn.LSTMCell else h)
