"""Random small models: the file gives eager's result, with all passes and with any left out."""

import os

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litert_torch.converter import flatbuffer, passes
from litert_torch.converter.frontends import module as frontend
from litert_torch.converter.lower import lower
from litert_torch.converter.passes.pipeline import PIPELINE
from litert_torch.converter.signature import Signature
from tests.op_case import run

PASSES = sorted({p.__name__ for p in PIPELINE})


class Steps(torch.nn.Module):
    """Applies functions of the tensors made so far; the last is the output."""

    def __init__(self, steps, layers):
        super().__init__()
        self.steps = steps
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x):
        made = [x]
        for step in self.steps:
            made.append(step(self.layers, made))
        return made[-1], made[len(made) // 2] + 0


class Builder:
    """Draws steps that fit the shapes made so far."""

    def __init__(self, draw):
        self.draw = draw
        self.shapes = [tuple(draw(st.lists(st.integers(2, 7), min_size=4, max_size=4)))]
        self.steps, self.layers = [], []

    def pick(self, *options):
        return self.draw(st.sampled_from(options))

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def add(self, step, shape):
        self.steps.append(step)
        self.shapes.append(tuple(int(s) for s in shape))

    def layer(self, layer):
        self.layers.append(layer)
        return len(self.layers) - 1

    def source(self):
        """A tensor made before, mostly the newest."""
        return self.pick(
            len(self.shapes) - 1, len(self.shapes) - 1, self.integer(0, len(self.shapes) - 1)
        )

    def unary(self):
        i = self.source()
        f = self.pick(torch.relu, torch.tanh, torch.sigmoid, torch.nn.functional.gelu, torch.abs)
        self.add(lambda _, m: f(m[i]), self.shapes[i])

    def affine(self):
        i = self.source()
        shape = self.shapes[i]
        axis = self.integer(0, len(shape) - 1)
        wide = [n if a == axis else 1 for a, n in enumerate(shape)]
        c = torch.linspace(-1.5, 2, shape[axis]).reshape(wide)
        f = self.pick(torch.mul, torch.add, torch.sub)
        self.add(lambda _, m: f(m[i], c), shape)

    def binary(self):
        i = self.source()
        same = [j for j, s in enumerate(self.shapes) if s == self.shapes[i]]
        j = self.pick(*same)
        f = self.pick(torch.add, torch.mul, torch.maximum, torch.sub)
        self.add(lambda _, m: f(m[i], m[j]), self.shapes[i])

    def convolution(self):
        i = self.source()
        if len(self.shapes[i]) != 4:
            return self.linear()
        n, c, h, w = self.shapes[i]
        out, kernel = self.integer(1, 5), self.pick(1, 2, 3)
        groups = c if self.pick(False, False, True) else 1
        stride, padding = self.pick(1, 2), self.integer(0, kernel // 2)
        if h + 2 * padding < kernel or w + 2 * padding < kernel:
            return self.unary()
        out = out * groups if groups > 1 and out < 3 else (c if groups > 1 else out)
        conv = torch.nn.Conv2d(c, out, kernel, stride, padding, groups=groups)
        k = self.layer(torch.nn.Sequential(conv, _batch_norm(out)))
        size = [(s + 2 * padding - kernel) // stride + 1 for s in (h, w)]
        return self.add(lambda layers, m: layers[k](m[i]), (n, out, *size))

    def linear(self):
        i = self.source()
        *rest, width = self.shapes[i]
        out = self.integer(1, 6)
        k = self.layer(torch.nn.Linear(width, out, bias=self.pick(True, False)))
        self.add(lambda layers, m: layers[k](m[i]), (*rest, out))

    def pool(self):
        i = self.source()
        if len(self.shapes[i]) != 4 or min(self.shapes[i][2:]) < 2:
            return self.unary()
        n, c, h, w = self.shapes[i]
        f = self.pick(torch.nn.functional.max_pool2d, torch.nn.functional.avg_pool2d)
        return self.add(lambda _, m: f(m[i], 2, 2), (n, c, h // 2, w // 2))

    def permute(self):
        i = self.source()
        perm = self.draw(st.permutations(range(len(self.shapes[i]))))
        self.add(lambda _, m: m[i].permute(*perm), [self.shapes[i][p] for p in perm])

    def reshape(self):
        i = self.source()
        shape = list(self.shapes[i])
        if len(shape) > 2 and self.pick(True, False):
            axis = self.integer(0, len(shape) - 2)
            shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
        else:
            axis = self.integer(0, len(shape) - 1)
            divisors = [d for d in range(1, shape[axis] + 1) if shape[axis] % d == 0]
            d = self.pick(*divisors)
            shape[axis : axis + 1] = [d, shape[axis] // d]
        if len(shape) > 5:
            return
        self.add(lambda _, m: m[i].reshape(shape), shape)

    def slice(self):
        i = self.source()
        axis = self.integer(0, len(self.shapes[i]) - 1)
        size = self.shapes[i][axis]
        start = self.integer(0, size - 1)
        stop, step = self.integer(start + 1, size), self.pick(1, 1, 2)
        where = (slice(None),) * axis + (slice(start, stop, step),)
        shape = list(self.shapes[i])
        shape[axis] = len(range(start, stop, step))
        self.add(lambda _, m: m[i][where], shape)

    def concatenate(self):
        i = self.source()
        axis = self.integer(0, len(self.shapes[i]) - 1)

        def fits(s):
            return len(s) == len(self.shapes[i]) and all(
                a == axis or n == self.shapes[i][a] for a, n in enumerate(s)
            )

        j = self.pick(*(j for j, s in enumerate(self.shapes) if fits(s)))
        shape = list(self.shapes[i])
        shape[axis] += self.shapes[j][axis]
        if shape[axis] <= 24:
            self.add(lambda _, m: torch.cat([m[i], m[j]], axis), shape)

    def reduce(self):
        i = self.source()
        axis, keep = self.integer(0, len(self.shapes[i]) - 1), self.pick(True, False)
        if len(self.shapes[i]) < 3:
            keep = True
        f = self.pick(torch.mean, torch.sum, torch.amax)
        shape = list(self.shapes[i])
        shape[axis : axis + 1] = [1] if keep else []
        self.add(lambda _, m: f(m[i], axis, keepdim=keep), shape)

    def softmax(self):
        i = self.source()
        axis = self.integer(0, len(self.shapes[i]) - 1)
        self.add(lambda _, m: m[i].softmax(axis), self.shapes[i])

    def gather(self):
        i = self.source()
        axis = self.integer(0, len(self.shapes[i]) - 1)
        size = self.shapes[i][axis]
        index = torch.tensor(self.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5)))
        shape = list(self.shapes[i])
        shape[axis] = len(index)
        self.add(lambda _, m: m[i].index_select(axis, index), shape)


KINDS = [
    Builder.unary,
    Builder.affine,
    Builder.binary,
    Builder.convolution,
    Builder.convolution,
    Builder.linear,
    Builder.pool,
    Builder.permute,
    Builder.permute,
    Builder.reshape,
    Builder.reshape,
    Builder.slice,
    Builder.concatenate,
    Builder.reduce,
    Builder.softmax,
    Builder.gather,
]


def _batch_norm(channels):
    norm = torch.nn.BatchNorm2d(channels)
    for name, low, high in (("running_mean", -1, 1), ("running_var", 0.5, 2), ("bias", -1, 1)):
        getattr(norm, name).data = torch.linspace(low, high, channels)
    norm.weight.data = torch.linspace(0.5, -1.5, channels)
    return norm


@st.composite
def models(draw):
    torch.manual_seed(0)
    builder = Builder(draw)
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=3, max_size=12)):
        kind(builder)
    x = torch.randn(builder.shapes[0], generator=torch.Generator().manual_seed(1))
    return Steps(builder.steps, builder.layers).eval(), x


def check(model, x, skipped):
    signature = Signature.checked("main", model, (x,), None)
    program = frontend.export(signature)
    with torch.no_grad():
        want = model(x)
    for names in skipped:
        graph = lower(program, "main", signature.input_names)
        passes.run(graph, skip=frozenset(names))
        got = run(flatbuffer.to_bytes([graph]), x)
        for g, w in zip(got, want, strict=True):
            scale = max(1.0, float(w.abs().max()))
            np.testing.assert_allclose(
                g, w, rtol=1e-4, atol=1e-5 * scale, err_msg=f"without {names}"
            )


@given(model=models(), left_out=st.sampled_from(PASSES))
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_random_models_with_one_pass_left_out(model, left_out):
    check(*model, skipped=[[], [left_out]])


@pytest.mark.sweep
@given(model=models())
@settings(
    max_examples=int(os.environ.get("RANDOM_MODELS", "1000")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_many_random_models_with_each_pass_left_out(model):
    check(*model, skipped=[[], *([name] for name in PASSES)])
