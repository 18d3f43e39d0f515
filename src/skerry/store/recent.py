"""Values read lately, so that reading one again does not ask the database.

Only what cannot have changed is remembered: entries are taken in and given out while no batch of
writes is between its beginning and the loop's knowledge of its end. A value therefore never comes
from before something a reader has already seen.
"""

from __future__ import annotations

from collections.abc import Iterable

from skerry.store.base import Entry, Event

# Enough for what is hot; a store with little memory to spare keeps the rest on disk.
_BYTES_AT_MOST = 24 << 20
_LARGEST_BYTES = 64 << 10


class RecentEntries:
    """A bounded memory of entries by key; when it is full it starts over."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._bytes = 0

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def put(self, entry: Entry) -> None:
        """Remember *entry*, read while nothing was being written."""
        size = len(entry.value) + len(entry.key)
        if size > _LARGEST_BYTES or entry.key in self._entries:
            return
        self._bytes += size
        if self._bytes > _BYTES_AT_MOST:
            self.clear()
            self._bytes = size
        self._entries[entry.key] = entry

    def forget(self, events: Iterable[Event]) -> None:
        """Forget what *events* changed."""
        entries = self._entries
        if entries:
            for event in events:
                old = entries.pop(event.key, None)
                if old is not None:
                    self._bytes -= len(old.value) + len(old.key)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._bytes = 0
