"""The packings of GPTQ, AWQ and compressed-tensors, a function each: tensors to StoredWeight.

A function takes the stem of a layer ("model.layers.0.mlp.up_proj"), the tensors, and the settings
in config.json; it gives None for layers that are not quantized.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.errors import InvalidInputError, UnsupportedCaseError
from litert_torch.quantize.checkpoints.safetensors_files import SafetensorsFiles
from litert_torch.quantize.checkpoints.stored import StoredWeight, unpacked

Settings = Mapping[str, Any]
Packing = Callable[[str, SafetensorsFiles, Settings], StoredWeight | None]

_AWQ_ORDER = np.array([0, 4, 1, 5, 2, 6, 3, 7])
"""Where in a word of AWQ's each of 8 neighbouring columns is."""


def gptq(stem: str, tensors: SafetensorsFiles, settings: Settings) -> StoredWeight | None:
    """qweight int32 [K * bits / 32, N], qzeros [groups, N * bits / 32], scales [groups, N].

    (AutoGPTQ's "gptq" stores zero points less one, "gptq_v2" as they are.)
    """
    if f"{stem}.qweight" not in tensors:
        return None
    bits = _bits(stem, settings.get("bits", 4))
    words = tensors.read(f"{stem}.qweight")
    columns, rows = words.shape[0] * 32 // bits, words.shape[1]
    scales = _transposed(tensors.read(f"{stem}.scales"))
    less = 0 if settings.get("checkpoint_format") == "gptq_v2" else 1
    zeros = unpacked(tensors.read(f"{stem}.qzeros"), bits, 1).astype(np.int16).T[:rows] + less
    order = None
    if f"{stem}.g_idx" in tensors:
        groups = tensors.read(f"{stem}.g_idx")
        if not np.array_equal(groups, np.arange(columns) // (columns // scales.shape[1])):
            order = np.array(groups, np.int64)
    _check(stem, (rows, columns), scales, zeros)
    return StoredWeight(
        (rows, columns), bits, lambda: unpacked(words, bits, 0).T, scales, zeros, order=order
    )


def awq(stem: str, tensors: SafetensorsFiles, settings: Settings) -> StoredWeight | None:
    """qweight int32 [K, N / 8], qzeros [groups, N / 8], scales [groups, N]; columns interleaved."""
    if f"{stem}.qweight" not in tensors:
        return None
    if _bits(stem, settings.get("bits", settings.get("w_bit", 4))) != 4:
        raise UnsupportedCaseError(f"{stem}: AWQ of other than 4 bits")
    words = tensors.read(f"{stem}.qweight")
    columns, rows = words.shape[0], words.shape[1] * 8
    scales = _transposed(tensors.read(f"{stem}.scales"))
    zeros = _interleaved(tensors.read(f"{stem}.qzeros")).astype(np.int16).T
    _check(stem, (rows, columns), scales, zeros)
    return StoredWeight((rows, columns), 4, lambda: _interleaved(words).T, scales, zeros)


def _interleaved(words: Array) -> Array:
    lanes = unpacked(words, 4, 1).reshape(len(words), -1, 8)
    return np.ascontiguousarray(lanes[:, :, _AWQ_ORDER]).reshape(len(words), -1)


def compressed_tensors(
    stem: str, tensors: SafetensorsFiles, settings: Settings
) -> StoredWeight | None:
    """weight_packed int32 [N, K * bits / 32] or weight int8 [N, K], weight_scale [N, groups]."""
    if f"{stem}.weight_scale" not in tensors:
        return None
    scales = np.array(tensors.read(f"{stem}.weight_scale"), np.float32)
    is_packed = f"{stem}.weight_packed" in tensors
    if is_packed:
        rows, columns = (int(n) for n in tensors.read(f"{stem}.weight_shape"))
        words = tensors.read(f"{stem}.weight_packed")
        bits = _bits(stem, words.shape[1] * 32 // columns if columns else 0)
        read = lambda: unpacked(words, bits, 1)[:, :columns]  # noqa: E731
    else:
        stored = tensors.read(f"{stem}.weight")
        if stored.dtype != np.int8:
            raise UnsupportedCaseError(
                f"{stem}: weights of {stored.dtype} with scales; int8 and packed int4 are supported"
            )
        (rows, columns), bits = stored.shape, 8
        read = lambda: np.asarray(stored)  # noqa: E731
    scales = np.broadcast_to(scales.reshape(-1, scales.shape[-1]), (rows, scales.shape[-1]))
    middle = 1 << (bits - 1) if is_packed else 0
    zeros = np.full(scales.shape, middle, np.int16)
    if f"{stem}.weight_zero_point" in tensors:
        given = tensors.read(f"{stem}.weight_zero_point")
        if given.dtype == np.int32:
            zeros = unpacked(given, bits, 0)[:rows].astype(np.int16)
        else:
            zeros = zeros + given.astype(np.int16).reshape(-1, scales.shape[1])
    order = None
    if f"{stem}.weight_g_idx" in tensors:
        groups = np.array(tensors.read(f"{stem}.weight_g_idx"), np.int64)
        is_sorted = np.array_equal(groups, np.arange(columns) // (columns // scales.shape[1]))
        order = None if is_sorted or (groups < 0).any() else groups
    _check(stem, (rows, columns), scales, zeros)
    return StoredWeight((rows, columns), bits, read, scales, zeros, order=order)


def _transposed(scales: Array) -> Array:
    return np.ascontiguousarray(np.asarray(scales, np.float32).T)


def _bits(stem: str, bits: Any) -> int:
    if bits not in (4, 8):
        raise UnsupportedCaseError(f"{stem}: weights of {bits} bits; 4 and 8 are supported")
    return int(bits)


def _check(stem: str, shape: tuple[int, int], scales: Array, zeros: Array) -> None:
    groups = scales.shape[1] if scales.ndim == 2 else 0
    if (
        scales.shape[0] != shape[0]
        or not groups
        or shape[1] % groups
        or zeros.shape != scales.shape
    ):
        raise InvalidInputError(
            f"{stem}: scales of shape {list(scales.shape)} and zero points of "
            f"{list(zeros.shape)} do not fit weights of {list(shape)}"
        )


PACKINGS: dict[str, Packing] = {
    "awq": awq,
    "compressed-tensors": compressed_tensors,
    "gptq": gptq,
}
"""By quant_method in config.json."""
