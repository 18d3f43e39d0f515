"""Secrets encrypted at rest: AES-GCM around the values of confidential resources.

Those are Secrets and what may repeat them: the contents of placements' revisions.

A store value becomes ``skerry:enc:aesgcm:v1:<key name>:`` followed by nonce and ciphertext. The
store key is authenticated with it, so one Secret's value cannot be put in another's place. One
key encrypts, all that a server has decrypt; which one encrypts is recorded in the store (see
``logic.machinery.key_rotation``). Values that were written without encryption stay readable.

``EncryptedStore`` does this around any store; nothing above it knows.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec.structs import replace

from skerry.api.edge import REVISION_CONTENTS
from skerry.api.keys import type_prefix
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.store.base import (
    Entry,
    Event,
    Page,
    Sizes,
    Store,
    StoreError,
    Write,
    sizes_of,
)

log = Logger("encryption")

_HEADER = b"skerry:enc:aesgcm:v1:"
_NONCE_BYTES = 12
_KEY_BYTES = frozenset((16, 24, 32))
_NEW_KEY_BYTES = 32
_CHECKED = b"skerry encryption key check value"
_CONFIDENTIAL = (("", "secrets"), REVISION_CONTENTS.group_resource)
_LOCAL = tuple(type_prefix(*each) for each in _CONFIDENTIAL)
# Those of a workspace, and those bound from an export, which lie under ``secrets:<identity>``.
CONFIDENTIAL = tuple(p for each in _LOCAL for p in (each, f"{each[:-1]}:"))
# Ranges that hold them all, in order; no other type of the groups has a name that begins so.
CONFIDENTIAL_RANGES = tuple(each[:-1] for each in _LOCAL)
SECRETS_RANGE = CONFIDENTIAL_RANGES[0]


async def confidential_page(store: Store, after: str, limit: int) -> Page:
    """Return the page of confidential values that follows the key *after*, in a store below.

    ``more`` tells whether another page is to be asked for, which may turn out empty.
    """
    ranges = [each for each in CONFIDENTIAL_RANGES if each > after or after.startswith(each)]
    for number, prefix in enumerate(ranges, 1):
        begin = after if after.startswith(prefix) else ""
        page = await store.range(prefix, after=begin, limit=limit)
        if page.entries or number == len(ranges):
            return replace(page, more=page.more or number < len(ranges))
    return Page([], await store.revision(), more=False)


class DecryptionError(StoreError):
    """A stored value cannot be decrypted: its key is missing, or it was tampered with."""


def parse_keys(text: str) -> dict[str, bytes]:
    """Return the keys of a file of ``name: base64 key`` lines; ``#`` begins a comment."""
    found: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.split("#", 1)[0].strip()
        if stripped:
            name, key = _parsed(number, stripped)
            if name in found:
                raise ValueError(f"encryption key file line {number}: key {name!r} is there twice")
            found[name] = key
    if not found:
        raise ValueError("encryption key file: want at least one line 'name: base64 key'")
    return found


def _parsed(number: int, line: str) -> tuple[str, bytes]:
    name, _, encoded = line.partition(":")
    name = name.strip()
    try:
        key = base64.b64decode(encoded.strip(), validate=True)
    except binascii.Error as error:
        raise ValueError(f"encryption key file line {number}: want a base64 key") from error
    if not name.isidentifier() and not name.replace("-", "").isalnum():
        raise ValueError(f"encryption key file line {number}: want 'name: base64 key'")
    if len(key) not in _KEY_BYTES:
        raise ValueError(
            f"encryption key file line {number}: want a key of 16, 24 or 32 bytes, found {len(key)}"
        )
    return name, key


def new_key(ids: IdSource) -> tuple[str, str]:
    """Return the name of a fresh key and its line for the key file."""
    key = ids.bytes(_NEW_KEY_BYTES)
    name = f"key-{check_value(key)[:8]}"
    return name, f"{name}: {base64.b64encode(key).decode()}\n"


def check_value(key: bytes) -> str:
    """Return a value that identifies *key* and reveals nothing of it."""
    return hmac.new(key, _CHECKED, hashlib.sha256).hexdigest()[:32]


class EncryptionKeys:
    """The keys a server has, and the one that encrypts.

    With none in use values are stored as they are.
    """

    def __init__(self, ids: IdSource, keys: Mapping[str, bytes] | None = None) -> None:
        self._ids = ids
        self._ciphers: dict[bytes, AESGCM] = {}
        self._current = b""
        self.checks: dict[str, str] = {}
        if keys:
            self.load(keys)

    def load(self, keys: Mapping[str, bytes]) -> None:
        """Have *keys* too; refuses another key under a name that is taken, and then has none.

        Keys are never forgotten: stored values may need them, whatever became of the file.
        """
        checks = {name: check_value(key) for name, key in keys.items()}
        for name, check in checks.items():
            if self.checks.get(name, check) != check:
                raise ValueError(f"encryption key {name!r} has changed under the same name")
        self._ciphers |= {name.encode(): AESGCM(key) for name, key in keys.items()}
        self.checks |= checks

    def forget(self) -> None:
        """Have no keys again; for one that was made in vain."""
        self._ciphers, self._current, self.checks = {}, b"", {}

    @property
    def current(self) -> str:
        """Name of the key that encrypts; empty when none does."""
        return self._current.decode()

    def use(self, name: str) -> None:
        """Encrypt with the key *name* from now on."""
        if name and name.encode() not in self._ciphers:
            raise LookupError(f"no encryption key is named {name!r}")
        self._current = name.encode()

    def encrypt(self, store_key: str, value: bytes) -> bytes:
        """Return *value* encrypted for that place in the store."""
        name = self._current
        if not name:
            return value
        nonce = self._ids.bytes(_NONCE_BYTES)
        sealed = self._ciphers[name].encrypt(nonce, value, store_key.encode())
        return b"%b%b:%b%b" % (_HEADER, name, nonce, sealed)

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
        """Tell whether a stored value is as it would be written now."""
        return key_name_of(value) == self.current


def key_name_of(value: bytes) -> str:
    """Return the name of the key a stored value is encrypted with; empty when it is not."""
    if not value.startswith(_HEADER):
        return ""
    end = value.find(b":", len(_HEADER))
    return value[len(_HEADER) : end if end >= 0 else None].decode("ascii", "replace")


class EncryptedStore:
    """A store whose values below some prefixes are encrypted in the one it stands on.

    What lies elsewhere is handed through without another coroutine in between: of the requests a
    server answers, few are about Secrets.
    """

    def __init__(
        self, store: Store, keys: EncryptionKeys, prefixes: Sequence[str] = CONFIDENTIAL
    ) -> None:
        self.below = store
        self._keys = keys
        self._prefixes = tuple(prefixes)

    @property
    def identity(self) -> str:
        return self.below.identity

    @property
    def revision_stride(self) -> int:
        return self.below.revision_stride

    async def revision(self) -> int:
        return await self.below.revision()

    async def compacted(self) -> int:
        return await self.below.compacted()

    def get(self, key: str) -> Coroutine[Any, Any, Entry | None]:
        found = self.below.get(key)
        return self._opened_later(found) if key.startswith(self._prefixes) else found

    async def _opened_later(self, found: Coroutine[Any, Any, Entry | None]) -> Entry | None:
        entry = await found
        return entry if entry is None else self._opened(entry)

    async def range(
        self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
    ) -> Page:
        page = await self.below.range(prefix, after=after, limit=limit, revision=revision)
        if not self._touches(prefix):
            return page
        return replace(page, entries=[self._opened(entry) for entry in page.entries])

    async def sizes(
        self, prefix: str, *, after: str = "", limit: int, revision: int | None = None
    ) -> Sizes:
        found = await self.below.sizes(prefix, after=after, limit=limit, revision=revision)
        if not any(key.startswith(self._prefixes) for key, _ in found.entries):
            return found
        # How long a value is without its encryption, only its beginning tells.
        return sizes_of(await self.range(prefix, after=after, limit=limit, revision=revision))

    async def count(self, prefix: str) -> int:
        return await self.below.count(prefix)

    def commit(self, writes: Sequence[Write]) -> Coroutine[Any, Any, list[int]]:
        for write in writes:
            if write.key.startswith(self._prefixes):
                return self.below.commit([self._sealed(each) for each in writes])
        return self.below.commit(writes)

    async def check_writable(self) -> None:
        await self.below.check_writable()

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        return self._opened_events(await self.below.history(prefix, after=after, limit=limit))

    async def written(self, *, after: int, upto: int) -> Sequence[tuple[str, int]] | None:
        return await self.below.written(after=after, upto=upto)

    async def watch(self, prefix: str = "", *, after: int) -> AsyncIterator[Sequence[Event]]:
        async for events in self.below.watch(prefix, after=after):
            opened = self._opened_events(events)
            if opened:
                yield opened

    async def compact(self, revision: int) -> None:
        await self.below.compact(revision)

    async def close(self) -> None:
        await self.below.close()

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

    def _opened_events(self, events: Sequence[Event]) -> list[Event]:
        """Return *events* decrypted; one that cannot be decrypted is logged and dropped.

        Such an event comes from a write that bypassed the servers. Failing the watch would let
        that writer stop the server; a delete event would be wrong and clients would act on it.
        Reads of the object fail with an error that names it.
        """
        found: list[Event] = []
        for event in events:
            if not event.key.startswith(self._prefixes):
                found.append(event)
                continue
            try:
                found.append(self._opened_event(event))
            except DecryptionError as error:
                log.error("dropped an event: its value cannot be decrypted", error=error)
        return found

    def _opened_event(self, event: Event) -> Event:
        key = event.key
        return replace(
            event,
            value=None if event.value is None else self._keys.decrypt(key, event.value),
            previous=None if event.previous is None else self._keys.decrypt(key, event.previous),
        )
