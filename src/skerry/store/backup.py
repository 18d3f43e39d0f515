"""Backup while writes go on, and restore into an empty store.

**The file.** A line that names format and version; a line of JSON about the source; then frames:
four bytes of length (big-endian) and that many bytes of records, each a key and a value with
their lengths before them; a frame of length zero; the number of records (8 bytes); and the
SHA-256 of everything before it. One format for all backends, so a hub can move from SQLite to
etcd by its backup. The file appears under its name only when it is complete and synced.

With a passphrase the whole of that is the content of a sealed file (``sealed_file``), whose first
line says format 2. What the caller adds to the line of JSON, such as keys, is then sealed too.

**The moment.** All pages are read at one revision, so the backup shows the store as it was at an
instant. Should history be compacted past it before the end, the backup fails and says so.

**Restoring.** Clients still hold revisions of the old history, some of them from after the
backup. None of these may mean anything in the new one: the revision first jumps beyond all that
can have been given out, then the objects are written, then everything up to the newest revision
is declared compacted. The identity is new too, and until the last object is written it says that
the restore is unfinished (``restoring.UNFINISHED``), so that nobody serves a part of it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from skerry.kit.clock import Clock
from skerry.kit.ids import IdSource
from skerry.kit.timestamps import rfc3339
from skerry.store.base import Compacted, Entry, Store, StoreError, Write
from skerry.store.restoring import UNFINISHED, RestorableStore
from skerry.store.sealed_file import (
    Damaged,
    Opener,
    ScryptCost,
    SealedWriter,
    WrongPassphrase,
    open_sealed,
)

_MAGIC = b"skerry-backup 1\n"
_SEALED_MAGIC = b"skerry-backup 2\n"
_FAMILY = b"skerry-backup "
_PAGE = 1000
# Keys written at once; less than any etcd takes in one transaction.
_WRITES = 100
# A frame larger than this is damage, not data: pages are of at most _PAGE objects.
_MAX_FRAME = 1 << 31
_DIGEST_BYTES = hashlib.sha256().digest_size
# How far a restored store jumps: more than is ever written after a backup is taken, also in
# etcd's wide numbering (two thousand million transactions), and round, to be recognised.
JUMP = 10**13


class BadBackup(StoreError):
    """The file is not a backup, or not a whole one."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What a backup holds."""

    identity: str
    revision: int
    objects: int
    created: str


@dataclass(frozen=True, slots=True)
class Sealing:
    """How a backup is sealed."""

    passphrase: bytes = field(repr=False)
    ids: IdSource
    cost: ScryptCost = field(default_factory=ScryptCost)


async def backup(
    store: Store,
    path: Path,
    clock: Clock,
    *,
    header: Mapping[str, Any] | None = None,
    sealing: Sealing | None = None,
    confirm: Callable[[], Awaitable[None]] | None = None,
) -> BackupSummary:
    """Write the whole of *store*, as it is now, to *path*; *header* goes with it.

    *confirm* is called when everything is written and may raise: then there is no backup.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        with _created_private(partial) as file:
            summary = await _write(store, file, clock, header or {}, sealing)
            if confirm is not None:
                await confirm()
            await asyncio.to_thread(_publish, partial, path)
    except Compacted as error:
        raise StoreError(
            "history was compacted before the backup was complete; try again"
        ) from error
    except OSError as error:
        raise StoreError(f"backup {str(path)!r} cannot be written: {error}") from error
    return summary


class BackupFile:
    """A backup to be read. ``verify`` comes first: it reads the whole and checks it."""

    def __init__(self, path: Path, passphrase: bytes | None = None) -> None:
        """Open *path*; a sealed one takes the *passphrase* it was written with."""
        self._path = path
        self._opener: Opener | None = None
        with self._explained(), path.open("rb") as file:
            magic = file.readline(len(_SEALED_MAGIC))
            if not magic.startswith(_FAMILY):
                raise BadBackup(f"{str(path)!r} is not a skerry backup")
            if magic == _SEALED_MAGIC:
                file.seek(0)
                self._opener = self._unsealed(file, passphrase)

    def _unsealed(self, file: BinaryIO, passphrase: bytes | None) -> Opener:
        if passphrase is None:
            raise BadBackup(
                f"backup {str(self._path)!r} is encrypted: its passphrase is needed "
                "(--passphrase-file)"
            )
        try:
            return open_sealed(file, _SEALED_MAGIC, passphrase)
        except WrongPassphrase as error:
            raise BadBackup(
                f"backup {str(self._path)!r}: the passphrase is not the one it was written with"
            ) from error

    def verify(
        self, visit: Callable[[str, bytes], None] | None = None
    ) -> tuple[BackupSummary, Mapping[str, Any]]:
        """Read and check the whole file, showing *visit* each object; return what it says.

        ``BadBackup`` says in a sentence what is wrong.
        """
        with self._explained(), self._path.open("rb") as raw:
            if self._opener is None:
                _check_digest(raw, self._path)
            file = self._content(raw)
            header = _preamble(file, self._path)
            objects = 0
            for batch in _batches(file):
                objects += len(batch)
                if visit is not None:
                    for key, value in batch:
                        visit(key, value)
            if objects != int.from_bytes(file.read(8), "big"):
                raise BadBackup(
                    f"backup {str(self._path)!r} is damaged: the number of objects differs"
                )
            file.read()
        summary = BackupSummary(
            str(header["identity"]), int(header["revision"]), objects, str(header["created"])
        )
        return summary, header

    @contextmanager
    def batches(self) -> Iterator[Iterator[list[tuple[str, bytes]]]]:
        """Give the objects in portions fit for one commit."""
        with self._path.open("rb") as raw:
            file = self._content(raw)
            _preamble(file, self._path)
            yield _batches(file)

    def _content(self, file: BinaryIO) -> BinaryIO:
        file.seek(0)
        return file if self._opener is None else self._opener.reading(file)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn whatever is wrong with the file into a sentence."""
        named = f"backup {str(self._path)!r}"
        try:
            yield
        except OSError as error:
            raise BadBackup(f"{named} cannot be read: {error}") from error
        except Damaged as error:
            raise BadBackup(f"{named} is damaged or cut off: {error}") from error
        except (ValueError, KeyError) as error:
            raise BadBackup(f"{named} cannot be understood: {error}") from error


async def restore(
    store: RestorableStore,
    file: BackupFile,
    ids: IdSource,
    *,
    keep: Callable[[str, bytes], bool] | None = None,
) -> BackupSummary:
    """Fill the empty *store* from *file*; nothing is written unless the whole file is sound.

    Objects that *keep* refuses are left out.
    """
    await refuse_filled(store)
    summary, _ = await asyncio.to_thread(file.verify)
    identity = ids.uid()
    newest = max(summary.revision, await store.revision())
    await store.adopt(UNFINISHED + identity, (newest // JUMP + 2) * JUMP)
    with file.batches() as batches:
        for entries in batches:
            writes = [Write(k, v, 0) for k, v in entries if keep is None or keep(k, v)]
            if writes:
                await store.commit(writes)
    await store.adopt(identity, await store.revision())
    return summary


async def refuse_filled(store: Store) -> None:
    """Raise unless *store* is empty."""
    if await store.count("") > 0:
        raise StoreError("the store is not empty; a backup is restored into an empty store only")


async def _write(
    store: Store, raw: BinaryIO, clock: Clock, extra: Mapping[str, Any], sealing: Sealing | None
) -> BackupSummary:
    page = await store.range("", limit=_PAGE)
    created = rfc3339(clock.now())
    header = {"identity": store.identity, "revision": page.revision, "created": created, **extra}
    objects = 0
    sealed = None if sealing is None else await asyncio.to_thread(_sealed, raw, sealing)
    file = _Digesting(sealed or raw)
    file.write(_MAGIC + json.dumps(header).encode() + b"\n")
    while page.entries:
        objects += len(page.entries)
        await asyncio.to_thread(file.write, _frame(page.entries))
        if not page.more:
            break
        page = await store.range(
            "", after=page.entries[-1].key, limit=_PAGE, revision=page.revision
        )
    file.write(bytes(4) + objects.to_bytes(8, "big"))
    (sealed or raw).write(file.digest())
    if sealed is not None:
        sealed.finish()
    raw.flush()
    await asyncio.to_thread(os.fsync, raw.fileno())
    return BackupSummary(store.identity, page.revision, objects, created)


@contextmanager
def _created_private(path: Path) -> Iterator[BinaryIO]:
    """Create a file that nobody else can open, not even before anything is in it.

    It is locked while it is written: what a backup that was killed left behind has no lock, and
    is removed; what another one is writing has, and stays. On failure the file is removed again.
    """
    _remove_abandoned(path)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(file.fileno()).st_nlink:
            # Taken for abandoned before it had its lock.
            raise _being_written(path)
        try:
            yield file
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _remove_abandoned(path: Path) -> None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _being_written(path) from error
        path.unlink(missing_ok=True)


def _being_written(path: Path) -> StoreError:
    return StoreError(f"{str(path)!r} is being written by another backup; wait for it to end")


def _sealed(file: BinaryIO, sealing: Sealing) -> SealedWriter:
    return SealedWriter(file, _SEALED_MAGIC, sealing.passphrase, sealing.ids, sealing.cost)


class _Writable(Protocol):
    """What a backup is written to."""

    def write(self, content: bytes, /) -> int: ...


class _Digesting:
    """Writes, and sums up what was written."""

    def __init__(self, file: _Writable) -> None:
        self._file = file
        self._sum = hashlib.sha256()

    def write(self, content: bytes) -> None:
        self._sum.update(content)
        self._file.write(content)

    def digest(self) -> bytes:
        return self._sum.digest()


def _frame(entries: Iterable[Entry]) -> bytes:
    records = bytearray()
    for entry in entries:
        for part in (entry.key.encode(), entry.value):
            records += len(part).to_bytes(4, "big") + part
    return len(records).to_bytes(4, "big") + records


def _publish(partial: Path, path: Path) -> None:
    """Give the finished file its name, so that a crash leaves the old one or the new one."""
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_digest(file: BinaryIO, path: Path) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    digest, left = hashlib.sha256(), size - _DIGEST_BYTES
    while left > 0:
        content = file.read(min(left, 1 << 20))
        digest.update(content)
        left -= len(content)
    if file.read() != digest.digest():
        raise BadBackup(f"backup {str(path)!r} is damaged or cut off: its checksum does not match")


def _preamble(file: BinaryIO, path: Path) -> dict[str, Any]:
    magic = file.readline()
    if magic != _MAGIC:
        raise BadBackup(
            f"backup {str(path)!r} has format {magic.decode(errors='replace').strip()!r}; "
            f"this program reads {_MAGIC.decode().strip()!r}"
        )
    header: dict[str, Any] = json.loads(file.readline())
    return header


def _batches(file: BinaryIO) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the records in portions fit for one commit."""
    while length := int.from_bytes(file.read(4), "big"):
        if length > _MAX_FRAME:
            raise BadBackup(f"backup frame of {length} bytes: more than any backup holds")
        records = list(_records(file.read(length)))
        for start in range(0, len(records), _WRITES):
            yield records[start : start + _WRITES]


def _records(frame: bytes) -> Iterator[tuple[str, bytes]]:
    position = 0
    while position < len(frame):
        key, position = _part(frame, position)
        value, position = _part(frame, position)
        yield key.decode(), value


def _part(frame: bytes, position: int) -> tuple[bytes, int]:
    start = position + 4
    end = start + int.from_bytes(frame[position:start], "big")
    return frame[start:end], end
