"""Running a file with LiteRT's CompiledModel, on the CPU, a GPU or an NPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.runtime_bindings import inputs
from litert_torch.runtime_bindings.model_file import ModelFile, SignatureSpec, TensorSpec

ACCELERATORS = ("cpu", "gpu", "npu")
_TRANSFERRED = ("float32", "float16", "int32", "int8", "uint8", "bool")
"""Types that a TensorBuffer takes; others go through as bytes."""


class CompiledModel:
    """A .tflite file compiled for accelerators; calling it runs a signature.

    Args:
        content: The file's bytes, or its path.
        accelerators: What may run it, of ACCELERATORS. Without "cpu", every operator must be one
            that the accelerator has.
        num_threads: Threads of the CPU.

    Raises:
        InvalidInputError: an accelerator is unknown.
        InvalidModelFileError: the file is not whole, or cannot run on these accelerators.
    """

    def __init__(
        self,
        content: bytes | str | os.PathLike[str],
        *,
        accelerators: Sequence[str] = ("cpu",),
        num_threads: int = 1,
    ) -> None:
        in_memory = isinstance(content, bytes)
        self._file = ModelFile(content) if isinstance(content, bytes) else ModelFile.open(content)
        self._signatures = list(self._file.signatures.values())
        options = _options(accelerators, num_threads)
        from ai_edge_litert import compiled_model

        make = compiled_model.CompiledModel
        try:
            self._compiled = (
                make.from_buffer(content, options=options)
                if in_memory
                else make.from_file(os.fspath(content), options=options)
            )
        except (RuntimeError, ValueError) as error:
            raise InvalidModelFileError(
                f"{self._file.name} cannot run on {' and '.join(accelerators)}: {error}"
            ) from error

    @property
    def is_fully_accelerated(self) -> bool:
        """Whether no operator falls back to the interpreter's plain kernels."""
        return bool(self._compiled.is_fully_accelerated())

    def __call__(
        self, *args: Any, signature_name: str | None = None, **kwargs: Any
    ) -> dict[str, npt.NDArray[Any]]:
        """Run one signature, the first by default; returns its outputs by name.

        Inputs are as `LiteRTModel` takes them, and may change size where the model allows it.

        Raises:
            InvalidInputError: unknown signature, or inputs of wrong number, name, shape or dtype.
        """
        number, spec = self._find(signature_name)
        feed = inputs.bind(spec, args, kwargs)
        self._resize(number, spec, feed)
        given = self._compiled.create_input_buffers(number)
        made = self._compiled.create_output_buffers(number)
        for tensor, buffer in zip(spec.inputs, given, strict=True):
            buffer.write(_for_transfer(feed[tensor.name]))
        self._compiled.run_by_index(number, given, made)
        pairs = zip(spec.outputs, made, strict=True)
        return {tensor.name: _read(tensor, buffer) for tensor, buffer in pairs}

    def _find(self, name: str | None) -> tuple[int, SignatureSpec]:
        names = [s.name for s in self._signatures]
        if name is not None and name not in names:
            raise InvalidInputError(f"no signature {name!r}; the model has: {', '.join(names)}")
        number = 0 if name is None else names.index(name)
        return number, self._signatures[number]

    def _resize(self, number: int, spec: SignatureSpec, feed: dict[str, npt.NDArray[Any]]) -> None:
        for i, tensor in enumerate(spec.inputs):
            if -1 in tensor.shape:
                self._compiled.resize_input_tensor(i, list(feed[tensor.name].shape), number)


def _options(accelerators: Sequence[str], num_threads: int) -> Any:
    from ai_edge_litert import compiled_model

    unknown = [a for a in accelerators if a not in ACCELERATORS]
    if unknown or not accelerators:
        raise InvalidInputError(
            f"accelerators are {', '.join(ACCELERATORS)}, not {', '.join(unknown) or 'none'}"
        )
    flags = compiled_model.HardwareAccelerator(0)
    for name in accelerators:
        flags |= compiled_model.HardwareAccelerator[name.upper()]
    return compiled_model.Options(
        hardware_accelerators=flags,
        cpu_options=compiled_model.CpuOptions(num_threads=num_threads),
    )


def _for_transfer(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.name in _TRANSFERRED:
        return array
    return np.ascontiguousarray(array).reshape(-1).view(np.int8)


def _read(tensor: TensorSpec, buffer: Any) -> npt.NDArray[Any]:
    """An output with the shape that it has after this call."""
    shape = buffer.get_tensor_details()["shape"]
    dtype = inputs.numpy_dtype(tensor.dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.name in _TRANSFERRED:
        return np.asarray(buffer.read(count, dtype)).reshape(shape)
    raw = buffer.read(count * dtype.itemsize, np.int8)
    return np.asarray(raw).view(dtype).reshape(shape)
