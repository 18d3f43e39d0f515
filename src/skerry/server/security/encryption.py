"""Secrets encrypted at rest: AES-GCM around the values of chosen resources.

A store value becomes ``skerry:enc:aesgcm:v1:<key name>:`` followed by nonce and ciphertext. The
store key is authenticated with it, so one Secret's value cannot be put in another's place. The
first key of the file encrypts, all of them decrypt: to rotate, put a new key first, rewrite the
objects, then drop the old one. Values written before encryption was turned on stay readable.

``EncryptedStore`` does this around any store; nothing above it knows.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec.structs import replace

from skerry.api.keys import type_prefix
from skerry.kit.ids import IdSource
from skerry.store.base import Entry, Event, Page, Store, StoreError, Write

_HEADER = b"skerry:enc:aesgcm:v1:"
_NONCE_BYTES = 12
_KEY_BYTES = frozenset((16, 24, 32))
SECRETS = (type_prefix("", "secrets"),)


class DecryptionError(StoreError):
    """A stored value cannot be decrypted: its key is missing, or it was tampered with."""


class Keys:
    """Named encryption keys; the first one encrypts."""

    def __init__(self, text: str, ids: IdSource) -> None:
        """Read ``name: base64 key`` lines; ``#`` begins a comment."""
        self._ids = ids
        self._ciphers: dict[bytes, AESGCM] = {}
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.split("#", 1)[0].strip()
            if stripped:
                self._add(number, stripped)
        if not self._ciphers:
            raise ValueError("encryption key file: want at least one line 'name: base64 key'")
        self._first = next(iter(self._ciphers))

    def _add(self, number: int, line: str) -> None:
        name, _, encoded = line.partition(":")
        try:
            key = base64.b64decode(encoded.strip(), validate=True)
        except binascii.Error as error:
            raise ValueError(f"encryption key file line {number}: want a base64 key") from error
        if not name.strip().isidentifier() and not name.strip().replace("-", "").isalnum():
            raise ValueError(f"encryption key file line {number}: want 'name: base64 key'")
        if len(key) not in _KEY_BYTES:
            raise ValueError(
                f"encryption key file line {number}: want a key of 16, 24 or 32 bytes, "
                f"found {len(key)}"
            )
        if name.strip().encode() in self._ciphers:
            raise ValueError(f"encryption key file line {number}: key {name!r} is there twice")
        self._ciphers[name.strip().encode()] = AESGCM(key)

    def encrypt(self, store_key: str, value: bytes) -> bytes:
        """Return *value* encrypted for that place in the store."""
        nonce = self._ids.bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._first].encrypt(nonce, value, store_key.encode())
        return b"%b%b:%b%b" % (_HEADER, self._first, nonce, sealed)

    def decrypt(self, store_key: str, value: bytes) -> bytes:
        """Return what was encrypted; a value that never was is returned as it is."""
        if not value.startswith(_HEADER):
            return value
        name, separator, rest = value[len(_HEADER) :].partition(b":")
        cipher = self._ciphers.get(name)
        if cipher is None or not separator:
            shown = name[:64].decode("ascii", "replace")
            raise DecryptionError(f"{store_key}: no encryption key is named {shown!r}")
        nonce, sealed = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, sealed, store_key.encode())
        except (InvalidTag, ValueError) as error:
            raise DecryptionError(f"{store_key}: the value does not decrypt") from error

    def is_current(self, value: bytes) -> bool:
        """Tell whether a stored value is encrypted with the first key."""
        return value.startswith(b"%b%b:" % (_HEADER, self._first))


class EncryptedStore:
    """A store whose values below some prefixes are encrypted in the one it stands on."""

    def __init__(self, store: Store, keys: Keys, prefixes: Sequence[str] = SECRETS) -> None:
        self._store = store
        self._keys = keys
        self._prefixes = tuple(prefixes)

    @property
    def identity(self) -> str:
        return self._store.identity

    async def revision(self) -> int:
        return await self._store.revision()

    async def compacted(self) -> int:
        return await self._store.compacted()

    async def get(self, key: str) -> Entry | None:
        entry = await self._store.get(key)
        return entry if entry is None else self._opened(entry)

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        page = await self._store.range(prefix, after=after, limit=limit, revision=revision)
        if not self._touches(prefix):
            return page
        return replace(page, entries=[self._opened(entry) for entry in page.entries])

    async def count(self, prefix: str) -> int:
        return await self._store.count(prefix)

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        return await self._store.commit([self._sealed(write) for write in writes])

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        events = await self._store.history(prefix, after=after, limit=limit)
        return [self._opened_event(event) for event in events]

    async def watch(self, prefix: str = "", *, after: int) -> AsyncIterator[Sequence[Event]]:
        async for events in self._store.watch(prefix, after=after):
            yield [self._opened_event(event) for event in events]

    async def compact(self, revision: int) -> None:
        await self._store.compact(revision)

    async def close(self) -> None:
        await self._store.close()

    def _touches(self, prefix: str) -> bool:
        """Tell whether a range below *prefix* can hold encrypted values."""
        return any(p.startswith(prefix) or prefix.startswith(p) for p in self._prefixes)

    def _sealed(self, write: Write) -> Write:
        if write.value is None or not write.key.startswith(self._prefixes):
            return write
        return replace(write, value=self._keys.encrypt(write.key, write.value))

    def _opened(self, entry: Entry) -> Entry:
        if not entry.key.startswith(self._prefixes):
            return entry
        return replace(entry, value=self._keys.decrypt(entry.key, entry.value))

    def _opened_event(self, event: Event) -> Event:
        if not event.key.startswith(self._prefixes):
            return event
        key = event.key
        return replace(
            event,
            value=None if event.value is None else self._keys.decrypt(key, event.value),
            previous=None if event.previous is None else self._keys.decrypt(key, event.previous),
        )
