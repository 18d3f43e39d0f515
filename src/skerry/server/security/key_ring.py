"""The keys of a running server, kept in step with their files and with the store.

Files change when a person adds a key; the store's records change when a rotation takes a step.
The ring reads the first when they change and follows the second, so a rotation needs no restart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.log import Logger
from skerry.logic.machinery.key_rotation import (
    KEYS_PREFIX,
    EncryptionRecord,
    RotationRefused,
    ServerRecord,
    encryption_with,
    encryption_without_old,
    missing_keys,
    pending_keys,
    record_key,
)
from skerry.server.change import Change
from skerry.server.security.encryption import EncryptionKeys
from skerry.server.security.encryption_start import KeyMismatch, KeySource, read_keys
from skerry.server.security.live_servers import LiveServers
from skerry.server.security.rewriting import Rewritten, is_rewritten, rewrite_page
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Conflict, Store, Write

log = Logger("keys")

# A person who copied a file waits no longer than this; a look costs a few system calls.
WATCH_FILES_SECONDS = 2.0
_ATTEMPTS = 10

R = TypeVar("R", bound=msgspec.Struct)


class RotatingKeys(Protocol):
    """One kind of key that can be rotated."""

    kind: str

    @property
    def files(self) -> Sequence[Path]:
        """The files the keys are read from."""

    @property
    def known(self) -> dict[str, str]:
        """Names of the keys this server has, with their check values."""

    @property
    def current(self) -> str:
        """Name of the key in use."""

    def reload(self) -> None:
        """Read the files again; ``KeyMismatch`` when they cannot be used."""

    def follow(self, value: bytes | None) -> None:
        """Do as the store's record now says."""

    async def use(self, name: str, servers: Sequence[ServerRecord]) -> None:
        """Use the key *name* from now on, everywhere."""

    async def drop_old(self, servers: Sequence[ServerRecord]) -> None:
        """Need and accept no key but the current one."""

    def status(self, servers: Sequence[ServerRecord]) -> dict[str, Any]:
        """Return what a person may know of the keys."""


async def update_record(
    store: Store, kind: str, form: type[R], decide: Callable[[R | None], R]
) -> R:
    """Replace the record of a kind of key by what *decide* makes of it; returns that."""
    path = record_key(kind)
    for _ in range(_ATTEMPTS):
        entry = await store.get(path)
        old = None if entry is None else msgspec.json.decode(entry.value, type=form)
        new = decide(old)
        if new == old:
            return new
        expected = 0 if entry is None else entry.revision
        try:
            await store.commit([Write(path, msgspec.json.encode(new), expected)])
        except Conflict:
            continue
        return new
    raise RotationRefused(f"the record of {kind} keys is being changed by others; try again")


class EncryptionRotation:
    """The keys that encrypt Secrets."""

    kind = "encryption"

    def __init__(self, store: Store, keys: EncryptionKeys, source: KeySource) -> None:
        """*store* is the one below encryption, with values as they are kept."""
        self._store = store
        self._keys = keys
        self._source = source
        self._record: EncryptionRecord | None = None

    @property
    def files(self) -> Sequence[Path]:
        return (self._source.file,)

    @property
    def known(self) -> dict[str, str]:
        return self._keys.checks

    @property
    def current(self) -> str:
        return self._keys.current

    @property
    def record(self) -> EncryptionRecord | None:
        return self._record

    def reload(self) -> None:
        try:
            self._keys.load(read_keys(self._source.file))
        except ValueError as error:
            raise KeyMismatch(f"{self._source.file}: {error}") from error
        self._apply()

    def follow(self, value: bytes | None) -> None:
        self._record = None if value is None else msgspec.json.decode(value, type=EncryptionRecord)
        self._apply()

    def _apply(self) -> None:
        record = self._record
        if record is None:
            return
        missing = missing_keys(record, self._keys.checks)
        if missing:
            log.error("an encryption key is missing: Secrets cannot be read", keys=missing)
        if record.current not in missing:
            self._keys.use(record.current)

    async def use(self, name: str, servers: Sequence[ServerRecord]) -> None:
        check = self._keys.checks.get(name)
        if check is None:
            raise RotationRefused(f"this server has no encryption key {name!r}")
        self._record = await update_record(
            self._store,
            self.kind,
            EncryptionRecord,
            lambda old: encryption_with(old, name, check, servers),
        )
        self._apply()

    async def rewrite(self, after: str) -> Rewritten:
        """Rewrite a page of Secrets; after the last one the record says that all are done."""
        if self._record is None:
            raise RotationRefused("no encryption key is in use; use one first")
        done = await rewrite_page(self._store, self._keys, after)
        if not done.after and await is_rewritten(self._store, self._keys):
            current = self._keys.current

            def decide(old: EncryptionRecord | None) -> EncryptionRecord:
                if old is None or old.current != current:
                    raise RotationRefused("another rotation has begun meanwhile")
                return msgspec.structs.replace(old, rewritten=True)

            self._record = await update_record(self._store, self.kind, EncryptionRecord, decide)
        return done

    async def drop_old(self, servers: Sequence[ServerRecord]) -> None:
        def decide(old: EncryptionRecord | None) -> EncryptionRecord:
            if old is None:
                raise RotationRefused("no encryption key is in use")
            return encryption_without_old(old, servers)

        if self._record is not None and self._record.rewritten:
            if not await is_rewritten(self._store, self._keys):
                raise RotationRefused("a Secret was written with an old key; rotate again")
            # Past values are encrypted with the old keys, and nobody could read them any more.
            await self._store.compact(await self._store.revision())
        self._record = await update_record(self._store, self.kind, EncryptionRecord, decide)

    async def finish_rewriting(self) -> None:
        """Encrypt what was written before encryption began; for a server that is alone."""
        if self._record is None or self._record.rewritten:
            return
        after, count = "", 0
        while True:
            done = await self.rewrite(after)
            count, after = count + done.rewritten, done.after
            if not after:
                break
        log.info("Secrets were encrypted with the present key", objects=count)

    def status(self, servers: Sequence[ServerRecord]) -> dict[str, Any]:
        record = self._record or EncryptionRecord("", {})
        return {
            "current": self.current,
            "old": [name for name in record.keys if name != self.current],
            "retired": list(record.retired),
            "pending": pending_keys(self.kind, (*record.keys, *record.retired), servers),
            "rewritten": record.rewritten,
            "file": str(self._source.file.absolute()),
        }


class KeyRing:
    """All keys of a server that can be rotated, and the servers that share them."""

    def __init__(
        self, store: Store, kinds: Sequence[RotatingKeys], clock: Clock, ids: IdSource, name: str
    ) -> None:
        self._store = store
        self._clock = clock
        self.kinds = {keys.kind: keys for keys in kinds}
        self._name = name
        self.servers = LiveServers(store, clock, ids.uid(), self._own)
        self._stamps: dict[Path, tuple[int, int, int] | None] = {}
        self._stamps = self._stamped()

    def add(self, keys: RotatingKeys) -> None:
        """Have another kind of key; before ``follow``."""
        self.kinds[keys.kind] = keys
        self._stamps = self._stamped()

    def _own(self, beat: int) -> ServerRecord:
        kinds = self.kinds.values()
        return ServerRecord(
            self._name,
            {keys.kind: dict(keys.known) for keys in kinds},
            {keys.kind: keys.current for keys in kinds},
            beat,
        )

    async def follow(self, dispatcher: Dispatcher) -> None:
        """Do as the store says, now and from now on; before the dispatcher runs."""
        for kind, keys in self.kinds.items():
            entry = await self._store.get(record_key(kind))
            keys.follow(None if entry is None else entry.value)
        dispatcher.observe(KEYS_PREFIX, self._observed)
        await self.servers.follow(dispatcher)

    def _observed(self, change: Change) -> None:
        for kind, keys in self.kinds.items():
            if change.event.key == record_key(kind):
                keys.follow(change.event.value)
                self.servers.changed()

    async def watch_files(self) -> None:
        """Read the key files whenever they change, until cancelled."""
        while True:
            await self._clock.sleep(WATCH_FILES_SECONDS)
            if self._stamped() != self._stamps:
                self.reload()

    def reload(self) -> None:
        """Read every key file again; one that cannot be used changes nothing."""
        self._stamps = self._stamped()
        for kind, keys in self.kinds.items():
            try:
                keys.reload()
            except KeyMismatch as error:
                log.error("a key file was not read again", kind=kind, error=error)
            else:
                log.debug("key files were read", kind=kind)
        self.servers.changed()

    def _stamped(self) -> dict[Path, tuple[int, int, int] | None]:
        """Return a stamp of each file that changes when the file does."""
        return {path: _stamp(path) for keys in self.kinds.values() for path in keys.files}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
