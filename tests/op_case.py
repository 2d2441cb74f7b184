"""One row of an op table: an ATen op and the arguments to try it with."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

import litert_torch
from litert_torch.converter import flatbuffer, passes
from litert_torch.converter.complex_values import ComplexValue, from_interleaved, interleaved
from litert_torch.converter.ir import Graph, TensorType, Value
from litert_torch.converter.lowerings import lowers, lowers_complex
from litert_torch.converter.torch_types import dtype_of


@dataclass(frozen=True)
class OpCase:
    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        name = self.op if isinstance(self.op, OpOverload) else self.op.__name__
        return f"{name}({', '.join(map(_shown, [*self.args, *self.kwargs.values()]))})"

    @property
    def leaves(self):
        return pytree.tree_flatten((self.args, self.kwargs))

    @property
    def tensors(self):
        return [a for a in self.leaves[0] if isinstance(a, torch.Tensor)]


def _shown(a):
    if isinstance(a, torch.Tensor):
        kind = str(a.dtype).removeprefix("torch.")
        return f"{'' if kind == 'float32' else kind}{list(a.shape)}"
    if isinstance(a, (list, tuple)):
        return f"[{','.join(map(_shown, a))}]"
    return str(a)


def op_case(op, *args, **kwargs):
    return OpCase(op, args, kwargs)


def f32(*shape):
    """Standard normal values: both signs, no two alike."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def c64(*shape):
    """Complex numbers in all four quadrants."""
    return torch.complex(f32(*shape), f32(*shape[::-1]).reshape(shape) - 0.3)


def positive(*shape):
    return f32(*shape).abs() + 0.1


def integers(*shape, low=-9, high=10, dtype=torch.int32):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def bools(*shape):
    return f32(*shape) > 0


class CallOp(torch.nn.Module):
    """Holds the non-tensor arguments, so that the tensors are the model's inputs."""

    def __init__(self, case):
        super().__init__()
        self.case = case

    def forward(self, *tensors):
        leaves, spec = self.case.leaves
        left = iter(tensors)
        filled = [next(left) if isinstance(a, torch.Tensor) else a for a in leaves]
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return self.case.op(*args, **kwargs)


def run(model, *tensors, delegates=True):
    """The outputs of the first signature, in order."""
    resolver = (
        OpResolverType.AUTO if delegates else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, tensor in zip(interpreter.get_input_details(), tensors, strict=True):
        interpreter.set_tensor(detail["index"], in_numpy(tensor))
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def in_numpy(tensor):
    """As a file takes and gives it: complex numbers are pairs along a last axis."""
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).numpy()


def _table(case):
    leaves = case.leaves[0]
    if case.op in lowers_complex.all():
        leaves = leaves + pytree.tree_leaves(case.op(*case.args, **case.kwargs))
    tensors = (a for a in leaves if isinstance(a, torch.Tensor))
    is_complex = any(t.is_complex() for t in tensors) or any(isinstance(a, complex) for a in leaves)
    return lowers_complex.all() if is_complex else lowers.all()


def graph_of(case):
    """The graph of the op by itself: milliseconds, where torch.export takes a second."""
    graph = Graph(name="serving_default")
    leaves, spec = case.leaves
    filled = [_as_input(graph, a) if isinstance(a, torch.Tensor) else a for a in leaves]
    args, kwargs = pytree.tree_unflatten(filled, spec)
    results = pytree.tree_leaves(_table(case)[case.op](graph, *args, **kwargs))
    results = [interleaved(graph, r) if isinstance(r, ComplexValue) else r for r in results]
    graph.outputs = [r for r in results if isinstance(r, Value)]
    graph.output_names = [f"output_{i}" for i in range(len(graph.outputs))]
    graph.verify()
    return graph


def _as_input(graph, tensor):
    held = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    graph.inputs.append(Value(TensorType(tuple(held.shape), dtype_of(held.dtype))))
    graph.input_names.append(f"args_{len(graph.input_names)}")
    value = graph.inputs[-1]
    return from_interleaved(graph, value) if tensor.is_complex() else value


def lowered_alone(case):
    graph = graph_of(case)
    passes.run(graph)
    return flatbuffer.to_bytes([graph])


def converted(case):
    return litert_torch.convert(CallOp(case).eval(), tuple(case.tensors)).model_content()


def assert_matches_torch(case, *, export=False, rtol=1e-5, atol=1e-5):
    """The file gives eager's values, shapes and dtypes."""
    got = run((converted if export else lowered_alone)(case), *case.tensors)
    want = pytree.tree_leaves(case.op(*case.args, **case.kwargs))
    want = [in_numpy(w.detach()) for w in want if isinstance(w, torch.Tensor)]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)
