"""Calibration that goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litert_torch.converter.ir import Graph, Value
from litert_torch.errors import InvalidInputError
from litert_torch.files import atomic_file
from litert_torch.quantize.calibration_data import Batch, Calibration, batches_of

State = dict[Any, Any]
"""What a pass over the batches gathers: something by value, or by a tuple that begins with one."""

_FORMAT = "litert_torch calibration 1"
_EVERY = 10.0  # seconds between two writes
_MODULES = ("litert_torch.quantize.", "numpy")


class Resumable:
    """Calibration data whose progress is kept in a file until the model is quantized.

    The batches must be the same, in the same order, when the program runs again. What was gathered
    belongs to one model and one recipe: another one begins anew.

    Args:
        calibration: The batches, as recipes take them; no generator, which cannot begin again.
        path: The file; it is made, and removed at the end.

    Raises:
        InvalidInputError: `path` has another file.
    """

    def __init__(self, calibration: Calibration, path: str | os.PathLike[str]) -> None:
        self.calibration = calibration
        self.path = Path(path)
        self._passes: dict[bytes, _Record] = _load(self.path)
        self._written = time.monotonic()

    def for_graph(self, graph: Graph) -> Iterable[Batch]:
        """The batches for one signature."""
        return batches_of(self.calibration, graph)

    def record(self, key: bytes) -> _Record | None:
        """What is kept of a pass."""
        return self._passes.get(key)

    def keep(self, key: bytes, record: _Record, *, now: bool) -> None:
        """Keep it, in the file at times, or `now`."""
        self._passes[key] = record
        if now or time.monotonic() - self._written > _EVERY:
            with atomic_file(self.path) as stream:
                pickle.dump((_FORMAT, self._passes), stream)
            self._written = time.monotonic()

    def finished(self) -> None:
        """Forget everything: the model is quantized."""
        self._passes.clear()
        self.path.unlink(missing_ok=True)


@dataclass
class _Record:
    """A pass: batches seen, whether these are all, and what was gathered from them."""

    done: int
    is_finished: bool
    state: list[dict[Hashable, Any]]


class Pass:
    """One pass over the batches; without a `Resumable`, it keeps nothing.

    Attributes:
        done: Batches that need not be run again; all where it `is_finished`.
    """

    def __init__(
        self,
        calibration: Calibration,
        about: tuple[object, ...],
        file: Path,
        values: Sequence[Value],
        state: Sequence[State],
    ) -> None:
        self.done, self.is_finished = 0, False
        self._keeper = calibration if isinstance(calibration, Resumable) else None
        self._state = state
        self._values = list(values)
        if self._keeper is None:
            return
        self._key = _digest(about, file)
        record = self._keeper.record(self._key)
        if record is not None:
            self.done, self.is_finished = record.done, record.is_finished
            for target, stored in zip(state, record.state, strict=True):
                target.clear()
                target.update({self._unnumbered(k): v for k, v in stored.items()})

    def saw(self, batches: int, *, is_finished: bool = False) -> None:
        """So many batches are done."""
        if self._keeper is None:
            return
        record = _Record(
            batches,
            is_finished,
            [{self._numbered(k): v for k, v in s.items()} for s in self._state],
        )
        self._keeper.keep(self._key, record, now=is_finished)

    def _numbered(self, key: Any) -> Hashable:
        if isinstance(key, tuple):
            return (self._values.index(key[0]), *key[1:])
        return self._values.index(key)

    def _unnumbered(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return (self._values[key[0]], *key[1:])
        return self._values[key]


def _digest(about: tuple[object, ...], file: Path) -> bytes:
    """Equal for equal models, tensors looked at and ways to look."""
    digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
    if file.exists():
        with open(file, "rb") as stream:
            while chunk := stream.read(1 << 24):
                digest.update(chunk)
    return digest.digest()


class _Unpickler(pickle.Unpickler):
    """Takes arrays and our own classes, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = module == "numpy" or module.startswith(_MODULES)
        if not allowed or "." in name:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong there")
        found = super().find_class(module, name)
        if not isinstance(found, type) and name not in ("_reconstruct", "scalar", "_frombuffer"):
            raise pickle.UnpicklingError(f"{module}.{name} does not belong there")
        return found


def _load(path: Path) -> dict[bytes, _Record]:
    if not path.exists():
        return {}
    try:
        mark, passes = _Unpickler(io.BytesIO(path.read_bytes())).load()
    except Exception as error:
        raise InvalidInputError(f"{path} is no file of an interrupted calibration") from error
    if mark != _FORMAT:
        raise InvalidInputError(f"{path} is no file of an interrupted calibration")
    return dict(passes)
