"""The order of keys, and what a commit may ask for.

Keys are ordered by code point, which is also the order of their UTF-8 bytes, so Python's ``<``,
SQLite's ``BINARY`` collation and etcd agree on every range.
"""

from __future__ import annotations

from collections.abc import Sequence

from skerry.store.base import Write

_LAST_BEFORE_SURROGATES = "\ud7ff"
_FIRST_AFTER_SURROGATES = "\ue000"
_LAST = "\U0010ffff"


def prefix_end(prefix: str) -> str | None:
    """Return the smallest key above every key that starts with *prefix*; None when none is.

    A trailing U+10FFFF has no successor, so the character before it is raised instead; the
    surrogates are skipped because no UTF-8 text holds them.
    """
    head = prefix.rstrip(_LAST)
    if not head:
        return None
    last = head[-1]
    if last == _LAST_BEFORE_SURROGATES:
        return head[:-1] + _FIRST_AFTER_SURROGATES
    return head[:-1] + chr(ord(last) + 1)


def check_writes(writes: Sequence[Write]) -> None:
    """Refuse what no store can write, before it is queued beside the writes of others.

    A key twice in one commit has no meaning: all expectations are about the state before the
    commit, and only one of the two changes could survive it.
    """
    for write in writes:
        key, value = write.key, write.value
        if not key:
            raise ValueError("a key must not be empty")
        if not key.isascii():
            key.encode()
        if value is not None and type(value) is not bytes:
            raise TypeError(f"key {key!r}: a value must be bytes, not {type(value).__name__}")
    if len(writes) > 1 and len({write.key for write in writes}) != len(writes):
        keys = [write.key for write in writes]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} occurs more than once in one commit")
