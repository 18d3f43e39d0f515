"""What the syncer must not forget, on disk: one value per key, each line with its own checksum.

The file is a log of lines ``<crc32> <JSON of [key, value]>``; the last line of a key counts, a
null value forgets it. A line is whole or it is not there: a torn or damaged one fails its
checksum, is passed over and counted, and costs exactly that line. When more than half of the file
is history, it is written anew beside and renamed over.

Values are kept in memory as bytes and decoded on each read: ten thousand objects cost what their
JSON costs. A disk that refuses (full, gone) does not stop the syncer: what could not be written
stays pending, ``failure`` says why, and each ``flush`` tries again.

    put("a", 1); flush       one line: a is 1
    put("a", 2)              get says 2 at once, the disk still 1: so does a process that starts now
    put("a", None); flush    one more line, which forgets a; the 2 was never written

So whoever must not act before it is remembered puts, flushes, and acts then, in this order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from skerry.kit.log import Logger

# Rewriting a small file is cheap but not free; history below this is kept.
_MIN_HISTORY = 1000

Offload = Callable[[Callable[[], None]], Awaitable[None]]

_log = Logger("syncer-journal")


async def in_thread(work: Callable[[], None]) -> None:
    """Do *work* where waiting for a disk holds up nobody."""
    await asyncio.to_thread(work)


class Journal:
    """One open journal; a second opening of the same file is the caller's mistake to prevent."""

    def __init__(
        self, path: Path, *, offload: Offload = in_thread, min_history: int = _MIN_HISTORY
    ) -> None:
        self._path = path
        self._min_history = min_history
        self._offload = offload
        self._values: dict[str, bytes] = {}
        self._pending: dict[str, bytes | None] = {}
        self._lines = 0
        self._writing = asyncio.Lock()
        self._file: BinaryIO | None = None
        self.damaged = 0
        self.failure = ""
        self._load()

    def get(self, key: str) -> Any:
        """Return the value of *key*; None when there is none."""
        found = self._values.get(key)
        return None if found is None else orjson.loads(found)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with *prefix*."""
        return [key for key in self._values if key.startswith(prefix)]

    def put(self, key: str, value: object) -> None:
        """Remember *value*, durably after the next ``flush``; None forgets the key."""
        if value is None:
            if self._values.pop(key, None) is not None:
                self._pending[key] = None
            return
        text = bytes(memoryview(orjson.dumps(value)))
        if self._values.get(key) != text:
            self._values[key] = self._pending[key] = text

    async def flush(self) -> None:
        """Return when everything put so far is on disk, or ``failure`` says why it is not."""
        async with self._writing:
            if not self._pending:
                return
            taken, self._pending = self._pending, {}
            try:
                await self._offload(lambda: self._write(taken))
            except OSError as error:
                # What was put meanwhile is newer than what could not be written.
                self._pending = {**taken, **self._pending}
                if not self.failure:
                    _log.error("cannot write the journal", key=str(self._path), error=error)
                self.failure = f"the syncer's journal cannot be written: {error}"
            else:
                self.failure = ""

    def close(self) -> None:
        """Release the file; what is pending is lost unless it was flushed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _load(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            for line in self._path.read_bytes().split(b"\n"):
                if line:
                    self._take(line)
        if self.damaged:
            _log.warning("damaged lines in the journal", key=str(self._path), lines=self.damaged)

    def _take(self, line: bytes) -> None:
        text = _checked(line)
        if text is None:
            self.damaged += 1
            return
        self._lines += 1
        key, value = orjson.loads(text)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = bytes(memoryview(orjson.dumps(value)))

    def _write(self, taken: dict[str, bytes | None]) -> None:
        if self._lines + len(taken) > 2 * len(self._values) + self._min_history or self.damaged:
            self._rewrite()
            return
        if self._file is None:
            self._file = _opened(self._path, os.O_APPEND)
            if self._file.tell() and not _ends_whole(self._path):
                self._file.write(b"\n")  # a torn last line must not swallow the next one
        self._file.write(b"".join(_line(key, value) for key, value in taken.items()))
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._lines += len(taken)

    def _rewrite(self) -> None:
        """Write the present values, all of them, to a new file and put it in place."""
        values = dict(self._values)
        fresh = self._path.with_suffix(".new")
        with _opened(fresh, os.O_TRUNC) as file:
            file.write(b"".join(_line(key, value) for key, value in values.items()))
            file.flush()
            os.fsync(file.fileno())
        self.close()
        fresh.rename(self._path)
        _sync_folder(self._path.parent)
        self._lines, self.damaged = len(values), 0


def _opened(path: Path, how: int) -> BinaryIO:
    # Secrets are among what is placed: nobody else may read them here.
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | how, 0o600)
    return os.fdopen(descriptor, "ab" if how == os.O_APPEND else "wb")


def _line(key: str, value: bytes | None) -> bytes:
    text = b"[" + orjson.dumps(key) + b"," + (value or b"null") + b"]"
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _checked(line: bytes) -> bytes | None:
    """Return the JSON of a line; None when its checksum does not fit."""
    shown, _, text = line.partition(b" ")
    try:
        wanted = int(shown, 16)
    except ValueError:
        return None
    return text if len(shown) == 8 and zlib.crc32(text) == wanted else None


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
