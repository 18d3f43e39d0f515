"""Values read or written lately, so that reading one again does not ask the database.

Only what cannot have changed is given out. While a key is part of a write that was begun and whose
end the loop has not heard of, the database may know better, and is asked; every other key has in
the database exactly the value remembered here. A value therefore never comes from before something
a reader has already seen.

What was read is worth remembering when it is read a second time. Remembering it the first time
would, in a store with more objects than fit here, fill memory with what nobody asks for again, and
let go of what is hot: keeping nothing would be cheaper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skerry.store.base import Entry, Event, Write

# Enough for what is hot; a store with little memory to spare keeps the rest on disk.
_MAX_BYTES = 24 << 20
_MAX_ENTRY_BYTES = 64 << 10
# How many keys that were asked for once are remembered without their value.
_MAX_ASKED = 16_384


class RecentEntries:
    """A bounded memory of entries by key; when it is full it starts over."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._bytes = 0
        self._asked: set[str] = set()
        # How many unfinished writes each key is part of.
        self._unsettled: dict[str, int] = {}

    @property
    def settled(self) -> bool:
        """Whether no write is under way."""
        return not self._unsettled

    def get(self, key: str) -> Entry | None:
        return None if key in self._unsettled else self._entries.get(key)

    def was_read(self, entry: Entry) -> None:
        """Take note that *entry* had to be read, and remember it if that was not the first time."""
        asked = self._asked
        if entry.key in asked:
            self.put(entry)
            return
        if len(asked) >= _MAX_ASKED:
            asked.clear()
        asked.add(entry.key)

    def put(self, entry: Entry) -> None:
        """Remember *entry*, unless it is just being changed."""
        size = len(entry.value) + len(entry.key)
        if size > _MAX_ENTRY_BYTES or entry.key in self._unsettled or entry.key in self._entries:
            return
        self._bytes += size
        if self._bytes > _MAX_BYTES:
            self.clear()
            self._bytes = size
        self._entries[entry.key] = entry

    def begin(self, writes: Sequence[Write]) -> None:
        """Trust nothing about the keys of *writes* until they are settled."""
        for write in writes:
            self._unsettled[write.key] = self._unsettled.get(write.key, 0) + 1

    def settle(self, writes: Iterable[Write], events: Iterable[Event]) -> None:
        """Take note that *writes* ended, for better or worse, and that *events* came of them."""
        for write in writes:
            left = self._unsettled[write.key] - 1
            if left:
                self._unsettled[write.key] = left
            else:
                del self._unsettled[write.key]
            self._forget(write.key)
        for event in events:
            self._forget(event.key)
            if event.value is not None:
                self.put(Entry(event.key, event.value, event.revision))

    def _forget(self, key: str) -> None:
        old = self._entries.pop(key, None)
        if old is not None:
            self._bytes -= len(old.value) + len(old.key)

    def clear(self) -> None:
        """Forget every value."""
        self._entries.clear()
        self._bytes = 0
