"""Activations."""

import torch

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.lowerings import lowers

aten = torch.ops.aten

lowers.one_to_one(
    {
        aten.relu.default: tfl.relu,
        aten.sigmoid.default: tfl.logistic,
        aten.tanh.default: tfl.tanh,
    }
)
