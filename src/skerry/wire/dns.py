"""DNS (RFC 1035), the part a cluster's DNS takes: one question in, its answer out.

Answers hold no compression but of the question's own name, and as many records as fit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

A, CNAME, PTR, AAAA, SRV, ANY = 1, 5, 12, 28, 33, 255
_INTERNET = 1
_ANSWER, _AUTHORITATIVE, _RECURSION_WANTED, _RECURSION = 0x8000, 0x0400, 0x0100, 0x0080
_NO_ERROR, _FORMAT_ERROR, _NO_NAME, _NOT_IMPLEMENTED = 0, 1, 3, 4
_NAME_OF_QUESTION = 0xC00C
# Short: endpoints come and go, and asking again costs next to nothing.
_LIFE_SECONDS = 5
# What any client takes in one datagram.
_MAX_LENGTH = 512
_TRUNCATED = 0x0200


@dataclass(frozen=True, slots=True)
class Record:
    """One answer: an address, a name, or a target with its port."""

    kind: int
    value: str
    port: int = 0


Lookup = Callable[[str], Sequence[Record] | None]
"""Returns every record of a name, without its last dot; None when nobody has that name."""


def answered(query: bytes, lookup: Lookup, max_bytes: int = _MAX_LENGTH) -> bytes | None:
    """Return the answer to a query; None for what is no query at all."""
    if len(query) < 12:
        return None
    identity, flags, questions = struct.unpack_from("!HHH", query)
    if flags & _ANSWER:
        return None
    kept = _ANSWER | _AUTHORITATIVE | _RECURSION | (flags & _RECURSION_WANTED)
    if flags & 0x7800 or questions != 1:
        return struct.pack("!HHHHHH", identity, kept | _NOT_IMPLEMENTED, 0, 0, 0, 0)
    try:
        name, end = _name(query, 12)
        kind, _ = struct.unpack_from("!HH", query, end)
    except (IndexError, struct.error, UnicodeDecodeError):
        return struct.pack("!HHHHHH", identity, kept | _FORMAT_ERROR, 0, 0, 0, 0)
    question = query[12 : end + 4]
    records = lookup(name.lower())
    if records is None:
        return struct.pack("!HHHHHH", identity, kept | _NO_NAME, 1, 0, 0, 0) + question
    found = [_packed(item) for item in records if kind in (item.kind, ANY) or item.kind == CNAME]
    answer = b"".join(found)
    if 12 + len(question) + len(answer) > max_bytes:
        found = _fitting(found, max_bytes - 12 - len(question))
        answer, kept = b"".join(found), kept | _TRUNCATED
    return struct.pack("!HHHHHH", identity, kept, 1, len(found), 0, 0) + question + answer


def _fitting(records: Sequence[bytes], room: int) -> list[bytes]:
    found: list[bytes] = []
    for record in records:
        room -= len(record)
        if room < 0:
            break
        found.append(record)
    return found


def _name(message: bytes, position: int) -> tuple[str, int]:
    """Return a name and where it ends; a question's is never compressed."""
    labels = []
    while size := message[position]:
        if size > 63:
            raise IndexError("compressed name in a question")
        labels.append(message[position + 1 : position + 1 + size].decode("ascii"))
        position += 1 + size
    return ".".join(labels), position + 1


def _encoded(name: str) -> bytes:
    labels = name.rstrip(".").split(".")
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def _packed(record: Record) -> bytes:
    if record.kind == A:
        content = bytes(map(int, record.value.split(".")))
    elif record.kind == SRV:
        content = struct.pack("!HHH", 0, 100, record.port) + _encoded(record.value)
    else:
        content = _encoded(record.value)
    head = struct.pack(
        "!HHHIH", _NAME_OF_QUESTION, record.kind, _INTERNET, _LIFE_SECONDS, len(content)
    )
    return head + content
