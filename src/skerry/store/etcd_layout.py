"""How the store lies in etcd, and how revisions are numbered there.

Below the prefix of the settings:

``keys<key>``
    The value, after a header of eleven bytes: a format byte, the position of the write in its
    transaction (2 bytes), and a random mark of the transaction (8 bytes) by which a writer whose
    connection broke recognises its own work.
``meta/last``
    Rewritten by every transaction with the number of keys it wrote. Its own revision is therefore
    that of the newest data, and reading it tells the newest position as well.
``meta/identity``
    The identity and the revision offset, as JSON.
``meta/compacted``
    The compacted revision, in our numbering.

**Numbering.** etcd gives one revision to all keys of a transaction; the protocol wants one for
each event. So a revision is ``(etcd revision + offset) * FACTOR + position``. Every operation of
our transactions takes effect (``etcd_commit`` sees to that), so positions count events: of a
value it stands in the header, of a delete it is the place among the events of its revision. The
offset is 0 until a restore raises it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from skerry.store.base import Entry, StoreError
from skerry.store.etcd_messages import KeyValue

# More than any sensible --max-txn-ops, and 2**63 / FACTOR revisions are still unreachable.
FACTOR = 4096
MARK_BYTES = 8
_FORMAT = 1
_HEADER_BYTES = 3 + MARK_BYTES


@dataclass(frozen=True, slots=True)
class Numbering:
    """Converts between etcd's revisions and ours."""

    offset: int = 0

    def revision(self, etcd_revision: int, position: int) -> int:
        return (etcd_revision + self.offset) * FACTOR + position

    def etcd_revision(self, revision: int) -> int:
        """Return etcd's revision; below 1 for one that this store never gave out."""
        return revision // FACTOR - self.offset

    def position(self, revision: int) -> int:
        return revision % FACTOR

    def entry(self, stored: KeyValue, key: str) -> Entry:
        """Return a stored value as the protocol wants it."""
        position, _, value = unpacked(stored.value)
        return Entry(key, value, self.revision(stored.revision, position))

    def newest(self, last: KeyValue) -> int:
        """Return the newest revision, given what ``meta/last`` holds."""
        return self.revision(last.revision, last_position(last))


class Identity(NamedTuple):
    """Content of ``meta/identity``."""

    name: str
    offset: int

    def pack(self) -> bytes:
        return json.dumps({"identity": self.name, "offset": self.offset}).encode()

    @classmethod
    def unpack(cls, content: bytes) -> Identity:
        record = json.loads(content)
        return cls(str(record["identity"]), int(record["offset"]))


class Layout:
    """The keys of etcd that belong to one store."""

    def __init__(self, prefix: str) -> None:
        root = prefix.encode()
        self.root = root
        self.root_end = bytes_end(root)
        self.keys = root + b"keys"
        self.last = root + b"meta/last"
        self.identity = root + b"meta/identity"
        self.compacted = root + b"meta/compacted"

    def key(self, key: str) -> bytes:
        return self.keys + key.encode()

    def name(self, stored: bytes) -> str | None:
        """Return the store's key that etcd's key stands for; None for those of our own."""
        if not stored.startswith(self.keys):
            return None
        return stored[len(self.keys) :].decode()

    def span(self, prefix: str, after: str = "") -> tuple[bytes, bytes]:
        """Return start and end of etcd's range for the keys below *prefix* and above *after*."""
        start = self.key(prefix)
        beyond = self.key(after) + b"\x00" if after else start
        return max(start, beyond), bytes_end(start)


def bytes_end(prefix: bytes) -> bytes:
    """Return the smallest bytes above everything that starts with *prefix*."""
    head = prefix.rstrip(b"\xff")
    if not head:
        return b"\x00"
    return head[:-1] + bytes((head[-1] + 1,))


def packed(value: bytes, position: int, mark: bytes) -> bytes:
    """Return *value* with its header."""
    return bytes((_FORMAT,)) + position.to_bytes(2, "big") + mark + value


def unpacked(stored: bytes) -> tuple[int, bytes, bytes]:
    """Return position, mark and value."""
    if len(stored) < _HEADER_BYTES or stored[0] != _FORMAT:
        raise StoreError("etcd holds a value under our prefix that skerry did not write")
    return int.from_bytes(stored[1:3], "big"), stored[3:_HEADER_BYTES], stored[_HEADER_BYTES:]


def packed_count(count: int) -> bytes:
    """Return the content of ``meta/last`` for a transaction that writes *count* keys."""
    return count.to_bytes(2, "big")


def last_position(last: KeyValue) -> int:
    """Return the position of the last event of the transaction that wrote *last*."""
    return int.from_bytes(last.value, "big") - 1
