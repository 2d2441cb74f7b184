"""A torch.nn.Module to an ExportedProgram."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
import torch.export._trace  # what torch.export imports on its first call: half a second, 170 MB
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from litert_torch.converter.frontends.composites import traceable_composites
from litert_torch.converter.frontends.recurrent_shapes import recurrent_shapes
from litert_torch.converter.frontends.value_checks import passed_value_checks
from litert_torch.converter.signature import Signature
from litert_torch.errors import ExportError

_log = logging.getLogger("litert_torch")

Strictness = Literal["auto"] | bool


def export(signature: Signature, strict: Strictness = False) -> ExportedProgram:
    """Trace `signature.module` in eval mode; the caller's module is left as it was.

    `strict` is torch.export's own; "auto" tries False, then True.

    Raises:
        ExportError: torch.export refuses the module. Names the user's line where torch says it.
    """
    attempts = (False, True) if strict == "auto" else (bool(strict),)
    with eval_mode(signature.module) as was_training:
        if was_training:
            _log.warning(
                "The module is in training mode; it is converted in eval mode. "
                "Call module.eval() first to silence this."
            )
        for last, attempt in zip([False] * (len(attempts) - 1) + [True], attempts, strict=True):
            try:
                return _export(signature, attempt)
            except Exception as error:  # torch.export raises whatever the model's code raises
                if last:
                    raise ExportError(_explain(signature, error)) from error
                _log.info("torch.export(strict=%s) failed, retrying with strict=True", attempt)
    raise AssertionError("unreachable")


def _export(signature: Signature, strict: bool) -> ExportedProgram:
    args, kwargs = _told_apart((signature.args, signature.kwargs), signature.module)
    with torch.no_grad(), traceable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(
            signature.module,
            args,
            kwargs,
            dynamic_shapes=signature.dynamic_shapes,
            strict=strict,
        )


@contextmanager
def traceable() -> Iterator[None]:
    """Inside the block, what torch.export needlessly runs or refuses is traced."""
    with recurrent_shapes(), traceable_composites(), passed_value_checks():
        yield


def _told_apart(samples: Any, module: torch.nn.Module) -> Any:
    """The samples, each a tensor of its own: torch.export takes one given twice for one input."""
    seen = {id(t) for t in (*module.parameters(), *module.buffers())}

    def apart(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) in seen:
            leaf = leaf.detach()
        seen.add(id(leaf))
        kept.append(leaf)
        return leaf

    kept: list[torch.Tensor] = []  # so that no later tensor has the id of one before
    return pytree.tree_map(apart, samples)


@contextmanager
def eval_mode(module: torch.nn.Module) -> Iterator[bool]:
    """`module` in eval mode inside the block; gives whether it was in training mode before.

    Exported modules stay as they are: their mode was fixed when they were exported.
    """
    exported = isinstance(module, torch.fx.GraphModule)
    training = [] if exported else [m for m in module.modules() if m.training]
    for m in training:
        m.training = False
    try:
        yield bool(training)
    finally:
        for m in training:
            m.training = True


_ADVICE = {
    "GuardOnDataDependentSymNode": "The model branches on a tensor's value, or uses it as a size. "
    "Use torch.where or torch.cond, or make the value a Python constant.",
    "Could not guard": "The model branches on a tensor's value, or uses it as a size. "
    "Use torch.where or torch.cond, or make the value a Python constant.",
    "data-dependent": "The model branches on a tensor's value, or uses it as a size. "
    "Use torch.where or torch.cond, or make the value a Python constant.",
    "Constraints violated": "The model fixes a size that dynamic_shapes declares dynamic; "
    "follow torch's suggested fix above, or drop that dimension.",
    "Unsupported output type": "Return tensors only (or lists, tuples and dicts of them).",
}


def _explain(signature: Signature, error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    advice = next((a for key, a in _ADVICE.items() if key in text or key in repr(error)), None)
    parts = [f"torch.export cannot trace {type(signature.module).__name__}"]
    where = _user_line(error, text)
    if where:
        parts[0] += f" (at {where})"
    summary = "\n".join(text.splitlines()[:12])
    parts.append(f"{type(error).__name__}: {summary}")
    parts.append(advice or "Try strict_export='auto', or rewrite the line shown.")
    return "\n".join(parts)


def _user_line(error: Exception, text: str) -> str | None:
    frames: list[Any] = []
    tb = error.__traceback__
    while tb is not None:
        frames.append((tb.tb_frame.f_code.co_filename, tb.tb_lineno))
        tb = tb.tb_next
    own = [f for f in frames if "/torch/" not in f[0] and "/litert_torch/" not in f[0]]
    own = [f for f in own if not f[0].startswith("<")]
    if own:
        return f"{own[-1][0]}:{own[-1][1]}"
    found = re.search(r'File "([^"]+)", line (\d+)', text)
    return f"{found[1]}:{found[2]}" if found else None
