"""Backup while writes go on, and restore into an empty store.

**The file.** A line that names format and version; a line of JSON about the source; then frames:
four bytes of length (big-endian) and that many bytes of records, each a key and a value with
their lengths before them; a frame of length zero; the number of records (8 bytes); and the
SHA-256 of everything before it. One format for all backends, so a hub can move from SQLite to
etcd by its backup. The file appears under its name only when it is complete and synced.

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
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from skerry.kit.clock import Clock, rfc3339
from skerry.kit.ids import IdSource
from skerry.store.base import Compacted, Entry, Store, StoreError, Write
from skerry.store.restoring import UNFINISHED, RestorableStore

_MAGIC = b"skerry-backup 1\n"
_FAMILY = b"skerry-backup "
_PAGE = 1000
# Keys written at once; less than any etcd takes in one transaction.
_WRITES = 100
# A frame larger than this is damage, not data: pages are of at most _PAGE objects.
_LARGEST_FRAME = 1 << 31
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


async def backup(store: Store, path: Path, clock: Clock) -> BackupSummary:
    """Write the whole of *store*, as it is now, to *path*."""
    partial = path.with_name(path.name + ".partial")
    try:
        summary = await _write(store, partial, clock)
        await asyncio.to_thread(_publish, partial, path)
    except Compacted as error:
        raise StoreError(
            "history was compacted before the backup was complete; try again"
        ) from error
    except OSError as error:
        raise StoreError(f"backup {str(path)!r} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return summary


async def restore(store: RestorableStore, path: Path, ids: IdSource) -> BackupSummary:
    """Fill the empty *store* from *path*; nothing is written unless the whole file is sound."""
    if await store.count("") > 0:
        raise StoreError("the store is not empty; a backup is restored into an empty store only")
    summary = await asyncio.to_thread(verify, path)
    identity = ids.uid()
    newest = max(summary.revision, await store.revision())
    await store.adopt(UNFINISHED + identity, (newest // JUMP + 2) * JUMP)
    with path.open("rb") as file:
        _preamble(file, path)
        for entries in _batches(file):
            await store.commit([Write(key, value, 0) for key, value in entries])
    await store.adopt(identity, await store.revision())
    return summary


def verify(path: Path) -> BackupSummary:
    """Read the whole file and check it; ``BadBackup`` says in a sentence what is wrong."""
    try:
        with path.open("rb") as file:
            _check_digest(file, path)
            file.seek(0)
            header = _preamble(file, path)
            objects = sum(len(batch) for batch in _batches(file))
            if objects != int.from_bytes(file.read(8), "big"):
                raise BadBackup(f"backup {str(path)!r} is damaged: the number of objects differs")
    except OSError as error:
        raise BadBackup(f"backup {str(path)!r} cannot be read: {error}") from error
    return BackupSummary(
        str(header["identity"]), int(header["revision"]), objects, str(header["created"])
    )


async def _write(store: Store, path: Path, clock: Clock) -> BackupSummary:
    page = await store.range("", limit=_PAGE)
    created = rfc3339(clock.now())
    header = {"identity": store.identity, "revision": page.revision, "created": created}
    objects = 0
    with path.open("xb") as raw:
        os.fchmod(raw.fileno(), 0o600)
        file = _Digesting(raw)
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
        raw.write(file.digest())
        raw.flush()
        await asyncio.to_thread(os.fsync, raw.fileno())
    return BackupSummary(store.identity, page.revision, objects, created)


class _Digesting:
    """Writes, and sums up what was written."""

    def __init__(self, file: BinaryIO) -> None:
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
    if not file.read(len(_FAMILY)) == _FAMILY:
        raise BadBackup(f"{str(path)!r} is not a skerry backup")
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
        if length > _LARGEST_FRAME:
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
