"""A quantized checkpoint: its weights for a module, and the recipe that keeps its integers."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.quantize.checkpoints import gguf_names
from litert_torch.quantize.checkpoints.gguf import GgufFile
from litert_torch.quantize.checkpoints.packed_linear import PACKINGS
from litert_torch.quantize.checkpoints.safetensors_files import SafetensorsFiles
from litert_torch.quantize.checkpoints.stored import StoredWeight
from litert_torch.quantize.checkpoints.unfolding import CheckpointRecipe
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.schemes import Weights

if TYPE_CHECKING:
    import torch

_PARTS = re.compile(
    r"\.(qweight|qzeros|scales|g_idx|weight_packed|weight_scale|weight_shape|weight_zero_point"
    r"|weight_g_idx|input_scale|input_zero_point|output_scale|output_zero_point)$"
)
"""Tensors that are no parameters of the module."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds, read when asked for.

    Attributes:
        name: Of the folder or file.
        stored: Quantized weights by the name of their layer in the module, "layers.0.mlp.up_proj".
        floats: What gives each other parameter, by its name in the module.
    """

    name: str
    stored: Mapping[str, StoredWeight]
    floats: Mapping[str, Callable[[], Array]]

    def tensors(self) -> Iterator[tuple[str, Array]]:
        """Every parameter by name, quantized ones as the float32 numbers that they stand for."""
        for stem, weight in self.stored.items():
            yield f"{stem}.weight", weight.real()
        for name, read in self.floats.items():
            data = read()
            is_number = data.dtype.kind == "f" or data.dtype.name == "bfloat16"
            yield name, data.astype(np.float32) if is_number else np.array(data)

    def load_into(self, module: torch.nn.Module) -> None:
        """Give the parameters of `module`, of float32, the checkpoint's numbers.

        Raises:
            InvalidInputError: the module lacks a parameter of the checkpoint, or has another shape.
        """
        import torch

        known = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        with torch.no_grad():
            for name, data in self.tensors():
                target = known.get(name)
                if target is None:
                    if name.removesuffix(".weight") in self.stored:
                        raise InvalidInputError(f"the module has no {name}, but {self.name} does")
                    continue
                if tuple(target.shape) != data.shape:
                    raise InvalidInputError(
                        f"{name} has shape {list(target.shape)}, but {list(data.shape)} in "
                        f"{self.name}"
                    )
                target.copy_(torch.from_numpy(data))

    def recipe(self) -> Recipe:
        """A recipe that stores these weights as the checkpoint does, where LiteRT can.

        Its report notes what is quantized anew, and why.
        """
        stems: dict[Weights, list[str]] = {}
        reasons: Counter[str] = Counter()
        for stem, weight in self.stored.items():
            scheme, why_not = weight.scheme()
            stems.setdefault(scheme, []).append(stem)
            if why_not:
                reasons[why_not] += 1
        recipe: Recipe = CheckpointRecipe(stored=self.stored)
        for scheme, names in stems.items():
            pattern = re.compile(rf"(^|\.)({'|'.join(map(re.escape, names))})$")
            recipe = recipe.rule(
                pattern, "FULLY_CONNECTED", weights=scheme, algorithm="stored", compute="dynamic"
            )
        total = len(self.stored)
        for reason, count in reasons.most_common():
            recipe.report.notes.append(
                f"{count} of {total} weights of {self.name} are quantized anew, all or in part: "
                f"{reason}"
            )
        return recipe


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint at `path`.

    Args:
        path: A folder with config.json and .safetensors files of GPTQ, AWQ or compressed-tensors,
            or a .gguf file of a Llama-like model.

    Raises:
        InvalidInputError: there is none, or it is damaged.
        UnsupportedCaseError: it is quantized in another way.
    """
    where = Path(path)
    if where.suffix == ".gguf":
        return _of_gguf(where)
    try:
        config = json.loads((where / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} has no config.json that can be read: {error}") from error
    settings = config.get("quantization_config") or config.get("compression_config") or {}
    method = settings.get("quant_method", "")
    if method not in PACKINGS:
        raise UnsupportedCaseError(
            f"{path} is quantized by {method or 'nothing'}; known: {', '.join(PACKINGS)}, GGUF"
        )
    return _of_folder(where, method, settings)


def _of_folder(folder: Path, method: str, settings: Mapping[str, Any]) -> Checkpoint:
    tensors, pack = SafetensorsFiles(folder), PACKINGS[method]
    stems = dict.fromkeys(_PARTS.sub("", n) for n in tensors.names() if _PARTS.search(n))
    found = {stem: pack(stem, tensors, settings) for stem in stems}
    stored = {stem: weight for stem, weight in found.items() if weight is not None}

    def reader(name: str) -> Callable[[], Array]:
        return lambda: tensors.read(name)

    floats = {
        n: reader(n)
        for n in tensors.names()
        if not _PARTS.search(n) and n.removesuffix(".weight") not in stored
    }
    return Checkpoint(folder.name, stored, floats)


def _of_gguf(path: Path) -> Checkpoint:
    file = GgufFile(path)
    stored: dict[str, StoredWeight] = {}
    floats: dict[str, Callable[[], Array]] = {}
    rename = gguf_names.names_of(file)
    for name in file.places:
        if name not in rename:
            continue
        weight, stem = file.weight(name), rename[name].removesuffix(".weight")
        heads = gguf_names.heads_of(file, name)
        if isinstance(weight, StoredWeight):
            stored[stem] = gguf_names.in_order(weight, heads) if heads else weight
        else:
            data = gguf_names.rows_in_order(weight, heads) if heads else weight
            floats[rename[name]] = lambda data=data: data  # type: ignore[misc]
    return Checkpoint(path.name, stored, floats)
