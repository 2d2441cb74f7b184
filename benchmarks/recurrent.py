"""How to run an LSTM: a loop, steps one after another, or LiteRT's own op. Prints a table.

    python benchmarks/recurrent.py [--hidden 64,256] [--steps 1,8,32,128,500] [--batch 1]

Times are medians of CPU microseconds per call, LiteRT interpreter, XNNPACK on, one thread, variants
interleaved. Every variant is first checked against eager PyTorch on two calls in a row.
"""

import argparse
import time

import flatbuffers
import numpy as np
import torch
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from litert_torch.converter import flatbuffer, passes
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.ir import Graph, TensorType, Value, const, retyped
from litert_torch.converter.lowerings import loops, lowers, recurrent

REPEATS = 31


def inputs(graph, lstm, steps, batch):
    """The input x [T,B,I], a zero state and the weights, as values of `graph`."""
    x = Value(TensorType((steps, batch, lstm.input_size), "float32"))
    graph.inputs, graph.input_names = [x], ["x"]
    zeros = const(np.zeros((1, batch, lstm.hidden_size), np.float32))
    params = [const(p.detach().numpy()) for p in lstm.parameters()]
    return x, zeros, params


def file_of(graph, outputs):
    """The .tflite file of `graph` after the passes."""
    graph.outputs = outputs
    graph.output_names = [f"output_{i}" for i in range(len(outputs))]
    graph.verify()
    passes.run(graph)
    return flatbuffer.to_bytes([graph])


def lowered(lstm, steps, batch, unrolled_up_to, nested_above):
    """The lowering with other thresholds."""
    graph = Graph(name="serving_default")
    x, zeros, params = inputs(graph, lstm, steps, batch)
    saved = loops.NESTED_ABOVE, recurrent.UNROLLED_OPS, recurrent.UNROLLED_BYTES
    try:
        loops.NESTED_ABOVE = nested_above
        if unrolled_up_to is not None:
            recurrent.UNROLLED_OPS = unrolled_up_to * recurrent.LSTM.step_ops
            recurrent.UNROLLED_BYTES = 1 << 60
        op = torch.ops.aten.lstm.input
        outputs = lowers.all()[op](
            graph, x, [zeros, zeros], params, True, 1, 0.0, False, False, False
        )
    finally:
        loops.NESTED_ABOVE, recurrent.UNROLLED_OPS, recurrent.UNROLLED_BYTES = saved
    return file_of(graph, outputs)


def chosen(lstm, steps, batch):
    """What convert() does."""
    return lowered(lstm, steps, batch, None, loops.NESTED_ABOVE)


def one_while(lstm, steps, batch):
    """A single loop, a step in each iteration."""
    return lowered(lstm, steps, batch, 0, 1 << 30)


def nested_while(lstm, steps, batch):
    """A loop over chunks of about 32 steps, around a loop over the steps of a chunk."""
    return lowered(lstm, steps, batch, 0, 0) if steps > 32 else None


def unrolled(lstm, steps, batch):
    """Every step by itself."""
    return lowered(lstm, steps, batch, 1 << 30, 0)


def while_of_four(lstm, steps, batch):
    """Four steps in each iteration of one loop."""
    if steps % 4:
        return None
    graph = Graph(name="serving_default")
    x, zeros, params = inputs(graph, lstm, steps, batch)
    weights = recurrent.Weights(*params)
    gates = recurrent.LSTM.input_part(graph, x, weights)
    gates = tfl.reshape(graph, gates, (steps // 4, 4, *gates.shape[1:]))
    state = [tfl.reshape(graph, zeros, zeros.shape[1:])] * 2
    row = state[0].type

    def step(body, slices, old, _):
        each = loops.Operands(slices, old, [], (row,))
        return loops.unrolled(body, cell, each)

    def cell(body, slices, old, _):
        new = recurrent.LSTM.step(body, slices[0], old, weights)
        return [new[0]], new

    four = TensorType((4, *row.shape), row.dtype)
    count = const(steps // 4, "int32")
    ys, last = loops._loop(graph, step, loops.Operands([gates], state, [], (four,)), count)
    finals = [tfl.expand_dims(graph, s, 0) for s in last]
    return file_of(graph, [tfl.reshape(graph, ys[0], (steps, *row.shape)), *finals])


def builtin(lstm, steps, batch):
    """UNIDIRECTIONAL_SEQUENCE_LSTM: its state outlives the call and cannot be returned."""
    graph = Graph(name="serving_default")
    x, _, params = inputs(graph, lstm, steps, batch)
    size = lstm.hidden_size
    w_ih, w_hh = (np.split(p.read(), 4) for p in params[:2])
    bias = np.split(params[2].read() + params[3].read(), 4)
    state = [Value(TensorType((batch, size), "float32"), name=f"variable_{i}") for i in (0, 1)]
    operands = [x, *map(const, w_ih), *map(const, w_hh), None, None, None, *map(const, bias)]
    operands += [None, None, *state, None, None, None, None]
    y = graph.emit(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        operands,
        retyped(x, shape=(steps, batch, size)),
        fusedActivationFunction=schema.ActivationFunctionType.TANH,
        timeMajor=True,
    )
    graph.outputs, graph.output_names = [y], ["output_0"]
    model = schema.ModelT.InitFromPackedBuf(flatbuffer.to_bytes([graph]))
    for tensor in model.subgraphs[0].tensors:
        tensor.isVariable = tensor.name.startswith(b"variable_")
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


VARIANTS = [chosen, one_while, nested_while, while_of_four, unrolled, builtin]


def ready(model, x):
    """An interpreter that has its input."""
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    return interpreter


def error_on_second_call(interpreter, want):
    """Largest difference from eager when called again."""
    interpreter.invoke()
    interpreter.invoke()
    details = interpreter.get_output_details()
    got = [interpreter.get_tensor(d["index"]) for d in details]
    return max(np.abs(g - w.numpy()).max() for g, w in zip(got, want, strict=False))


def cpu_microseconds(calls):
    """Median CPU time of each call; the calls take turns."""
    times = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.thread_time()
            call()
            times[name].append(time.thread_time() - start)
    return {name: 1e6 * float(np.median(t)) for name, t in times.items()}


def compare(hidden, steps, batch):
    """Print a row for each variant."""
    lstm = torch.nn.LSTM(hidden, hidden).eval()
    x = torch.randn(steps, batch, hidden)
    with torch.no_grad():
        y, (h, c) = lstm(x)
    sizes, errors, calls = {}, {}, {}
    for variant in VARIANTS:
        model = variant(lstm, steps, batch)
        if model is not None:
            name = variant.__name__
            interpreter = ready(model, x.numpy())
            sizes[name] = len(model)
            errors[name] = error_on_second_call(interpreter, [y, h, c])
            calls[name] = interpreter.invoke
    times = cpu_microseconds(calls)
    weights = sum(p.numel() * 4 for p in lstm.parameters())
    for name in times:
        print(
            f"| {hidden} | {steps} | {name} | {times[name]:.0f} | "
            f"{(sizes[name] - weights) / 1024:.1f} | {errors[name]:.0e} |",
            flush=True,
        )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", default="64,256")
    parser.add_argument("--steps", default="1,2,4,8,32,128,500")
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    print("| hidden | steps | variant | us | KiB beside weights | error, second call |")
    print("|---|---|---|---|---|---|")
    for hidden in map(int, args.hidden.split(",")):
        for steps in map(int, args.steps.split(",")):
            compare(hidden, steps, args.batch)


if __name__ == "__main__":
    main()
