"""Random images, and weights that leave no part of a network without effect.

Fresh modules hide bugs: BatchNorm is the identity, biases are zero, scales are one, some heads
are zero. `randomise` gives every constant parameter random values and every BatchNorm the
statistics of the activations it sees, perturbed, so that outputs stay of ordinary size.
"""

import torch
from torch import nn

_NORMS = (nn.modules.batchnorm._BatchNorm,)


def image(size: int, channels: int = 3) -> torch.Tensor:
    """float32[1, channels, size, size], standard normal and smooth enough to look like a photo."""
    coarse = torch.randn(1, channels, size // 8, size // 8)
    smooth = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return smooth + 0.3 * torch.randn(1, channels, size, size)


def randomise(module: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
    """Change `module` in place; `args` are inputs to take activation statistics from."""
    widen_weights(module)
    for parameter in module.parameters():
        if parameter.numel() > 1 and parameter.min() == parameter.max():
            _randomise_constant(parameter)
    set_batch_norm_statistics(module, args)


def widen_weights(module: nn.Module) -> None:
    """Weights of variance 1/fan_in where they are smaller, as transformers' deviation of 0.02 is.

    With smaller ones attention is all but uniform, and deep heads give zeros.
    """
    for m in module.modules():
        if isinstance(m, (nn.Linear, nn.modules.conv._ConvNd)):
            fan_in = m.weight[0].numel()
            if m.weight.std() * fan_in**0.5 < 0.5:
                m.weight.normal_(0, fan_in**-0.5)


def _randomise_constant(parameter: torch.Tensor) -> None:
    value = parameter.flatten()[0].item()
    if value == 0:
        parameter.normal_(0, 0.1)
    elif abs(value) < 0.05:  # layer scale, made for training from the identity
        parameter.uniform_(0.1, 0.3)
    else:
        parameter.mul_(torch.empty_like(parameter).uniform_(0.7, 1.3))


def set_batch_norm_statistics(module: nn.Module, args: tuple[torch.Tensor, ...]) -> None:
    """Running mean and variance of a random batch like `args`, each then moved a little."""
    norms = [m for m in module.modules() if isinstance(m, _NORMS) and m.track_running_stats]
    if not norms:
        return
    for m in norms:
        m.train()
        m.momentum = 1.0
    module(*(torch.cat([a, a.flip(-1) + 0.1 * torch.randn_like(a)]) for a in args))
    for m in norms:
        m.eval()
        m.momentum = 0.1
        deviation = m.running_var.sqrt()
        m.running_mean.add_(0.1 * deviation * torch.randn_like(deviation))
        m.running_var.mul_(torch.empty_like(deviation).uniform_(0.8, 1.25)).clamp_(min=1e-4)
