"""Rewriting stored Secrets with the key that encrypts now, a page at a time, while others write.

Nothing about an object changes but its revision, which watchers see as a modification. Whoever
writes an object meanwhile wins: what they wrote is encrypted with the new key already. A pass that
was interrupted is begun anew; what was rewritten is recognised by the name of its key and costs a
read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from skerry.server.security.encryption import CONFIDENTIAL, EncryptionKeys, confidential_page
from skerry.store.base import Conflict, Entry, Store, Write

# With Secrets of ordinary size some milliseconds; with Secrets of the maximum size 50 MB of memory.
_PAGE = 50
# More than this in one transaction would hold others up.
_COMMIT_BYTES = 1 << 20
# A Secret that is written again and again is rewritten by whoever writes it.
_ATTEMPTS = 5


class Rewritten(msgspec.Struct, frozen=True):
    """What one page of a pass did. ``after`` is where the next begins, empty after the last."""

    examined: int
    rewritten: int
    after: str


async def rewrite_page(store: Store, keys: EncryptionKeys, after: str) -> Rewritten:
    """Rewrite the page of Secrets that follows the key *after* in the store below encryption."""
    page = await confidential_page(store, after, _PAGE)
    stale = [
        entry
        for entry in page.entries
        if entry.key.startswith(CONFIDENTIAL) and not keys.is_current(entry.value)
    ]
    count, portion, size = 0, list[Entry](), 0
    for entry in stale:
        portion.append(entry)
        size += len(entry.value)
        if size >= _COMMIT_BYTES:
            count += await _rewrite(store, keys, portion)
            portion, size = [], 0
    if portion:
        count += await _rewrite(store, keys, portion)
    return Rewritten(len(page.entries), count, page.entries[-1].key if page.more else "")


async def is_rewritten(store: Store, keys: EncryptionKeys) -> bool:
    """Tell whether every stored Secret is encrypted with the key that encrypts now."""
    after, more = "", True
    while more:
        page = await confidential_page(store, after, _PAGE)
        if not all(
            keys.is_current(e.value) for e in page.entries if e.key.startswith(CONFIDENTIAL)
        ):
            return False
        after, more = page.entries[-1].key if page.entries else "", page.more
    return True


async def _rewrite(store: Store, keys: EncryptionKeys, entries: Sequence[Entry]) -> int:
    try:
        await store.commit([_sealed(keys, entry) for entry in entries])
        return len(entries)
    except Conflict:
        # Somebody changed one of them; the others must not wait for another chance.
        return sum([await _rewrite_one(store, keys, entry) for entry in entries])


async def _rewrite_one(store: Store, keys: EncryptionKeys, entry: Entry | None) -> int:
    for _ in range(_ATTEMPTS):
        if entry is None or keys.is_current(entry.value):
            return 0
        try:
            await store.commit([_sealed(keys, entry)])
            return 1
        except Conflict:
            entry = await store.get(entry.key)
    return 0


def _sealed(keys: EncryptionKeys, entry: Entry) -> Write:
    plain = keys.decrypt(entry.key, entry.value)
    return Write(entry.key, keys.encrypt(entry.key, plain), entry.revision)
