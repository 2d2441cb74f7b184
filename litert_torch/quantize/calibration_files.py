"""Calibration batches from files: .npy for models of one input, .npz with arrays by input name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from litert_torch.errors import InvalidInputError
from litert_torch.quantize.calibration_data import Batch

_SUFFIXES = (".npy", ".npz")


class CalibrationFiles:
    """A batch a file; files are read when their turn comes, in the order of their names.

    Args:
        path: A folder of .npy and .npz files, or one of them.

    Raises:
        InvalidInputError: there is no such file, or no such files in the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        where = Path(path)
        if where.is_dir():
            self.paths = sorted(p for p in where.iterdir() if p.suffix in _SUFFIXES)
        else:
            self.paths = [where] if where.suffix in _SUFFIXES and where.is_file() else []
        if not self.paths:
            raise InvalidInputError(f"{path} is no .npy or .npz file, nor a folder of them")

    def __iter__(self) -> Iterator[Batch]:
        for path in self.paths:
            try:
                loaded = np.load(path, allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise InvalidInputError(f"cannot read {path}: {error}") from error
            yield loaded if isinstance(loaded, np.ndarray) else dict(loaded.items())
