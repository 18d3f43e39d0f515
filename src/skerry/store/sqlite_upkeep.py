"""What the writing thread does between batches: sweeping after compaction, and checkpoints.

**The WAL's size.** A separate thread copies the WAL into the database (a passive checkpoint)
while commits go on; afterwards the writing thread, between two batches, copies the few frames
left and starts the WAL anew. When long reads keep the WAL in use until it passes
``WalBounds.max_pages``, the writing thread waits for them before each batch: writers feel it, the
disk does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import apsw

from skerry.kit.log import Logger
from skerry.store.sqlite_schema import rows

log = Logger("store")

# How long one batch waits for readers when the WAL is at its most.
_PATIENCE_MILLISECONDS = 200
# Rows swept in one transaction: some milliseconds while commits wait, more when none does.
_SWEEP_BUSY = 200
_SWEEP_IDLE = 2_000

_SWEEP_WINDOW = "SELECT rv FROM log WHERE rv > ? AND rv <= ? ORDER BY rv LIMIT 1 OFFSET ?"
_SWEEP = (
    (
        "DELETE FROM past WHERE (k, rv) IN"
        " (SELECT k, prev_rv FROM log WHERE rv > ? AND rv <= ? AND prev_rv > 0)"
    ),
    (
        "DELETE FROM log WHERE rv IN"
        " (SELECT prev_rv FROM log WHERE rv > ? AND rv <= ? AND prev_rv > 0)"
    ),
    "DELETE FROM log WHERE rv > ? AND rv <= ? AND v IS NULL",
)


@dataclass(frozen=True, slots=True)
class WalBounds:
    """How long the WAL may become, in pages of 4 KiB."""

    wanted_pages: int = 4_000
    """Begin to copy it at this length: 16 MiB, so that a page changed often is copied once."""

    max_pages: int = 65_000
    """Slow writers down beyond this length: 256 MiB, reached only while reads hold it for long."""


class Sweep:
    """Deletes what compaction makes superfluous: replaced rows, then deletes themselves.

    A row may go when the row that replaces it lies at or below the compacted revision, since
    then no kept revision shows it. Walking the log upwards finds each of them through
    ``prev_rv``, so the work is proportional to the events since the last time.
    """

    def __init__(self, connection: apsw.Connection, revision: int) -> None:
        self._connection = connection
        self._revision = revision
        self._marked = False

    def step(self, busy: bool) -> bool:
        """Do one small transaction; return whether all is done."""
        rows(self._connection, "BEGIN IMMEDIATE")
        done = self._sweep(_SWEEP_BUSY if busy else _SWEEP_IDLE) if self._marked else self._mark()
        rows(self._connection, "COMMIT")
        return done

    def _mark(self) -> bool:
        statement = "UPDATE meta SET compacted = max(compacted, ?1), floor = max(floor, ?1)"
        rows(self._connection, statement, (self._revision,))
        self._marked = True
        return False

    def _sweep(self, limit: int) -> bool:
        ((swept, compacted),) = rows(self._connection, "SELECT swept, compacted FROM meta")
        window = rows(self._connection, _SWEEP_WINDOW, (swept, compacted, limit - 1))
        upto = window[0][0] if window else compacted
        for statement in _SWEEP:
            rows(self._connection, statement, (swept, upto))
        rows(self._connection, "UPDATE meta SET swept = ?", (upto,))
        return bool(upto >= compacted)


class Checkpoints:
    """Keeps the WAL short: copies beside the commits, starts it anew between them."""

    def __init__(
        self,
        connection: apsw.Connection,
        connect: Callable[[], apsw.Connection],
        bounds: WalBounds,
    ) -> None:
        self._writing = connection
        self._connect = connect
        self._bounds = bounds
        self._pages = 0
        # Pages at which to try again after readers kept us from starting the WAL anew.
        self._next_try = bounds.wanted_pages
        self._copying: threading.Thread | None = None
        connection.set_wal_hook(self._committed)

    def _committed(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    @property
    def due(self) -> bool:
        """Whether ``between_batches`` may have something to do."""
        return self._copying is not None or self._pages >= self._next_try

    def between_batches(self) -> None:
        """Start or finish a checkpoint when the WAL has grown enough."""
        if self._pages < self._next_try:
            return
        if self._pages >= self._bounds.max_pages:
            self._join()
            self._start_anew(_PATIENCE_MILLISECONDS)
        elif self._copying is None:
            self._copying = threading.Thread(
                target=self._copy, name="store-checkpoint", daemon=True
            )
            self._copying.start()
        elif not self._copying.is_alive():
            self._copying = None
            self._start_anew(0)

    def in_a_lull(self) -> None:
        """Finish a checkpoint that was begun; nobody waits for the disk now."""
        if self._copying is not None:
            self.between_batches()

    def close(self) -> None:
        """Close the writing connection and leave a short WAL behind."""
        self._join()
        try:
            self._writing.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._writing.close()
        except apsw.Error as error:
            log.warning("last checkpoint failed; the next start reads the log", error=error)

    def _join(self) -> None:
        if self._copying is not None:
            self._copying.join()
            self._copying = None

    def _copy(self) -> None:
        try:
            connection = self._connect()
            try:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            finally:
                connection.close()
        except apsw.Error as error:
            log.warning("checkpoint failed; will retry", error=error)

    def _start_anew(self, patience_milliseconds: int) -> None:
        wanted = self._bounds.wanted_pages
        # A WAL that grew far beyond what is wanted also gives its disk space back.
        grown = self._pages > 2 * wanted
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if grown else apsw.SQLITE_CHECKPOINT_RESTART
        self._writing.set_busy_timeout(patience_milliseconds)
        try:
            self._writing.wal_checkpoint(mode=mode)
            self._pages, self._next_try = 0, wanted
        except apsw.BusyError:
            self._next_try = min(self._pages + wanted // 4, self._bounds.max_pages)
        except apsw.Error as error:
            log.warning("checkpoint failed; will retry", error=error)
            self._next_try = self._pages + wanted // 4
        finally:
            self._writing.set_busy_timeout(0)
