import collections

import numpy as np
import pytest
import torch

import litert_torch
from litert_torch import errors

Pair = collections.namedtuple("Pair", "image scale")


class Both(torch.nn.Module):
    def __init__(self, make=tuple):
        super().__init__()
        self.make = make

    def forward(self, x, y):
        return self.make([x + 1, y * 2])


def images(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("spatial", [(5,), (5, 4), (5, 4, 6)])
def test_inputs_and_outputs_are_moved(spatial):
    x, y = images(2, *spatial, 3), images(2, 3, *spatial)
    wrapped = litert_torch.to_channel_last_io(Both(), args=[0], outputs=[1])
    first, second = wrapped(x, y)
    torch.testing.assert_close(first, x.movedim(-1, 1) + 1)
    torch.testing.assert_close(second, (y * 2).movedim(1, -1))


@pytest.mark.parametrize("make", [list, tuple, Pair._make])
def test_the_type_of_the_outputs_is_kept(make):
    outputs = litert_torch.to_channel_last_io(Both(make), outputs=[0])(
        images(1, 3, 4, 5), images(1, 3, 4, 5)
    )
    assert type(outputs) is type(make([1, 2]))
    assert outputs[0].shape == (1, 4, 5, 3)


def test_negative_indices_count_from_the_end():
    y = litert_torch.to_channel_last_io(Both(), args=[-1])(images(1, 3, 4, 5), images(1, 4, 5, 3))
    assert y[1].shape == (1, 3, 4, 5)


WRONG = [
    ({"args": [2]}, "there is no positional input 2; there are 2"),
    ({"outputs": [5]}, "there is no output 5"),
]


@pytest.mark.parametrize(("indices", "message"), WRONG)
def test_an_index_out_of_range_says_so(indices, message):
    with pytest.raises(errors.InvalidInputError, match=message):
        litert_torch.to_channel_last_io(Both(), **indices)(images(1, 3, 4), images(1, 3, 4))


def test_only_tensors_of_rank_3_or_more_have_channels():
    with pytest.raises(ValueError, match="must be a tensor of rank 3 or more, not rank 2"):
        litert_torch.to_channel_last_io(Both(), args=[0])(images(3, 4), images(3, 4))
    with pytest.raises(ValueError, match="not float"):
        litert_torch.to_channel_last_io(Both(), args=[1])(images(3, 4, 5), 1.0)


def test_a_converted_image_model_has_no_transposes():
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 5, 3, stride=2)
    ).eval()
    wrapped = litert_torch.to_channel_last_io(module, args=[0], outputs=[0])
    x = images(1, 9, 8, 3)
    model = litert_torch.convert(wrapped, (x,))
    np.testing.assert_allclose(model(x.numpy()), wrapped(x).detach(), rtol=1e-4, atol=1e-5)
    from tests.test_interface import op_names

    assert "TRANSPOSE" not in op_names(model)
