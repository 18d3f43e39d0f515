"""The directory in which a syncer keeps its journal, its key and its certificate."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skerry.kit.secret_files import secret_directory


class SyncerStartError(Exception):
    """Why the syncer did not start, in a sentence."""


@contextmanager
def data_directory(folder: Path) -> Iterator[None]:
    """Hold the data directory for this process alone."""
    try:
        secret_directory(folder)
        held = (folder / "lock").open("w")
    except OSError as error:
        raise SyncerStartError(f"cannot keep data in {folder}: {error.strerror}") from error
    with held as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SyncerStartError(
                f"another syncer uses the data directory {folder}: stop it, or give this one a "
                "--data-dir of its own"
            ) from error
        yield
