"""grid_sample, affine_grid and max_unpool against PyTorch."""

import itertools

import pytest
import torch
from torch.nn import functional as F

import litert_torch
from tests.op_case import assert_matches_torch, f32, op_case

aten = torch.ops.aten

MODES = itertools.product(range(3), range(3), (False, True))  # mode, padding, align_corners


def _grid(*shape):
    """Points inside, outside, exactly between and on pixels."""
    grid = f32(*shape)
    grid.view(-1, shape[-1])[0] = 0.25
    grid.view(-1, shape[-1])[1] = -1.0
    grid.view(-1, shape[-1])[2] = 7.5
    return grid


GRID_SAMPLER = [
    *(op_case(aten.grid_sampler.default, f32(2, 3, 5, 8), _grid(2, 4, 6, 2), *m) for m in MODES),
    *(
        op_case(aten.grid_sampler_3d.default, f32(2, 3, 4, 5, 6), _grid(2, 3, 2, 4, 3), *m)
        for m in itertools.product(range(2), range(3), (False, True))
    ),
    op_case(aten.grid_sampler_2d.default, f32(1, 2, 1, 7), _grid(1, 3, 2, 2), 0, 2, True),
    op_case(aten.grid_sampler_2d.default, f32(1, 1, 6, 1), _grid(1, 3, 2, 2), 0, 2, False),
]

AFFINE = [
    op_case(aten.affine_grid_generator.default, f32(2, 2, 3), [2, 3, 6, 9], False),
    op_case(aten.affine_grid_generator.default, f32(2, 2, 3), [2, 3, 6, 9], True),
    op_case(aten.affine_grid_generator.default, f32(1, 2, 3), [1, 3, 1, 4], True),
    op_case(aten.affine_grid_generator.default, f32(2, 3, 4), [2, 3, 4, 5, 6], False),
]


@pytest.mark.parametrize("case", [*GRID_SAMPLER, *AFFINE], ids=str)
def test_values(case):
    assert_matches_torch(case)


def test_points_far_outside_read_nothing():
    grid = torch.tensor([[[[1e9, -3e7], [-2e8, 0.0], [0.0, 5e6]]]])
    for mode in range(3):
        assert_matches_torch(
            op_case(aten.grid_sampler.default, f32(1, 2, 5, 8), grid, mode, 0, False)
        )
        assert_matches_torch(
            op_case(aten.grid_sampler.default, f32(1, 2, 5, 8), grid, mode, 1, True)
        )


class Unpooled(torch.nn.Module):
    def __init__(self, **window):
        super().__init__()
        self.window = window

    def forward(self, x):
        pooled, places = F.max_pool2d(x, return_indices=True, **self.window)
        return F.max_unpool2d(pooled, places, **self.window, output_size=x.shape[2:])


@pytest.mark.parametrize("window", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2}], ids=str)
def test_unpooling_after_pooling(window):
    x = f32(2, 3, 9, 7)
    module = Unpooled(**window).eval()
    got = litert_torch.convert(module, (x,))(x.numpy())
    torch.testing.assert_close(torch.from_numpy(got), module(x))


def test_unpooling_of_volumes():
    pooled, places = F.max_pool3d(f32(1, 2, 4, 6, 4), 2, return_indices=True)
    assert_matches_torch(
        op_case(aten.max_unpool3d.default, pooled, places, [4, 6, 4], [2, 2, 2], [0, 0, 0])
    )


class Spatial(torch.nn.Module):
    """A spatial transformer."""

    def forward(self, x, theta):
        grid = F.affine_grid(theta, (2, 3, 6, 9), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def test_through_torch_export():
    args = (f32(2, 3, 5, 8), f32(2, 2, 3))
    got = litert_torch.convert(Spatial().eval(), args)(*(a.numpy() for a in args))
    torch.testing.assert_close(torch.from_numpy(got), Spatial()(*args), rtol=1e-4, atol=1e-4)
