"""Whether a converted model computes what its PyTorch original does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from litert_torch.runtime_bindings import DEFAULT_SIGNATURE_NAME, Model


def compare_tflite_torch(
    edge_model: Model,
    torch_eval_func: Callable[..., Any],
    args: Any = None,
    kwargs: Any = None,
    *,
    num_valid_inputs: int = 1,
    signature_name: str | None = None,
    atol: float = 1e-5,
    rtol: float = 1e-5,
) -> bool:
    """Whether `edge_model` and `torch_eval_func` agree on some inputs.

    Args:
        edge_model: The converted model.
        torch_eval_func: The module, in eval mode, or another function of tensors.
        args: The positional inputs as a tuple of tensors, or a function that makes one.
        kwargs: The keyword inputs as a flat dict of tensors, or a function that makes one.
        num_valid_inputs: How many times to make inputs and compare.
        signature_name: Which entry point of `edge_model`; None is the default one.
        atol: Largest absolute difference, as in `numpy.allclose`.
        rtol: Largest difference relative to PyTorch's value.

    Returns:
        True where the numbers of outputs, their shapes and their values agree.
    """
    for _ in range(num_valid_inputs):
        positional = (args() if callable(args) else args) or ()
        named = (kwargs() if callable(kwargs) else kwargs) or {}
        feed = pytree.tree_map(_as_array, (tuple(positional), named))  # before forward mutates
        with torch.no_grad():
            expected = pytree.tree_leaves(torch_eval_func(*positional, **named))
        name = signature_name or DEFAULT_SIGNATURE_NAME
        got = pytree.tree_leaves(edge_model(*feed[0], **feed[1], signature_name=name))
        if len(got) != len(expected) or not all(
            _close(g, _as_array(e), rtol, atol) for g, e in zip(got, expected, strict=True)
        ):
            return False
    return True


def _close(got: Any, expected: Any, rtol: float, atol: float) -> bool:
    return got.shape == expected.shape and np.allclose(
        got.astype(np.float32), expected.astype(np.float32), rtol=rtol, atol=atol
    )


def _as_array(tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        return np.asarray(tensor)
    tensor = tensor.detach().cpu()
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()
    return tensor.numpy().copy()
