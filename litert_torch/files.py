"""Files that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from litert_torch.errors import OutputError


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream to a temporary file beside `path` that becomes `path` when the block ends well.

    Missing folders are made. A link is followed, so that what it points to is replaced.

    Raises:
        OutputError: the path is a folder or device, cannot be written, or the disk is full.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OutputError(f"cannot write {path}: it is a folder or a device, not a file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:200]}.")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, OutputError):
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


@contextmanager
def atomic_folder(path: str | os.PathLike[str], *, replaces: str) -> Iterator[Path]:
    """A temporary folder beside `path` that becomes `path` when the block ends well.

    A folder that is there is replaced only where it is empty or has a file `replaces` in it.

    Raises:
        OutputError: something else is there, it cannot be written, or the disk is full.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not _may_replace(target, replaces):
        raise OutputError(
            f"cannot write {path}: it exists and is not a folder with a {replaces}, "
            "which would be replaced"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:200]}.")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        yield Path(temporary)
        os.chmod(temporary, 0o777 & ~_umask())
        if target.exists():
            old = tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:200]}.")
            os.replace(target, old)
            os.replace(temporary, target)
            shutil.rmtree(old)
        else:
            os.replace(temporary, target)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, OutputError):
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def _may_replace(folder: Path, marker: str) -> bool:
    if not folder.is_dir():
        return False
    return (folder / marker).is_file() or not any(folder.iterdir())
