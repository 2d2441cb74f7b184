"""Reading and writing elements by index, slices and masks; orders; made-up tensors."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.whole_model import assert_converts, random, seeded, whole_numbers


def test_the_place_of_a_maximum_is_an_index():
    def picked(x):
        at = x.argmax(1, keepdim=True)
        order = x.argsort(dim=2, descending=True)
        return torch.gather(x * 2 - 1, 1, at), at, x.argmin(-1), torch.take_along_dim(x, order, 2)

    assert_converts(picked, random(2, 4, 5, 7))


def test_split_into_one_part():
    def parts(x):
        (whole,) = x.split([12], dim=1)
        left, right = x.split([5, 7], 1)
        return whole * 2, torch.chunk(x, 1, 1)[0] + 1, left - right[:, :5]

    assert_converts(parts, random(2, 12, 3))


def test_writes_into_slices():
    def written(x):
        r = torch.zeros(4, 7)
        r[0] = x[1] - x[2]
        r[2:, 1:3] = x[:2, :2]
        r[-1, -1] += 5
        y = x.clone()
        y[:, ::2] *= -1
        y[1:3, 3] = x[0, 0]
        return r, y

    assert_converts(written, random(5, 7))


def test_writes_under_a_mask():
    def written(x):
        z = x.clone()
        z[z < 0] = 0.25
        return z

    assert_converts(written, random(5, 7))


def test_index_tensors():
    def indexed(x, i, j):
        added = torch.zeros(4, 5).index_put((i, j), x[0, :6], accumulate=True)
        columns = x.clone()
        columns[:, i] = -1.0
        return (
            added, columns, x[:, i][:, :, None], x[torch.tensor([[0], [-1]]), i], x[..., -2],
            x[None, 1, ::2], x[j % 3, :][..., i.flip(0)],
        )  # fmt: skip

    i, j = torch.tensor([0, 3, 1, 3, 0, 2]), torch.tensor([4, 2, 0, 2, 4, 1])
    assert_converts(indexed, random(3, 8), i, j)


def test_equal_elements_keep_their_order():
    x = random(4, 6)
    x[0, 2] = x[0, 4]

    def ordered(x, n):
        down = torch.sort(x, dim=1, stable=True, descending=True)
        least = torch.topk(x, 2, dim=0, largest=False)
        up = torch.sort(n, stable=True)
        return (
            *down, *least, *up, x.median(1).values, x.kthvalue(2, 1).values, n.max(1).values,
            x.max(0).indices,
        )  # fmt: skip

    assert_converts(ordered, x, torch.tensor([[3, 1, 3, 1], [2, 2, 2, 0]]))


def test_sorted_values_alone():
    assert_converts(lambda x: torch.sort(x, dim=1, descending=True).values * 2, random(4, 6))


class Lookups(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4, padding_idx=0)
        self.bags = nn.EmbeddingBag(9, 4, mode="mean")
        self.register_buffer("edges", torch.tensor([-1.0, 0.0, 0.5, 2.0]))

    def forward(self, i, x):
        return (
            self.table(i), self.bags(i), F.one_hot(i, 9), torch.bucketize(x, self.edges),
            torch.bucketize(x, self.edges, right=True), x.repeat_interleave(3, 1), x.repeat(2, 3),
            x.tile(2),
        )  # fmt: skip


def test_lookups():
    x = torch.tensor([[-2.0, -1.0, 0.2, 0.5, 2.0, 3.0]])
    assert_converts(seeded(Lookups), whole_numbers(0, 9, 3, 5), x)


def test_one_hot_leaves_no_check_in_the_graph():
    assert_converts(lambda i: F.one_hot(i, 9).float() * 2, whole_numbers(0, 9, 3, 5))


def test_triangles_and_ranges():
    def made(x):
        n = x.shape[1]
        gx, gy = torch.meshgrid(torch.arange(4.0) * 2, torch.linspace(-1, 1, n), indexing="xy")
        rows, columns = torch.tril_indices(4, 4)
        return (
            x.triu(1), x.tril(-1), x.triu(-2), torch.eye(n, 3) + x[:3].t(), gx + 0, gy * x[:1].t(),
            torch.arange(0, 1, 0.3) + x[0, 0], torch.logspace(0, 2, n) * x, x[rows, columns],
        )  # fmt: skip

    assert_converts(made, random(4, 6))


def test_tensors_of_no_elements_and_of_one():
    def shapes(x, t):
        none = x[:, :0]
        return (
            torch.cat([none, x * 2, none], 1), x.unsqueeze(0).squeeze(), t + 1, x.sum() * t,
            x.reshape(-1, 1, 1).squeeze(-1), x[:, 1:1].sum(1), torch.stack([t, t * 2]), none + 1,
        )  # fmt: skip

    assert_converts(shapes, random(3, 5), torch.tensor(2.5))
