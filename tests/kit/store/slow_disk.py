"""A disk that takes as long over a commit as a test wants."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import apsw

_PATIENCE_SECONDS = 60.0


class SlowDisk:
    """Holds up every COMMIT of the SQLite connections that are opened while it is installed."""

    def __init__(self) -> None:
        self._free = threading.Event()
        self._free.set()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        hook = self._opened
        apsw.connection_hooks.append(hook)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(hook)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no commit end inside the context."""
        self._free.clear()
        try:
            yield
        finally:
            self._free.set()

    def _opened(self, connection: apsw.Connection) -> None:
        connection.set_commit_hook(self._committing)

    def _committing(self) -> bool:
        """Called in the thread that commits; True would undo it."""
        return not self._free.wait(_PATIENCE_SECONDS)
