"""The store protocol: a flat, revisioned key space, like etcd's.

One revision counts for the whole store. Every change of a key is one event with a revision of
its own, also when several keys are written in one atomic commit: the events of a commit are
consecutive and ordered as the writes were. A revision is never reused. Nothing is visible to
``get``, ``range``, ``history`` or ``watch`` before it is durable.

Rules that every implementation keeps (``tests/contract`` checks them all):

* ``commit`` is atomic: all writes happen, or none, and ``Conflict`` names the first misfit. All
  expectations are about the state before it, so a key twice in one commit is a ``ValueError``.
* ``range`` at a revision shows the keys exactly as they were then, in key order; below the
  compacted revision it raises ``Compacted``, above the newest it raises ``Future``.
* ``watch(after=r)`` yields every event with a revision above *r*, in order, without gaps or
  duplicates, then goes on with new ones; ``Compacted`` when *r* is below what is kept,
  ``Future`` when it is above the newest. ``history`` refuses the same. Refusals come with the
  first item asked for.
* A caller that is cancelled while its commit is under way does not undo it.
* ``identity`` names this store's history. A restored store has a new one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec


class StoreError(Exception):
    """Anything a store refuses."""


class Conflict(StoreError):
    """A write's expectation did not hold; nothing of its commit was written."""

    def __init__(self, index: int, key: str, expected: int, actual: int) -> None:
        super().__init__(f"key {key!r}: expected revision {expected}, found {actual}")
        self.index = index
        self.key = key
        self.expected = expected
        self.actual = actual


class Compacted(StoreError):
    """The revision asked for lies before what is kept."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"revision {requested} is compacted; the oldest kept is {oldest}")
        self.requested = requested
        self.oldest = oldest


class Future(StoreError):
    """The revision asked for has not happened."""

    def __init__(self, requested: int, newest: int) -> None:
        super().__init__(f"revision {requested} is in the future; the newest is {newest}")
        self.requested = requested
        self.newest = newest


class Unavailable(StoreError):
    """The store cannot answer now (closed, disk full, etcd out of reach); the write did not happen
    or its outcome is unknown, as the message says."""


class Overloaded(Unavailable):
    """More waits to be written than may; this was not, and may be tried again soon."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A key's value and the revision of the write that made it."""

    key: str
    value: bytes
    revision: int


class Write(msgspec.Struct, frozen=True, gc=False):
    """One wanted change. ``value`` None deletes.

    ``expected`` is the revision the key must be at: 0 means it must not exist, None means
    whatever it is. Deleting a key that does not exist, unconditionally, changes nothing.
    """

    key: str
    value: bytes | None
    expected: int | None = None


class Event(msgspec.Struct, frozen=True, gc=False):
    """One change that happened. ``value`` None means deleted; ``previous`` is what was there
    (None when the key was new), with ``previous_revision`` (0 when the key was new)."""

    revision: int
    key: str
    value: bytes | None
    previous: bytes | None
    previous_revision: int


class Page(msgspec.Struct, frozen=True):
    """Part of a range. ``revision`` is the snapshot's; ``more`` tells whether keys follow the
    last one; ``remaining`` is how many do, where that is cheap to know, else None."""

    entries: Sequence[Entry]
    revision: int
    more: bool = False
    remaining: int | None = None


class Sizes(msgspec.Struct, frozen=True):
    """Keys of a part of a range in order, each with the length of its value."""

    entries: Sequence[tuple[str, int]]
    more: bool = False


def sizes_of(page: Page) -> Sizes:
    """Return how long the values of a page are."""
    return Sizes([(entry.key, len(entry.value)) for entry in page.entries], page.more)


class Store(Protocol):
    """What the server needs of a store."""

    @property
    def identity(self) -> str:
        """Name of this store's history; changes when it is restored from a backup."""

    @property
    def revision_stride(self) -> int:
        """By how much the revision grows with each commit of one write."""

    async def revision(self) -> int:
        """Return the newest durable revision (at least 1)."""

    async def compacted(self) -> int:
        """Return the newest revision of which history is no longer kept (0: all is kept)."""

    async def get(self, key: str) -> Entry | None:
        """Return the newest durable value of *key*."""

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        """Return the entries below *prefix* with keys above *after*, at *revision* or now."""

    async def sizes(
        self, prefix: str, *, after: str = "", limit: int, revision: int | None = None
    ) -> Sizes:
        """Return how long values below *prefix* are, of *limit* keys at the most.

        Where the store can tell, without reading them.
        """

    async def count(self, prefix: str) -> int:
        """Return how many keys lie below *prefix* now."""

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        """Write all or nothing, durably; return each write's revision (0 where nothing changed)."""

    async def check_writable(self) -> None:
        """Raise ``Unavailable`` while commits fail, as on a full disk, and reads still succeed.

        A store whose last commit failed tries again here, without an effect: somebody who waits
        for this before writing would otherwise wait for ever.
        """

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        """Return the first *limit* events below *prefix* with revisions above *after*."""

    async def written(self, *, after: int, upto: int) -> Sequence[tuple[str, int]] | None:
        """Return the key and the revision of each event above *after* and up to *upto*, in order.

        None: this store cannot tell without reading the values, too.
        """

    def watch(self, prefix: str = "", *, after: int) -> AsyncIterator[Sequence[Event]]:
        """Yield batches of events below *prefix* with revisions above *after*, for ever."""

    async def compact(self, revision: int) -> None:
        """Forget the history up to *revision*; current values stay."""

    async def close(self) -> None:
        """Finish what was accepted and release everything."""
