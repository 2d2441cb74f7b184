"""Small modules that TPU tests export."""

import torch
from torch import nn


class Counter(nn.Module):
    """Scales by a learned matrix and counts its calls in a buffer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.linear = nn.Linear(3, 5)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1.0)
        return torch.sigmoid(self.linear(x)) * self.calls


class Block(nn.Module):
    """A transformer's block, with the usual names."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        torch.manual_seed(5)
        self.heads = heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(width, width))
        self.up_proj, self.down_proj = nn.Linear(width, 64), nn.Linear(64, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (
            layer(x).view(b, n, self.heads, -1).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.o_proj(mixed.transpose(1, 2).reshape(b, n, d))
        return self.norm(x + self.down_proj(nn.functional.gelu(self.up_proj(x))))


def perceptron(device=None):
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Linear(6, 8, device=device), nn.ReLU(), nn.Linear(8, 4, device=device)
    ).eval()
