"""The tables of the SQLite store, how its file is opened, and who may.

``log``
    One row per event, by revision; ``v`` is NULL for a delete, ``prev_rv`` is the row it
    replaces (0 when the key was new). Values are written here once and nowhere else.
``cur``
    Which row of the log is a key's value now.
``past``
    Which rows of the log were a key's value before, and until when: what ``range`` needs to look
    back. A create does not touch it, which keeps the commonest write at two trees.
``meta``
    One row: the identity, ``floor`` (revisions up to it are used up even where the log has no
    row), ``compacted``, and ``swept``, how far the rows compaction makes superfluous are deleted.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from skerry.store.base import StoreError, Unavailable

FORMAT = 1

_TABLES = """
CREATE TABLE log(
    rv INTEGER PRIMARY KEY, prev_rv INTEGER NOT NULL, k TEXT NOT NULL, v BLOB);
CREATE TABLE cur(k TEXT PRIMARY KEY, rv INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE past(
    k TEXT NOT NULL, rv INTEGER NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (k, rv)
) WITHOUT ROWID;
CREATE TABLE meta(
    id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL, identity TEXT NOT NULL,
    floor INTEGER NOT NULL, compacted INTEGER NOT NULL, swept INTEGER NOT NULL);
"""

NEWEST_AND_COMPACTED = (
    "SELECT max(floor, coalesce((SELECT max(rv) FROM log), 0)), compacted FROM meta"
)


def rows(connection: apsw.Connection, statement: str, bindings: Sequence[Any] = ()) -> list[Any]:
    """Run *statement* to its end and return what it says, which may be nothing.

    apsw runs a statement only as far as its rows are read; a forgotten rest would keep the
    snapshot, or the transaction, open.
    """
    return connection.execute(statement, bindings).fetchall()


class FileLock:
    """Holds a data file for one process; a second one learns who has it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise Unavailable(
                f"data file {str(path)!r} is in use by process {holder}: "
                "only one server may open it at a time"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process open the file. The lock file stays: removing it would race."""
        os.close(self._descriptor)


def create_private(path: Path) -> None:
    """Create the file, and its folder, so that nobody else can read the secrets in it.

    SQLite gives its log and index the permissions of the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def connect(path: Path, *, cache_kib: int, patience_milliseconds: int = 0) -> apsw.Connection:
    """Return a connection with the settings every part of the store relies on."""
    connection = apsw.Connection(str(path), statementcachesize=256)
    connection.set_busy_timeout(patience_milliseconds)
    # The checkpoints are ours to time; SQLite's own would stall whichever commit met them.
    connection.wal_autocheckpoint(0)
    for pragma in (
        "journal_mode = WAL",
        # FULL: the WAL is synced before a commit is published. NORMAL would lose the last
        # acknowledged writes on power loss.
        "synchronous = FULL",
        f"cache_size = -{cache_kib}",
        "temp_store = MEMORY",
    ):
        rows(connection, f"PRAGMA {pragma}")
    return connection


def connect_read_only(path: Path, *, cache_kib: int) -> apsw.Connection:
    """Return a connection that can only look, also at a file another process is writing."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY, statementcachesize=256)
    connection.set_busy_timeout(1000)
    rows(connection, f"PRAGMA cache_size = -{cache_kib}")
    return connection


def prepare(connection: apsw.Connection, path: Path, new_identity: str) -> None:
    """Create the tables in a new file, or check that this is one of ours."""
    ((version,),) = rows(connection, "PRAGMA user_version")
    if version == 0 and not rows(connection, "SELECT 1 FROM sqlite_schema"):
        with connection:
            for statement in _TABLES.split(";"):
                rows(connection, statement)
            rows(connection, "INSERT INTO meta VALUES (1, ?, ?, 1, 0, 0)", (FORMAT, new_identity))
            rows(connection, f"PRAGMA user_version = {FORMAT}")
        return
    check_format(connection, path)


def check_format(connection: apsw.Connection, path: Path) -> None:
    """Refuse a file that is not a store of this format."""
    ((version,),) = rows(connection, "PRAGMA user_version")
    if version != FORMAT:
        raise StoreError(
            f"data file {str(path)!r} has format {version}; this program reads format {FORMAT}"
        )
