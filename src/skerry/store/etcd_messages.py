"""The messages of etcd's v3 API that the store uses: requests as bytes, responses as tuples.

Field numbers are those of etcd's published ``rpc.proto`` and ``kv.proto``; only what is read or
written here is mentioned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from skerry.store.etcd_wire import blob, boolean, fields, integer

_EQUAL, _GREATER = 0, 1
_TARGET_MOD_REVISION = 2
_EVENT_DELETE = 1


class KeyValue(NamedTuple):
    """A key of etcd as it was written at ``revision``."""

    key: bytes
    value: bytes
    revision: int


class Ranged(NamedTuple):
    """The answer to a range: ``total`` counts all keys in it, also beyond the limit."""

    entries: list[KeyValue]
    more: bool
    total: int
    revision: int


class Transacted(NamedTuple):
    """The answer to a transaction; ``ranges`` are those of the branch that ran, in order."""

    revision: int
    succeeded: bool
    ranges: list[Ranged]


class Change(NamedTuple):
    """One event of a watch."""

    deleted: bool
    entry: KeyValue
    previous: KeyValue | None


class Watched(NamedTuple):
    """One message of a watch. ``compacted`` is set when the start lies before what is kept."""

    revision: int
    created: bool
    canceled: bool
    compacted: int
    reason: str
    changes: list[Change]


def range_request(
    key: bytes,
    end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    count_only: bool = False,
) -> bytes:
    """Return a request for one key, or for those from *key* up to *end*."""
    return b"".join(
        (
            blob(1, key),
            blob(2, end) if end else b"",
            integer(3, limit),
            integer(4, revision),
            boolean(9, count_only),
        )
    )


def put_operation(key: bytes, value: bytes) -> bytes:
    """Return a put as an operation of a transaction."""
    return blob(2, blob(1, key) + blob(2, value))


def delete_operation(key: bytes) -> bytes:
    """Return a delete of one key as an operation of a transaction."""
    return blob(3, blob(1, key))


def range_operation(request: bytes) -> bytes:
    """Return a range as an operation of a transaction."""
    return blob(1, request)


def written_at(key: bytes, revision: int) -> bytes:
    """Return the condition that *key* was last written at *revision* (0: does not exist)."""
    # A numeric oneof member counts as absent when left out, so zero is spelled out here.
    number = integer(6, revision) or b"\x30\x00"
    return integer(1, _EQUAL) + integer(2, _TARGET_MOD_REVISION) + blob(3, key) + number


def exists(key: bytes) -> bytes:
    """Return the condition that *key* exists."""
    return integer(1, _GREATER) + integer(2, _TARGET_MOD_REVISION) + blob(3, key) + b"\x30\x00"


def txn_request(
    compare: Sequence[bytes], success: Sequence[bytes], failure: Sequence[bytes] = ()
) -> bytes:
    """Return a transaction; *compare* are conditions, the others operations."""
    return b"".join(
        [blob(1, condition) for condition in compare]
        + [blob(2, operation) for operation in success]
        + [blob(3, operation) for operation in failure]
    )


def compaction_request(revision: int) -> bytes:
    """Return the request to forget what was replaced up to *revision*."""
    return integer(1, revision)


def authenticate_request(user: str, password: str) -> bytes:
    """Return the request for a token."""
    return blob(1, user.encode()) + blob(2, password.encode())


def watch_request(key: bytes, end: bytes, start_revision: int) -> bytes:
    """Return the request to watch a range from a revision on, previous values included."""
    create = blob(1, key) + blob(2, end) + integer(3, start_revision) + boolean(6, True)
    return blob(1, create)


def ranged(message: bytes) -> Ranged:
    """Return the answer to a range."""
    entries: list[KeyValue] = []
    more, total, revision = False, 0, 0
    for number, content in fields(message):
        if number == 2:
            entries.append(key_value(cast("bytes", content)))
        elif number == 1:
            revision = header_revision(cast("bytes", content))
        elif number == 3:
            more = bool(content)
        elif number == 4:
            total = cast("int", content)
    return Ranged(entries, more, total, revision)


def transacted(message: bytes) -> Transacted:
    """Return the answer to a transaction."""
    revision, succeeded = 0, False
    ranges: list[Ranged] = []
    for number, content in fields(message):
        if number == 1:
            revision = header_revision(cast("bytes", content))
        elif number == 2:
            succeeded = bool(content)
        elif number == 3:
            ranges.extend(
                ranged(cast("bytes", inner))
                for kind, inner in fields(cast("bytes", content))
                if kind == 1
            )
    return Transacted(revision, succeeded, ranges)


def watched(message: bytes) -> Watched:
    """Return one message of a watch."""
    revision = compacted = 0
    created = canceled = False
    reason = ""
    changes: list[Change] = []
    for number, content in fields(message):
        if number == 11:
            changes.append(_change(cast("bytes", content)))
        elif number == 1:
            revision = header_revision(cast("bytes", content))
        elif number == 3:
            created = bool(content)
        elif number == 4:
            canceled = bool(content)
        elif number == 5:
            compacted = cast("int", content)
        elif number == 6:
            reason = cast("bytes", content).decode(errors="replace")
    return Watched(revision, created, canceled, compacted, reason, changes)


def authenticated(message: bytes) -> str:
    """Return the token of an authentication."""
    return next((cast("bytes", c).decode() for n, c in fields(message) if n == 2), "")


def header_revision(message: bytes) -> int:
    """Return the revision a response's header speaks of."""
    return next((cast("int", content) for number, content in fields(message) if number == 3), 0)


def key_value(message: bytes) -> KeyValue:
    """Return a key with its value."""
    key = value = b""
    revision = 0
    for number, content in fields(message):
        if number == 1:
            key = cast("bytes", content)
        elif number == 3:
            revision = cast("int", content)
        elif number == 5:
            value = cast("bytes", content)
    return KeyValue(key, value, revision)


def _change(message: bytes) -> Change:
    deleted = False
    entry = KeyValue(b"", b"", 0)
    previous = None
    for number, content in fields(message):
        if number == 1:
            deleted = content == _EVENT_DELETE
        elif number == 2:
            entry = key_value(cast("bytes", content))
        elif number == 3:
            previous = key_value(cast("bytes", content))
    return Change(deleted, entry, previous)
