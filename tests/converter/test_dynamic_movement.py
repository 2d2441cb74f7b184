"""Movement, indexing and reduction with sizes that are only known at run time."""

import pytest
import torch
from ai_edge_litert.interpreter import Interpreter

import litert_torch
from tests.op_case import f32, integers


class Views(torch.nn.Module):
    def forward(self, x, i):
        b, s, c = x.shape
        heads = x.view(b, s, 2, c // 2).transpose(1, 2)
        return (
            heads.reshape(b * 2, s, c // 2),
            x.flatten(1),
            x[:, 1:],
            x[:, :-1],
            x[:, -2:, ::2],
            x[:, -1],
            x.chunk(2, -1)[1],
            x.unbind(2)[3],
            torch.cat([x, x[:, :1]], 1),
            torch.stack([x, -x], 1),
            x[:, :1].expand(-1, s, -1),
            x[:1].expand(b, s, c),
            torch.nn.functional.pad(x, (0, 1, 2, 0)),
            x.roll(1, 1),
            x.flip(1),
            x.repeat(1, 1, 2),
            x.repeat_interleave(2, dim=1),
            torch.tril(x),
        )


class DynamicBounds(torch.nn.Module):
    def forward(self, x, i):
        s = x.shape[1]
        return (
            torch.nn.functional.pad(x, (0, 0, 0, 64 - s)),
            x[:, s - 3 :],
            x[:, : s - 2],
            x.narrow(1, 1, s - 2),
            torch.arange(64.0)[:s] + x.sum(-1),
            torch.arange(64.0)[64 - s :] + x.sum(-1),
            x.select(1, s - 2),
        )


class Reads(torch.nn.Module):
    def forward(self, x, i):
        c = x.shape[2]
        values, places = x.topk(2, dim=1)
        return (
            x[:, :, i[0]],
            x[i[:, 0]],
            torch.gather(x, 1, i[..., None].expand(-1, -1, c)),
            torch.gather(x, 2, i[..., None]),
            torch.nn.functional.one_hot(i, 5),
            x.sum(1),
            x.mean((0, 1)),
            x.amax(-1),
            x.var(1),
            x.std(1, correction=0),
            x.logsumexp(1),
            x.cumsum(1),
            x.argmax(1),
            x.sort(1)[0],
            values,
            places,
            x.masked_fill(x > 0, 0.0),
            torch.zeros_like(x).scatter(2, i[..., None], 1.0),
        )


def run_at(content, *tensors):
    interpreter = Interpreter(model_content=content)
    details = interpreter.get_input_details()
    for detail, tensor in zip(details, tensors, strict=True):
        interpreter.resize_tensor_input(detail["index"], list(tensor.shape))
    interpreter.allocate_tensors()
    for detail, tensor in zip(details, tensors, strict=True):
        interpreter.set_tensor(detail["index"], tensor.numpy())
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def inputs(batch, length):
    return f32(batch, length, 4), integers(batch, length, low=0, high=min(batch, 4)).long()


@pytest.mark.parametrize(
    "model", [Views(), DynamicBounds(), Reads()], ids=lambda m: type(m).__name__
)
def test_dynamic_batch_and_length(model):
    b, s = torch.export.Dim("b", min=2, max=64), torch.export.Dim("s", min=4, max=64)
    sizes = ({0: b, 1: s}, {0: b, 1: s})
    content = litert_torch.convert(model, inputs(3, 5), dynamic_shapes=sizes).model_content()
    for args in (inputs(3, 5), inputs(2, 7)):
        for k, (got, want) in enumerate(zip(run_at(content, *args), model(*args), strict=True)):
            torch.testing.assert_close(torch.from_numpy(got), want, msg=f"output {k}")


BATCH = torch.export.Dim("batch", min=2, max=64)
QUARTER = torch.export.Dim("quarter", min=2, max=16)


class Repeats(torch.nn.Module):
    """A broadcast that nothing else in the sum has the size of."""

    def forward(self, x, y):
        return y.expand(x.shape[0], 4) + y * 2


class Interleaves(torch.nn.Module):
    """A channel shuffle of as many groups as the sequence has."""

    def forward(self, x):
        return x.view(1, -1, 4, 5).transpose(1, 2).reshape(1, x.shape[1], 5)


class ShufflesAndJoins(torch.nn.Module):
    """A channel shuffle beside a concatenation of unknown width."""

    def forward(self, x, y):
        mixed = x.view(2, 2, 2, 3, 3).transpose(1, 2).reshape(2, 4, 3, 3)
        return mixed.exp(), torch.cat([y, y * 2], -1)


class Narrows(torch.nn.Module):
    """Of a sequence of one, nothing would be left."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv1d(3, 4, 3, padding=1)
        self.second = torch.nn.Conv1d(4, 5, 2)

    @torch.no_grad()
    def forward(self, x):
        return self.second(self.first(x))


@pytest.mark.parametrize(
    ("module", "dynamic_shapes", "shapes"),
    [
        (Narrows(), ({2: torch.export.Dim("length", min=4)},), [[(2, 3, 8)], [(2, 3, 4)]]),
        (Repeats(), ({0: BATCH}, None), [[(3, 4), (1, 4)], [(5, 4), (1, 4)]]),
        (Interleaves(), ({1: 4 * QUARTER},), [[(1, 12, 5)], [(1, 20, 5)]]),
        (ShufflesAndJoins(), (None, {1: BATCH}), [[(2, 4, 3, 3), (2, 7)], [(2, 4, 3, 3), (2, 9)]]),
    ],
)
def test_rewrites_keep_sizes_dynamic(module, dynamic_shapes, shapes):
    sample = tuple(f32(*s) for s in shapes[0])
    model = litert_torch.convert(module.eval(), sample, dynamic_shapes=dynamic_shapes)
    for sizes in shapes:
        tensors = [f32(*s) for s in sizes]
        got, want = model(*tensors), module(*tensors)
        outputs = got if isinstance(got, tuple) else (got,)
        for g, w in zip(outputs, want if isinstance(want, tuple) else (want,), strict=True):
            torch.testing.assert_close(torch.from_numpy(g), w)
