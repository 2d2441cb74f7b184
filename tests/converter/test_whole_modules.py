"""Small networks of the kinds that people convert, end to end and at dynamic sizes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ai_edge_litert.interpreter import Interpreter
from torch import nn

import litert_torch
from tests.op_case import f32


class ResidualBlock(nn.Module):
    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.a = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.norm_a = nn.BatchNorm2d(channels_out)
        self.b = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm_b = nn.BatchNorm2d(channels_out)
        self.skip = nn.Conv2d(channels_in, channels_out, 1, stride)

    def forward(self, x):
        y = F.relu(self.norm_a(self.a(x)))
        return F.relu(self.norm_b(self.b(y)) + self.skip(x))


def residual_network():
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        ResidualBlock(8, 12, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 5),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 8)
        self.up = nn.ConvTranspose2d(8, 6, 3, 2, 1, 1)
        self.out = nn.Conv2d(9, 2, 3, padding=1)

    def forward(self, x):
        y = self.up(F.silu(self.norm(self.down(x))))
        y = self.out(torch.cat([y, x], 1))
        return F.interpolate(y, scale_factor=2, mode="bilinear")


def transformer_encoder():
    layer = nn.TransformerEncoderLayer(24, 3, 40, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class CausalAttention(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(
            x, x[:, :1], x[:, :1], is_causal=True, enable_gqa=True
        )


class ResizeToInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        y = F.max_pool2d(self.conv(x), 2)
        return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


BATCH = torch.export.Dim("batch", max=64)
LENGTH = torch.export.Dim("length", min=2, max=64)
ROWS = 2 * torch.export.Dim("rows", min=2, max=64)

# name: (module, sample, dynamic sizes, shape to run at)
MODULES = {
    "residual": (residual_network, f32(2, 3, 33, 46), {0: BATCH}, (5, 3, 33, 46)),
    "unet": (UNet, f32(2, 3, 14, 18), {0: BATCH}, (3, 3, 14, 18)),
    "encoder": (transformer_encoder, f32(2, 7, 24), {0: BATCH}, (4, 7, 24)),
    "causal": (CausalAttention, f32(2, 4, 7, 8), {0: BATCH, 2: LENGTH}, (1, 4, 11, 8)),
    "resize": (ResizeToInput, f32(1, 3, 16, 24), {2: ROWS}, (1, 3, 10, 24)),
}


def made(make):
    torch.manual_seed(0)
    module = make().eval()
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2)
    return module


@pytest.mark.parametrize("name", MODULES)
@torch.no_grad()
def test_matches_torch_at_another_size(name):
    make, sample, dynamic, shape = MODULES[name]
    module, other = made(make), f32(*shape)
    model = litert_torch.convert(module, (sample,), dynamic_shapes=(dynamic,)).model_content()
    interpreter = Interpreter(model_content=model)
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.resize_tensor_input(given["index"], shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], other.numpy())
    interpreter.invoke()
    got = interpreter.get_tensor(result["index"])
    np.testing.assert_allclose(got, module(other).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["residual", "unet", "encoder"])
@torch.no_grad()
def test_runs_in_one_partition(name):
    make, sample, _, _ = MODULES[name]
    model = litert_torch.convert(made(make), (sample,)).model_content()
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    kinds = [op["op_name"] for op in interpreter._get_ops_details()]
    assert kinds.count("DELEGATE") == 1
