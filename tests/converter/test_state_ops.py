"""Buffers that a module writes: kept across calls and shared by signatures."""

import copy

import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import litert_torch
from litert_torch.errors import UnsupportedCaseError
from tests.op_case import f32

RESOLVERS = [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES]


class Average(torch.nn.Module):
    """A running average from random numbers on, and a counter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", f32(2, 3))
        self.register_buffer("count", torch.tensor(3))
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        self.count += 1
        self.mean.mul_(0.5).add_(self.linear(x))
        return self.mean * self.count, self.count


class Delay(torch.nn.Module):
    """What is read does not lead to what is written."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.full((2, 3), 7.0))

    def forward(self, x):
        before = self.last.clone()
        self.last.copy_(x)
        return before


class Cache(torch.nn.Module):
    """Keys written at a position that is state itself; large and zero at first."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 8, 4, 64))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64), persistent=False)

    def forward(self, x):
        self.keys.index_copy_(1, self.position, x.reshape(1, 1, 4, 64))
        self.position += 1
        return (self.keys * x).sum(-1)


class History(torch.nn.Module):
    """A streaming convolution: the buffer is replaced, not written in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("history", torch.zeros(1, 4, 4))
        self.conv = torch.nn.Conv1d(4, 5, 3)

    def forward(self, x):
        y = torch.cat([self.history, x], -1)
        self.history = y[:, :, -4:]
        return self.conv(y)


class Toggle(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("on", torch.tensor([True, False]))

    def forward(self, x):
        self.on = torch.logical_not(self.on)
        return self.on, x + 1


SAMPLES = [
    (Average, (2, 3)),
    (Delay, (2, 3)),
    (Cache, (1, 4, 64)),
    (History, (1, 4, 6)),
    (Toggle, (3,)),
]


def _invoke(interpreter, x):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x.numpy())
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def _each(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize(("kind", "shape"), SAMPLES, ids=[s[0].__name__ for s in SAMPLES])
def test_state_starts_as_the_modules_and_stays(kind, shape):
    module = kind().eval()
    content = litert_torch.convert(module, (torch.zeros(shape),)).model_content()
    for resolver in RESOLVERS:
        eager = copy.deepcopy(module)
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        for step in range(4):
            x = f32(*shape) * (step + 1)
            with torch.no_grad():
                want = _each(eager(x))
            for g, w in zip(_invoke(interpreter, x), want, strict=True):
                np.testing.assert_allclose(g, w.numpy(), rtol=1e-5, atol=1e-5)


def test_reset_starts_over():
    x = f32(2, 3).numpy()
    model = litert_torch.convert(Delay().eval(), (f32(2, 3),))
    np.testing.assert_array_equal(model(x), np.full((2, 3), 7.0))
    np.testing.assert_array_equal(model(x), x)
    model.reset()
    np.testing.assert_array_equal(model(x), np.full((2, 3), 7.0))


def test_conversion_leaves_the_module_as_it_was():
    module = Average().eval()
    before = copy.deepcopy(module.state_dict())
    litert_torch.convert(module, (f32(2, 3),))
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())


class Shared(torch.nn.Module):
    def __init__(self, delay):
        super().__init__()
        self.delay = delay


class Write(Shared):
    def forward(self, x):
        self.delay.last.add_(x)
        return self.delay.last * 2


class Peek(Shared):
    """Only reads what others write."""

    def forward(self, x):
        return self.delay.last + x


class Clear(Shared):
    """Writes a constant, and reads nothing."""

    def forward(self, x):
        self.delay.last.copy_(torch.full((2, 3), 5.0))
        return x + 1


def test_signatures_share_the_state_of_one_module_but_not_of_two():
    mine, other = Delay(), Delay()
    x = f32(2, 3)
    modules = {
        "write": Write(mine),
        "peek": Peek(mine),
        "clear": Clear(mine),
        "other": Write(other),
    }
    converter = litert_torch
    for name, module in modules.items():
        converter = converter.signature(name, module.eval(), (x,))
    model = converter.convert()
    eager = copy.deepcopy(modules)
    order = ["write", "peek", "other", "write", "write", "peek", "clear", "peek", "other", "write"]
    for step, name in enumerate(order):
        got = model((x * step).numpy(), signature_name=name)
        np.testing.assert_allclose(got, eager[name](x * step).numpy(), rtol=1e-6, atol=1e-6)


def test_signatures_share_one_initial_value():
    mine = Delay()
    model = (
        litert_torch.signature("write", Write(mine).eval(), (f32(2, 3),))
        .signature("peek", Peek(mine).eval(), (f32(2, 3),))
        .convert()
    )
    file = schema.Model.GetRootAs(model.model_content(), 0)
    assert file.SubgraphsLength() == 3


def test_zeros_at_the_start_take_no_room_in_the_file():
    model = litert_torch.convert(Cache().eval(), (f32(1, 4, 64),))
    assert len(model.model_content()) < Cache().keys.nbytes


class ComplexState(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("z", torch.zeros(3, dtype=torch.complex64))

    def forward(self, x):
        self.z += x
        return self.z.abs()


def test_complex_state_is_refused():
    with pytest.raises(UnsupportedCaseError, match="two buffers"):
        litert_torch.convert(ComplexState().eval(), (f32(3),))
