"""The calls of PyTorch's OpInfo database: every entry, with the inputs PyTorch tests it on."""

import copy
import random
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

DTYPES = {"float32": torch.float32, "int32": torch.int32, "int64": torch.int64, "bool": torch.bool}


@cache
def entries():
    """The database by full name; importing it takes some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as database
        from torch.testing._internal import common_utils, opinfo
    # It looks for the test that asks, through the whole stack's sources: a quarter of a second.
    opinfo.core.extract_test_fn = common_utils.extract_test_fn = lambda: None
    # It seeds random ops before every call, which would make them constants.
    database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return {op.full_name: op for op in database.op_db}


def dtypes_of(name):
    """Which of the dtypes above the entry takes."""
    return [kind for kind, dtype in DTYPES.items() if dtype in entries()[name].dtypes]


@dataclass(frozen=True)
class Call:
    """An op and its arguments; the tensors among them are inputs, everything else is fixed.

    A complex tensor enters and leaves as a pair of reals, the last axis of a real tensor: LiteRT
    signatures hold no complex numbers.
    """

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def tensors(self):
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return [as_reals(a.detach()) for a in leaves if isinstance(a, torch.Tensor)]

    @property
    def form(self):
        """All of the call but its tensors' elements: what a file of it depends on."""
        leaves, spec = pytree.tree_flatten((self.args, self.kwargs))
        return (str(spec), *map(_form, leaves))

    def __call__(self, *tensors):
        """The tensors that the op returns."""
        leaves, spec = pytree.tree_flatten((self.args, self.kwargs))
        left = iter(tensors)
        filled = [_like(a, next(left)) if isinstance(a, torch.Tensor) else a for a in leaves]
        args, kwargs = pytree.tree_unflatten(filled, spec)
        results = pytree.tree_leaves(self.op(*args, **kwargs))
        return [as_reals(r) for r in results if isinstance(r, torch.Tensor)]

    def eager(self):
        """What PyTorch computes, from copies of the inputs."""
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self(*copy.deepcopy(self.tensors))  # with all of a view's storage


def as_reals(t):
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _like(original, t):
    return torch.view_as_complex(t) if original.is_complex() else t


def calls(name, kind, limit=None):
    """The entry's calls with their numbers; of more than `limit`, that many spread evenly."""
    op = entries()[name]
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(op.sample_inputs("cpu", DTYPES[kind], requires_grad=False))
    numbers = range(len(found))
    if limit is not None and len(found) > limit:
        numbers = sorted({i * (len(found) - 1) // max(limit - 1, 1) for i in range(limit)})
    return [(i, Call(op, (found[i].input, *found[i].args), found[i].kwargs)) for i in numbers]


def shown(call):
    """The call's arguments in one line."""
    return ", ".join(
        [*map(_shown, call.args), *(f"{k}={_shown(v)}" for k, v in call.kwargs.items())]
    )


_PLAIN = (int, float, complex, bool, str, type(None), torch.dtype, torch.device, torch.layout)


def _form(leaf):
    if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and not leaf.is_nested:
        size = leaf.untyped_storage().nbytes()
        flags = (leaf.is_conj(), leaf.is_neg(), leaf.is_quantized)
        return (leaf.dtype, leaf.shape, leaf.stride(), leaf.storage_offset(), size, flags)
    return (type(leaf), str(leaf)) if isinstance(leaf, _PLAIN) else object()


def _shown(a):
    if isinstance(a, torch.Tensor):
        return f"{str(a.dtype).removeprefix('torch.')}{list(a.shape)}"
    if isinstance(a, (list, tuple)):
        return f"[{', '.join(map(_shown, a))}]"
    return str(a)
