import pytest
import torch

import litert_torch
from litert_torch.converter import functionalize
from tests.op_case import f32, run


class Writes(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def whole(x):
    y = x * 2
    y.relu_()
    y.add_(x)
    return y


def slices(x):
    y = x.clone()
    y[:, 1:3] = x[:, :2] * 3
    y[0] += 1
    y[..., ::2].mul_(2)
    return y


def view_of_view(x):
    y = x + 0
    first = y[1:]
    flat = first.view(-1)
    flat[2:5] = -7
    y.neg_()
    return y, first, flat


def seen_through_other_views(x):
    y = x.exp()
    rows, columns = y.t(), y.unsqueeze(0)
    y[0, 0] = 5
    rows[1].zero_()
    return rows + 1, columns * 2, y


def parts(x):
    y = x.clone()
    left, right = y.chunk(2, dim=1)
    right.add_(10)
    first, *_ = y.unbind(0)
    first.fill_(3)
    return y, left, right


def constants(x):
    mask = torch.zeros(3, 6)
    mask[:2, 1:] = 1
    mask[1].add_(4)
    return x * mask


def integers_keep_their_type(x):
    y = torch.arange(6).repeat(3, 1) + (x > 0)
    y[:, 0] += (x[:, 0] > 0).to(torch.int32)
    return y


def input_is_written(x):
    x.mul_(2)
    return x + 1


def loops(x):
    y = torch.zeros_like(x)
    for i in range(x.shape[0]):
        y[i] = x[: i + 1].sum(0)
    return y


CASES = [
    whole,
    slices,
    view_of_view,
    seen_through_other_views,
    parts,
    constants,
    integers_keep_their_type,
    input_is_written,
    loops,
]


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_writes_give_eagers_result_without_a_retrace(function, monkeypatch):
    def refuse(*_):
        raise AssertionError("retraced")

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", refuse)
    x = f32(3, 6)
    want = function(x.clone())
    model = litert_torch.convert(Writes(function).eval(), (x,))
    got = run(model.model_content(), x)
    for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        torch.testing.assert_close(torch.from_numpy(g), w, rtol=1e-5, atol=1e-5)


def test_a_copy_is_no_view():
    def function(x):
        y = x * 1
        flipped = y.t().contiguous()
        flipped.add_(1)
        return y, flipped

    x = f32(3, 6)
    got = run(litert_torch.convert(Writes(function), (x,)).model_content(), x)
    torch.testing.assert_close(torch.from_numpy(got[0]), x)
    torch.testing.assert_close(torch.from_numpy(got[1]), x.t() + 1)


def new_shape(x):
    y = x * 2
    row = y[0]
    y.t_()
    return row + 1, y


def new_shape_of_a_view(x):
    y = x * 2
    first = y[:2]
    first.unsqueeze_(0)
    first.mul_(2)
    return y + 1, first


def in_a_branch(x):
    def scaled(x):
        y = x * 2
        y.add_(1)
        return y

    def cut(x):
        y = x * 3
        y[0] = 0
        return y

    return torch.cond(x.sum() > 0, scaled, cut, (x,))


@pytest.mark.parametrize("function", [new_shape, new_shape_of_a_view, in_a_branch])
@pytest.mark.parametrize("sign", [-1, 1])
def test_rarer_writes_give_eagers_result(function, sign):
    x = f32(3, 6).abs() * sign
    want = function(x.clone())
    got = run(litert_torch.convert(Writes(function).eval(), (x,)).model_content(), x)
    for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        torch.testing.assert_close(torch.from_numpy(g), w, rtol=1e-5, atol=1e-5)


def test_a_loaded_program_is_left_to_pytorch(tmp_path):
    program = torch.export.export(Writes(slices).eval(), (f32(3, 6),))
    torch.export.save(program, tmp_path / "m.pt2")
    loaded = functionalize.functional(torch.export.load(tmp_path / "m.pt2"))
    assert not any(functionalize._writes(n) for n in loaded.graph.nodes)
    torch.testing.assert_close(loaded.module()(f32(3, 6)), slices(f32(3, 6)))


def test_a_program_that_writes_nothing_is_the_same_object():
    program = torch.export.export(torch.nn.Linear(6, 2), (f32(3, 6),))
    assert functionalize.functional(program) is program
