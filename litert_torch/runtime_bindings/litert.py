"""A LiteRT model in memory or on disk, and running it with the LiteRT interpreter."""

from __future__ import annotations

import abc
import functools
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidInputError, InvalidModelFileError
from litert_torch.files import atomic_file
from litert_torch.runtime_bindings import inputs
from litert_torch.runtime_bindings.model_file import UNNAMED_SIGNATURE, ModelFile, SignatureSpec

DEFAULT_SIGNATURE_NAME = UNNAMED_SIGNATURE

Interpreter = Any  # ai_edge_litert.interpreter.Interpreter, which has no type information
Outputs = npt.NDArray[Any] | tuple[npt.NDArray[Any], ...] | dict[str, npt.NDArray[Any]]


class Model(abc.ABC):
    """Something that runs like the PyTorch module it came from."""

    @abc.abstractmethod
    def __call__(
        self, *args: npt.ArrayLike, signature_name: str = DEFAULT_SIGNATURE_NAME, **kwargs: Any
    ) -> Outputs:
        """Run one signature."""

    @abc.abstractmethod
    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LiteRTModel:
        """Read a model from a file."""
        return LiteRTModel.load(path)


class LiteRTModel(Model):
    """A .tflite model; calling it runs it in the LiteRT interpreter on the CPU.

    Args:
        content: The file's bytes, or the path of a file, which is then mapped, not read.
        num_threads: How many threads it computes with; None leaves that to the runtime.
    """

    def __init__(
        self, content: bytes | str | os.PathLike[str], *, num_threads: int | None = None
    ) -> None:
        self._content = content if isinstance(content, bytes) else None
        self._path = None if isinstance(content, bytes) else Path(content)
        self._num_threads = num_threads
        self._builder: Callable[[], Interpreter] = self._default_interpreter
        self._interpreter: Interpreter | None = None

    @classmethod
    def from_temporary(cls, write: Callable[[str], None]) -> LiteRTModel:
        """A model whose file `write` makes at a temporary path, removed with the model."""
        directory = tempfile.mkdtemp(prefix="litert_torch_")
        path = os.path.join(directory, "model.tflite")
        try:
            write(path)
            model = cls(path)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        weakref.finalize(model, shutil.rmtree, directory, ignore_errors=True)
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, num_threads: int | None = None) -> LiteRTModel:
        """Open and check a .tflite file; it must stay in place as long as the model is used.

        Raises:
            InvalidModelFileError: no such file, or it is empty, foreign, truncated or damaged.
        """
        model = cls(path, num_threads=num_threads)
        model._file = ModelFile.open(path)
        return model

    @property
    def signatures(self) -> Mapping[str, SignatureSpec]:
        """The entry points by name: the names, shapes and dtypes of what they take and give."""
        return self._file.signatures

    def set_interpreter_builder(self, builder: Callable[[], Interpreter]) -> None:
        """Use `builder` to make the interpreter, for custom ops or delegates."""
        self._builder = builder
        self._interpreter = None

    def reset(self) -> None:
        """Forget the state that the model's variables have gathered over calls."""
        self._interpreter = (
            None  # reset_all_variables() leaves variables held by XNNPACK as they are
        )

    def model_content(self) -> bytes:
        """The bytes of the .tflite file."""
        if self._content is not None:
            return self._content
        assert self._path is not None
        return self._path.read_bytes()

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the .tflite file, whole or not at all; missing folders are made.

        Raises:
            OutputError: the path cannot be written or the disk is full.
        """
        with atomic_file(path) as stream:
            if self._content is not None:
                stream.write(self._content)
            else:
                assert self._path is not None
                with open(self._path, "rb") as source:
                    shutil.copyfileobj(source, stream, 1 << 24)

    def __call__(
        self, *args: npt.ArrayLike, signature_name: str = DEFAULT_SIGNATURE_NAME, **kwargs: Any
    ) -> Outputs:
        """Run one signature.

        Args:
            *args: Inputs args_0, args_1, ... in order: numpy arrays, torch tensors or what numpy
                takes. Where the signature names its inputs otherwise: its inputs in order.
            signature_name: Which entry point.
            **kwargs: Inputs by name. Arrays are cast where nothing is lost (int32 to int64) and
                between floats. Sizes may change from call to call where the model allows it.

        Returns:
            One array, or a tuple where the signature has several outputs named output_0, ...; a
            dict by name for other names.

        Raises:
            InvalidInputError: unknown signature, or inputs of wrong number, name, shape or dtype.
        """
        spec = self.signatures.get(signature_name)
        if spec is None:
            raise InvalidInputError(
                f"no signature {signature_name!r}; the model has: {', '.join(self.signatures)}"
            )
        outputs = self._run(spec, inputs.bind(spec, args, kwargs))
        if all(re.fullmatch(r"output_\d+", name) for name in outputs):
            ordered = tuple(outputs[name] for name in sorted(outputs, key=_number))
            return ordered[0] if len(ordered) == 1 else ordered
        return outputs

    def _run(
        self, spec: SignatureSpec, feed: dict[str, npt.NDArray[Any]]
    ) -> dict[str, npt.NDArray[Any]]:
        interpreter = self._get_interpreter()
        try:
            if self._file.has_signatures:
                outputs = interpreter.get_signature_runner(spec.name)(**feed)
            else:
                outputs = _run_main_subgraph(interpreter, spec, feed)
        except (RuntimeError, ValueError) as error:
            self._interpreter = None  # a failed resize leaves it unusable
            if all(-1 not in t.shape for t in spec.inputs):
                raise
            shapes = ", ".join(f"{n} {list(x.shape)}" for n, x in feed.items())
            raise InvalidInputError(
                f"signature {spec.name!r} does not run with inputs of these sizes: {shapes}. "
                f"The runtime says: {error}"
            ) from error
        return {t.name: outputs[t.name] for t in spec.outputs}

    @functools.cached_property
    def _file(self) -> ModelFile:
        if self._content is not None:
            return ModelFile(self._content)
        assert self._path is not None
        return ModelFile.open(self._path)

    def _get_interpreter(self) -> Interpreter:
        if self._interpreter is None:
            self._interpreter = self._builder()
            self._interpreter.allocate_tensors()
        return self._interpreter

    def _default_interpreter(self) -> Interpreter:
        from ai_edge_litert import interpreter

        options: dict[str, Any] = {
            "num_threads": self._num_threads,
        }
        name = (
            self._file.name
        )  # reading it checks the file: the interpreter trusts what it is given
        source = (
            {"model_content": self._content} if self._content else {"model_path": str(self._path)}
        )
        try:
            return interpreter.Interpreter(**source, **options)
        except (RuntimeError, ValueError) as error:
            raise InvalidModelFileError(f"LiteRT cannot load {name}: {error}") from error


def _run_main_subgraph(
    interpreter: Interpreter, spec: SignatureSpec, feed: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Run a file that names no entry points."""
    for tensor in spec.inputs:
        interpreter.resize_tensor_input(tensor.index, feed[tensor.name].shape)
    interpreter.allocate_tensors()
    for tensor in spec.inputs:
        interpreter.set_tensor(tensor.index, feed[tensor.name])
    interpreter.invoke()
    return {t.name: np.array(interpreter.get_tensor(t.index)) for t in spec.outputs}


def _number(name: str) -> int:
    return int(name.removeprefix("output_"))


__all__ = ["DEFAULT_SIGNATURE_NAME", "LiteRTModel", "Model"]
