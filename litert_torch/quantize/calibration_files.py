"""Calibration batches from files: images, .npy for models of one input, .npz by input name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from litert_torch.converter.constants import Array
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, Value
from litert_torch.errors import InvalidInputError, MissingDependencyError
from litert_torch.quantize.calibration_data import Batch

_ARRAYS = (".npy", ".npz")
_IMAGES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")

IMAGENET = "123.675,116.28,103.53 and 58.395,57.12,57.375"
"""Mean and standard deviation of pixels that most classifiers were trained with."""


class CalibrationFiles:
    """Batches from files, each read when its turn comes, in the order of their names.

    Images become what a model's input is: they are cropped to its proportions about their middle,
    scaled to its size, and normalized, as many together as its batch has, channels first or last.

    Args:
        path: A folder of images or of .npy and .npz files (a batch each), looked through with the
            folders in it; or one such file.
        mean: For images: pixels, 0..255, become (pixel - mean) / std. A number, or one a channel.
        std: See `mean`.
        limit: So many files at most, evenly from all.
        progress: Called after each batch with the number of files read and of all.

    Raises:
        InvalidInputError: there is no such file, none in the folder, or images without mean and
            std.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        where = Path(path)
        found = sorted(where.rglob("*")) if where.is_dir() else [where]
        known = [p for p in found if p.suffix.lower() in _ARRAYS + _IMAGES and p.is_file()]
        arrays = [p for p in known if p.suffix.lower() in _ARRAYS]
        self.paths = arrays or known
        if not self.paths:
            raise InvalidInputError(f"{path} is no .npy, .npz or image file, nor a folder of them")
        if limit is not None and limit < len(self.paths):
            places = np.linspace(0, len(self.paths) - 1, max(1, limit)).round().astype(int)
            self.paths = [self.paths[i] for i in places]
        self.is_of_images = not arrays
        if self.is_of_images and (mean is None or std is None):
            raise InvalidInputError(
                f"{path} has images: say how the model wants their pixels, with mean and std "
                f"({IMAGENET} for most ImageNet classifiers, 127.5 and 127.5 for -1..1)"
            )
        self.mean, self.std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self.progress = progress

    def __iter__(self) -> Iterator[Batch]:
        if self.is_of_images:
            raise InvalidInputError("images become batches for a model: use for_graph(graph)")
        for i, path in enumerate(self.paths):
            yield _arrays(path)
            self._tell(i + 1)

    def for_graph(self, graph: Graph) -> Iterator[Batch]:
        """The batches for one model; images have the size and layout of its input.

        Raises:
            InvalidInputError: a file cannot be read, or the model does not take images.
        """
        if not self.is_of_images:
            yield from self
            return
        size = _ImageSize(graph)
        for i in range(0, len(self.paths), size.batch):
            part = self.paths[i : i + size.batch]
            part += self.paths[: size.batch - len(part)]  # the last batch is filled up
            part += [part[-1]] * (size.batch - len(part))
            pixels = np.stack([self._normalized(p, size) for p in part])
            yield pixels if size.is_last else np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
            self._tell(min(i + size.batch, len(self.paths)))

    def _normalized(self, path: Path, size: _ImageSize) -> Array:
        for numbers in (self.mean, self.std):
            if numbers.size not in (1, size.channels):
                raise InvalidInputError(
                    f"mean and std have {numbers.size} channels, but the model takes images of "
                    f"{size.channels}"
                )
        normalized: Array = (_pixels(path, size) - self.mean.reshape(-1)) / self.std.reshape(-1)
        return normalized.astype(np.float32)

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, len(self.paths))


class _ImageSize:
    """What images become, by the one image that a model takes."""

    def __init__(self, graph: Graph) -> None:
        images = [v for v in graph.inputs if v.rank == 4 and v.dtype == DType.FLOAT32]
        if len(graph.inputs) != 1 or not images:
            taken = ", ".join(f"{n} {v.type}" for n, v in _named(graph))
            raise InvalidInputError(
                f"signature {graph.name!r} takes {taken}: images are for models of one float32 "
                "input [batch, channels, height, width] or [batch, height, width, channels]; "
                "give .npz files"
            )
        sizes = [s if isinstance(s, int) else 0 for s in images[0].shape]
        self.is_last = sizes[3] in (1, 3) and sizes[1] not in (1, 3)
        self.batch = sizes[0] or 1
        height, width, self.channels = sizes[1:] if self.is_last else (*sizes[2:], sizes[1])
        if self.channels not in (1, 3):
            raise InvalidInputError(
                f"input {graph.input_names[0]!r} of {images[0].type} has not 1 or 3 channels"
            )
        self.height, self.width = height or 224, width or 224


def _named(graph: Graph) -> Iterator[tuple[str, Value]]:
    yield from zip(graph.input_names, graph.inputs, strict=True)


def _pixels(path: Path, size: _ImageSize) -> Array:
    """The image as float32 [height, width, channels] of 0..255."""
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise MissingDependencyError(
            "reading images needs Pillow: pip install pillow, or give .npy files"
        ) from error
    try:
        with Image.open(path) as opened:
            image = opened.convert("RGB" if size.channels == 3 else "L")
            fitted = ImageOps.fit(image, (size.width, size.height), Image.Resampling.BILINEAR)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise InvalidInputError(f"cannot read {path}: {error}") from error
    return np.asarray(fitted, np.float32).reshape(size.height, size.width, size.channels)


def _arrays(path: Path) -> Any:
    try:
        loaded = np.load(path, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else dict(loaded.items())
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise InvalidInputError(f"cannot read {path}: {error}") from error
