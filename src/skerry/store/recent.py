"""Values read or written lately, so that reading one again does not ask the database.

Only what cannot have changed is given out. While a key is part of a write that was begun and whose
end the loop has not heard of, the database may know better, and is asked; every other key has in
the database exactly the value remembered here. A value therefore never comes from before something
a reader has already seen.

What was read is worth remembering when it is read a second time. Remembering it the first time
would, in a store with more objects than fit here, fill memory with what nobody asks for again, and
let go of what is hot: keeping nothing would be cheaper.

What was written is remembered at once, and much of that is never read. So there are two
generations: what comes goes into the young one, which, when it is full, becomes the old one in
place of the old one before it; what is read from the old one is young again. A value that is read
now and then therefore stays, however much is written, and making room is one assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skerry.store.base import Entry, Event, Write

# Of one generation, of two. Enough for what is hot; a store with little memory to spare keeps the
# rest on disk.
_GENERATION_BYTES = 12 << 20
_MAX_ENTRY_BYTES = 64 << 10
# The objects around a key and a value, and their place in the table.
_OVERHEAD_BYTES = 200
# How many keys that were asked for once are remembered without their value.
_MAX_ASKED = 16_384


class RecentEntries:
    """A bounded memory of entries by key; what was not read for long makes room.

    A key is in one generation at the most, so that forgetting it is forgetting it in both.
    """

    def __init__(self, generation_bytes: int = _GENERATION_BYTES) -> None:
        self._generation_bytes = generation_bytes
        self._young: dict[str, Entry] = {}
        self._old: dict[str, Entry] = {}
        # Of the young ones; the old ones can only become fewer.
        self._bytes = 0
        self._asked: set[str] = set()
        # How many unfinished writes each key is part of.
        self._unsettled: dict[str, int] = {}

    @property
    def settled(self) -> bool:
        """Whether no write is under way."""
        return not self._unsettled

    def get(self, key: str) -> Entry | None:
        if key in self._unsettled:
            return None
        entry = self._young.get(key)
        if entry is None and self._old:
            entry = self._old.pop(key, None)
            if entry is not None:
                self._add(entry)
        return entry

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
        key = entry.key
        if _size(entry) > _MAX_ENTRY_BYTES or key in self._unsettled:
            return
        if key not in self._young and key not in self._old:
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        size = _size(entry)
        self._bytes += size
        if self._bytes > self._generation_bytes:
            self._old, self._young, self._bytes = self._young, {}, size
        self._young[entry.key] = entry

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
        entry = self._young.pop(key, None)
        if entry is not None:
            self._bytes -= _size(entry)
        elif self._old:
            self._old.pop(key, None)

    def clear(self) -> None:
        """Forget every value."""
        self._young.clear()
        self._old.clear()
        self._bytes = 0


def _size(entry: Entry) -> int:
    return len(entry.value) + len(entry.key) + _OVERHEAD_BYTES
