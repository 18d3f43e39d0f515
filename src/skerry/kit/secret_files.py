"""Files that hold secrets: written whole or not at all, readable by their owner alone."""

from __future__ import annotations

import os
from pathlib import Path

_SECRET_FILE = 0o600
_SECRET_DIRECTORY = 0o700


def secret_directory(path: Path) -> Path:
    """Make *path* a directory that only its owner may enter."""
    path.mkdir(mode=_SECRET_DIRECTORY, parents=True, exist_ok=True)
    path.chmod(_SECRET_DIRECTORY)
    return path


def write_secret(path: Path, content: bytes) -> None:
    """Replace *path* atomically and durably; nobody else can read it at any moment."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _SECRET_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_directory(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync_directory(path: Path) -> None:
    """Make the names in a directory durable; a rename alone may be lost with the power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
