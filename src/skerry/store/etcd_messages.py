"""The messages of etcd's v3 API that the store uses: requests as bytes, responses as tuples.

Field numbers are those of etcd's published ``rpc.proto`` and ``kv.proto``; only what is read or
written here is mentioned. Unknown fields are skipped, so newer servers are understood. There are
no generated stubs: etcd's own definitions clash with any other copy of them in the same process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from skerry.wire.protobuf import delimited_field, number_field, read_fields

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


def _number(field: int, number: int) -> bytes:
    """Return a numeric field; nothing for zero, which is what an absent field means."""
    return number_field(field, number) if number else b""


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
            delimited_field(1, key),
            delimited_field(2, end) if end else b"",
            _number(3, limit),
            _number(4, revision),
            _number(9, count_only),
        )
    )


def put_operation(key: bytes, value: bytes) -> bytes:
    """Return a put as an operation of a transaction."""
    return delimited_field(2, delimited_field(1, key) + delimited_field(2, value))


def delete_operation(key: bytes) -> bytes:
    """Return a delete of one key as an operation of a transaction."""
    return delimited_field(3, delimited_field(1, key))


def range_operation(request: bytes) -> bytes:
    """Return a range as an operation of a transaction."""
    return delimited_field(1, request)


def written_at(key: bytes, revision: int) -> bytes:
    """Return the condition that *key* was last written at *revision* (0: does not exist)."""
    # A numeric oneof member counts as absent when left out, so zero is spelled out here.
    number = _number(6, revision) or b"\x30\x00"
    return _number(1, _EQUAL) + _number(2, _TARGET_MOD_REVISION) + delimited_field(3, key) + number


def exists(key: bytes) -> bytes:
    """Return the condition that *key* exists."""
    return (
        _number(1, _GREATER)
        + _number(2, _TARGET_MOD_REVISION)
        + delimited_field(3, key)
        + b"\x30\x00"
    )


def txn_request(
    compare: Sequence[bytes], success: Sequence[bytes], failure: Sequence[bytes] = ()
) -> bytes:
    """Return a transaction; *compare* are conditions, the others operations."""
    return b"".join(
        [delimited_field(1, condition) for condition in compare]
        + [delimited_field(2, operation) for operation in success]
        + [delimited_field(3, operation) for operation in failure]
    )


def compaction_request(revision: int) -> bytes:
    """Return the request to forget what was replaced up to *revision*."""
    return _number(1, revision)


def authenticate_request(user: str, password: str) -> bytes:
    """Return the request for a token."""
    return delimited_field(1, user.encode()) + delimited_field(2, password.encode())


def watch_request(key: bytes, end: bytes, start_revision: int) -> bytes:
    """Return the request to watch a range from a revision on, previous values included."""
    create = (
        delimited_field(1, key)
        + delimited_field(2, end)
        + _number(3, start_revision)
        + _number(6, True)
    )
    return delimited_field(1, create)


def ranged(message: bytes) -> Ranged:
    """Return the answer to a range."""
    entries: list[KeyValue] = []
    more, total, revision = False, 0, 0
    for number, _, content in read_fields(message):
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
    for number, _, content in read_fields(message):
        if number == 1:
            revision = header_revision(cast("bytes", content))
        elif number == 2:
            succeeded = bool(content)
        elif number == 3:
            ranges.extend(
                ranged(cast("bytes", inner))
                for kind, _, inner in read_fields(cast("bytes", content))
                if kind == 1
            )
    return Transacted(revision, succeeded, ranges)


def watched(message: bytes) -> Watched:
    """Return one message of a watch."""
    revision = compacted = 0
    created = canceled = False
    reason = ""
    changes: list[Change] = []
    for number, _, content in read_fields(message):
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
    return next((cast("bytes", c).decode() for n, _, c in read_fields(message) if n == 2), "")


def version_of(message: bytes) -> str:
    """Return the version that a member says it is."""
    return next((cast("bytes", c).decode() for n, _, c in read_fields(message) if n == 2), "")


def header_revision(message: bytes) -> int:
    """Return the revision a response's header speaks of."""
    return next(
        (cast("int", content) for number, _, content in read_fields(message) if number == 3), 0
    )


def key_value(message: bytes) -> KeyValue:
    """Return a key with its value."""
    key = value = b""
    revision = 0
    for number, _, content in read_fields(message):
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
    for number, _, content in read_fields(message):
        if number == 1:
            deleted = content == _EVENT_DELETE
        elif number == 2:
            entry = key_value(cast("bytes", content))
        elif number == 3:
            previous = key_value(cast("bytes", content))
    return Change(deleted, entry, previous)
