"""Convolutions, resizing, pooling and layout in the forms that converters got wrong."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.whole_model import assert_converts, highest_rank, op_names, random, seeded


@pytest.mark.parametrize(
    "options",
    [
        {"size": (13, 22), "mode": "bilinear", "align_corners": True},
        {"scale_factor": 2, "mode": "bilinear", "align_corners": True},
        {"size": (3, 4), "mode": "bilinear", "align_corners": False},
        {"size": (17, 20), "mode": "bilinear", "align_corners": False},
        {"scale_factor": (1.5, 0.7), "mode": "bilinear", "align_corners": False},
        {"size": (3, 20), "mode": "nearest"},
        {"size": (3, 20), "mode": "nearest-exact"},
        {"size": (14, 4), "mode": "bicubic", "align_corners": False},
        {"size": (14, 19), "mode": "bicubic", "align_corners": True},
        {"size": (3, 4), "mode": "bilinear", "align_corners": False, "antialias": True},
    ],
    ids=str,
)
def test_resizing_in_every_mode(options):
    assert_converts(lambda x: F.interpolate(x, **options), random(2, 3, 5, 9))


def test_aligned_resizing_behind_a_convolution():
    conv = seeded(lambda: nn.Conv2d(3, 5, 3, padding=1))
    upsample = nn.Upsample(size=(13, 22), mode="bilinear", align_corners=True)
    assert_converts(nn.Sequential(conv, upsample).eval(), random(1, 3, 5, 9))


CONVOLUTIONS = [
    (
        lambda: nn.ConvTranspose2d(6, 4, (1, 7), stride=(1, 3), padding=(0, 3), groups=2),
        (1, 6, 3, 8),
    ),
    (lambda: nn.ConvTranspose2d(8, 8, (5, 4), stride=(3, 2), padding=1, groups=8), (1, 8, 3, 7)),
    (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (1, 3, 5, 7)),
    (lambda: nn.Conv2d(4, 8, (4, 2), padding="same"), (1, 4, 9, 8)),
    (lambda: nn.Conv2d(4, 8, (4, 2), padding="same"), (4, 9, 8)),
    (
        lambda: nn.Conv2d(4, 8, 3, stride=(1, 2), dilation=(3, 1), padding=(2, 0), groups=2),
        (1, 4, 9, 8),
    ),
    (lambda: nn.Conv2d(4, 12, 3, groups=4), (1, 4, 9, 8)),
    (lambda: nn.Conv2d(3, 2, 3, padding="valid"), (1, 3, 5, 6)),
    (lambda: nn.Conv3d(4, 3, (2, 3, 3), padding=(0, 1, 1), stride=(1, 2, 1)), (1, 4, 4, 5, 6)),
    (lambda: nn.Conv3d(3, 2, 3, padding="same"), (1, 3, 4, 5, 6)),
    (lambda: nn.MaxPool3d(2), (1, 4, 4, 5, 6)),
    (lambda: nn.Conv1d(3, 2, 4, padding="same", dilation=3), (2, 3, 17)),
    (lambda: nn.Conv1d(3, 2, 5, padding="same", dilation=2), (2, 3, 17)),
    (lambda: nn.Sequential(nn.Conv1d(3, 6, 5, padding="same"), nn.ReLU()), (2, 3, 17)),
    (lambda: nn.Conv2d(3, 2, 3, padding=(1, 2), padding_mode="circular"), (1, 3, 5, 6)),
    (lambda: nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"), (1, 3, 5, 6)),
    (lambda: nn.Conv2d(3, 2, 3, padding=(2, 1), padding_mode="replicate"), (1, 3, 5, 6)),
]


@pytest.mark.parametrize(
    ("make", "shape"), CONVOLUTIONS, ids=lambda v: str(v) if type(v) is tuple else ""
)
def test_convolution(make, shape):
    assert_converts(seeded(make), random(*shape))


def test_overlapping_windows_unfold_and_fold():
    unfold = nn.Unfold((3, 2), padding=1, stride=(2, 1))
    fold = nn.Fold((5, 8), (3, 2), padding=1, stride=(2, 1))
    assert_converts(lambda x: (unfold(x), fold(unfold(x) ** 2)), random(1, 3, 5, 8))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_sampling_at_points_outside_too(mode, padding_mode, align_corners):
    grid = random(2, 4, 6, 2, seed=1) * 1.2
    assert_converts(
        lambda x, g: F.grid_sample(x, g, mode, padding_mode, align_corners),
        random(2, 3, 5, 8),
        grid,
    )


def test_spatial_transformer():
    theta = torch.tensor(
        [[[1.2, 0.3, 0.4], [-0.2, 0.9, -0.6]], [[0.5, -0.7, 0.1], [0.8, 1.4, 0.2]]]
    )

    def transform(x, t):
        grid = F.affine_grid(t, (2, 3, 6, 9), align_corners=False)
        return grid, F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)

    assert_converts(transform, random(2, 3, 5, 8), theta)


def test_channel_shuffle_needs_no_rank_5():
    first = seeded(lambda: nn.Conv2d(6, 6, 1, groups=3))
    second = seeded(lambda: nn.Conv2d(6, 6, 3, padding=1, groups=6))

    def shuffled(x):
        y = first(x)
        n, c, h, w = y.shape
        y = y.view(n, 3, 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        left, right = second(y).chunk(2, 1)
        return torch.cat([right, left], 1)

    edge = assert_converts(shuffled, random(1, 6, 5, 7))
    assert highest_rank(edge) <= 4
    assert op_names(edge).count("TRANSPOSE") <= 2


def test_focus_slices_and_pixel_shuffles_need_no_rank_5():
    conv = seeded(lambda: nn.Conv2d(12, 18, 3, padding=1))

    def focus(x):
        corners = [x[..., i::2, j::2] for j in (0, 1) for i in (0, 1)]
        shuffled = F.pixel_shuffle(conv(torch.cat(corners, 1)), 3)
        return shuffled, F.pixel_unshuffle(x, 2), x.flip(-1)[..., ::3]

    edge = assert_converts(focus, random(1, 3, 6, 10))
    assert highest_rank(edge) <= 4
    assert "GATHER_ND" not in op_names(edge)


def test_norms_of_an_image_over_each_axis():
    conv = seeded(lambda: nn.Conv2d(3, 4, 3, padding=1))

    def norms(x):
        y = conv(x) * 30
        q = F.normalize(y.flatten(2), dim=-1)
        return (
            F.normalize(y, dim=1),
            torch.linalg.vector_norm(y, 1, dim=(2, 3)),
            y.norm(dim=3, keepdim=True),
            torch.linalg.vector_norm(y.flatten(2), float("inf"), dim=-1),
            torch.linalg.vector_norm(y.flatten(2), 3, dim=2),
            torch.logsumexp(y * 10, 1),
            q @ q.transpose(1, 2),
        )

    assert_converts(norms, random(2, 3, 5, 6))


@pytest.mark.parametrize("size", [(3, 4), (None, 1), 14], ids=str)
def test_adaptive_average_over_uneven_windows(size):
    assert_converts(lambda x: F.adaptive_avg_pool2d(x, size), random(2, 3, 7, 10))


def test_adaptive_pools_of_other_kinds():
    assert_converts(
        lambda x: (F.adaptive_max_pool2d(x, (3, 4)), F.adaptive_avg_pool1d(x[:, :, 0], 3)),
        random(2, 3, 7, 10),
    )


class Block(nn.Module):
    """Half of the channels go through one more convolution."""

    def __init__(self, inside, out):
        super().__init__()
        self.enter = nn.Conv2d(inside, out, 1)
        self.inner = nn.Sequential(nn.Conv2d(out // 2, out // 2, 3, 1, 1), nn.SiLU())
        self.leave = nn.Conv2d(out // 2 * 3, out, 1)

    def forward(self, x):
        parts = list(self.enter(x).chunk(2, 1))
        parts.append(self.inner(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class DetectionHead(nn.Module):
    """Boxes as expected distances from anchors, over two scales."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 4, 1)
        self.first = Block(8, 8)
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, 2, 1), Block(8, 8))
        self.heads = nn.ModuleList([nn.Conv2d(8, 19, 1) for _ in range(2)])
        self.register_buffer("distances", torch.arange(4.0))

    def forward(self, x):
        fine = self.first(self.stem(x))
        outputs = [head(y) for head, y in zip(self.heads, (fine, self.second(fine)), strict=True)]
        anchors, strides = [], []
        for y, stride in zip(outputs, (4, 8), strict=True):
            rows, columns = (torch.arange(n) + 0.5 for n in y.shape[2:])
            gy, gx = torch.meshgrid(rows, columns, indexing="ij")
            anchors.append(torch.stack([gx, gy], -1).view(-1, 2))
            strides.append(torch.full((gx.numel(), 1), float(stride)))
        boxes, classes = torch.cat([y.flatten(2) for y in outputs], 2).split((16, 3), 1)
        weights = boxes.view(1, 4, 4, -1).softmax(2)
        expected = (weights * self.distances.view(1, 1, 4, 1)).sum(2)
        before, behind = expected.chunk(2, 1)
        centres = torch.cat(anchors).t()[None]
        corners = torch.cat([centres - before, centres + behind], 1)
        return torch.cat([corners * torch.cat(strides).t()[None], classes.sigmoid()], 1)


def test_detection_head_with_anchors_folded():
    edge = assert_converts(seeded(DetectionHead), random(1, 3, 24, 40))
    assert highest_rank(edge) <= 4
    assert "RANGE" not in op_names(edge)


def test_height_and_width_may_change():
    first = seeded(lambda: nn.Conv2d(3, 6, 3, padding=1))
    second = seeded(lambda: nn.Conv2d(6, 4, 3, padding=1))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x):
            z = self.second(F.max_pool2d(torch.relu(self.first(x)), 2))
            resized = F.interpolate(z, size=x.shape[-2:], mode="bilinear", align_corners=False)
            return resized, z.flatten(2).mean(-1)

    h, w = torch.export.Dim("h", min=4, max=64), torch.export.Dim("w", min=4, max=64)
    assert_converts(
        Net().eval(),
        random(1, 3, 16, 24),
        others=[(random(1, 3, 12, 20),), (random(1, 3, 40, 32),)],
        dynamic_shapes=({2: 2 * h, 3: 2 * w},),
    )


def test_batch_may_change():
    net = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 5),
            nn.Softmax(-1),
        )
    )
    edge = assert_converts(
        net,
        random(3, 3, 9, 11),
        others=[(random(1, 3, 9, 11),), (random(7, 3, 9, 11),)],
        dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=16)},),
    )
    assert edge.signatures["serving_default"].inputs[0].shape[0] == -1
