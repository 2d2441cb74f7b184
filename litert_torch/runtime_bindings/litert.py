"""A LiteRT model in memory or on disk, and running it with the LiteRT interpreter."""

from __future__ import annotations

import abc
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from litert_torch.errors import InvalidInputError, InvalidModelFileError, OutputError

DEFAULT_SIGNATURE_NAME = "serving_default"

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
    """

    def __init__(self, content: bytes | str | os.PathLike[str]) -> None:
        self._content = content if isinstance(content, bytes) else None
        self._path = None if isinstance(content, bytes) else Path(content)
        self._builder: Callable[[], Interpreter] = self._default_interpreter
        self._interpreter: Interpreter | None = None
        self._owned: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def from_temporary(cls, write: Callable[[str], None]) -> LiteRTModel:
        """A model whose file `write` makes at a temporary path, removed with the model."""
        directory = tempfile.TemporaryDirectory(prefix="litert_torch_")
        path = os.path.join(directory.name, "model.tflite")
        write(path)
        model = cls(path)
        model._owned = directory
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LiteRTModel:
        """Open a .tflite file; it must stay in place as long as the model is used.

        Raises:
            InvalidModelFileError: no such file, or not a LiteRT model.
        """
        try:
            with open(path, "rb") as stream:
                head = stream.read(8)
        except OSError as error:
            raise InvalidModelFileError(f"cannot read {path}: {error.strerror or error}") from error
        if len(head) < 8 or head[4:8] != b"TFL3":
            raise InvalidModelFileError(
                f"{path} is not a LiteRT model: bytes 4 to 8 are {head[4:8]!r}, not b'TFL3'"
            )
        return cls(path)

    def set_interpreter_builder(self, builder: Callable[[], Interpreter]) -> None:
        """Use `builder` to make the interpreter, for custom ops or delegates."""
        self._builder = builder
        self._interpreter = None

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
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if self._content is not None:
                temporary.write_bytes(self._content)
            else:
                assert self._path is not None
                shutil.copyfile(self._path, temporary)
            os.replace(temporary, target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise OutputError(f"cannot write {target}: {error.strerror or error}") from error

    def __call__(
        self, *args: npt.ArrayLike, signature_name: str = DEFAULT_SIGNATURE_NAME, **kwargs: Any
    ) -> Outputs:
        """Run one signature.

        Args:
            *args: Inputs args_0, args_1, ... in order: numpy arrays or what numpy takes.
            signature_name: Which entry point.
            **kwargs: Inputs by name.

        Returns:
            One array, or a tuple where the signature has several outputs named output_0, ...; a
            dict by name for other names.

        Raises:
            InvalidInputError: unknown signature, or inputs of wrong number, name, shape or dtype.
        """
        interpreter = self._get_interpreter()
        signatures = interpreter.get_signature_list()
        if signature_name not in signatures:
            raise InvalidInputError(
                f"no signature {signature_name!r}; the model has: {', '.join(signatures)}"
            )
        names = signatures[signature_name]["inputs"]
        feed = {**{f"args_{i}": np.asarray(a) for i, a in enumerate(args)}, **kwargs}
        if len(feed) != len(names):
            raise InvalidInputError(
                f"signature {signature_name!r} takes {len(names)} inputs ({', '.join(names)}), "
                f"but {len(feed)} were given ({', '.join(feed)})"
            )
        runner = interpreter.get_signature_runner(signature_name)
        outputs = runner(**feed)
        if all(re.fullmatch(r"output_\d+", name) for name in outputs):
            ordered = tuple(outputs[f"output_{i}"] for i in range(len(outputs)))
            return ordered[0] if len(ordered) == 1 else ordered
        return dict(outputs)

    def _get_interpreter(self) -> Interpreter:
        if self._interpreter is None:
            self._interpreter = self._builder()
            self._interpreter.allocate_tensors()
        return self._interpreter

    def _default_interpreter(self) -> Interpreter:
        from ai_edge_litert import interpreter

        options: dict[str, Any] = {"experimental_default_delegate_latest_features": True}
        if self._content is not None:
            return interpreter.Interpreter(model_content=self._content, **options)
        return interpreter.Interpreter(model_path=str(self._path), **options)
