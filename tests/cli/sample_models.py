"""Sources for the command line's tests."""

import torch
from torch import nn


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.convolution(x)


class Scale(nn.Module):
    """Takes a keyword, gives a dict."""

    def forward(self, x, *, factor):
        return {"scaled": x * factor}


class Wrong(nn.Module):
    """Converts to something else than it computes."""

    def forward(self, x):
        return x * 2 if torch.compiler.is_exporting() else x * 3


def dense():
    torch.manual_seed(0)
    return Dense().eval(), (torch.randn(2, 6),)


def image():
    torch.manual_seed(0)
    return Image().eval(), (torch.randn(1, 3, 9, 7),)


def scale():
    return Scale().eval(), (torch.randn(2, 3),), {"factor": torch.randn(3)}


def wrong():
    return Wrong().eval(), (torch.randn(2, 3),)


def unsupported():
    class Unsupported(nn.Module):
        def forward(self, x):
            return torch.hash_tensor(x)

    return Unsupported().eval(), (torch.randn(3, 3),)


def failing():
    raise RuntimeError("no luck")


def no_model():
    return 3


an_instance = Dense().eval()
