"""Files of the SQLite store, for tests of its parts: made of events, without a writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import apsw

from skerry.store.base import Event, Write
from skerry.store.batch import State, evaluate
from skerry.store.sqlite_schema import connect, prepare, rows
from skerry.store.sqlite_writer import Writer


def connection(path: Path) -> apsw.Connection:
    """Open *path* with the store's settings, but let the disk be."""
    opened = connect(path, cache_kib=256)
    rows(opened, "PRAGMA synchronous = OFF")
    return opened


def prepared(path: Path, identity: str = "test") -> apsw.Connection:
    """Create the tables in *path*."""
    opened = connection(path)
    prepare(opened, path, identity)
    return opened


def written(opened: apsw.Connection, commits: Iterable[Sequence[Write]]) -> list[Event]:
    """Write *commits* one after the other, as the writer would; return all that happened."""
    state = State()
    _, events = evaluate(state, commits, 1)
    # The inserts are the writer's own; its thread and its queue are not needed for them.
    insert = partial(Writer._insert, _Inserting(opened))  # type: ignore[arg-type]
    with opened:
        insert(events, state)
    return events


class _Inserting:
    """As much of a writer as its inserts need."""

    def __init__(self, opened: apsw.Connection) -> None:
        self._connection = opened
        self._each = partial(Writer._each, self)  # type: ignore[arg-type]
