"""What only the SQLite store promises: its lock, its disk, its log file."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SeededIds
from skerry.store.backup import BackupFile, backup
from skerry.store.base import StoreError, Unavailable, Write
from skerry.store.sqlite import SqliteStore
from skerry.store.sqlite_upkeep import WalBounds

IDS = SeededIds(1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path, IDS)
    yield opened
    await opened.close()


async def test_a_second_server_learns_who_has_the_file(store: SqliteStore, path: Path) -> None:
    with pytest.raises(Unavailable, match=rf"in use by process {os.getpid()}: only one server"):
        await SqliteStore.open(path, IDS)


async def test_the_file_can_be_opened_again_after_closing(path: Path) -> None:
    for _ in range(2):
        store = await SqliteStore.open(path, IDS)
        await store.close()


async def test_the_wal_is_left_empty_on_closing(path: Path) -> None:
    store = await SqliteStore.open(path, IDS)
    await store.commit([Write("/a", b"1")])
    await store.close()
    wal = path.with_name(path.name + "-wal")
    assert not wal.exists() or wal.stat().st_size == 0


async def test_a_file_of_another_program_is_refused(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE other(x)").fetchall()
    connection.close()
    with pytest.raises(StoreError, match="has format 0; this program reads format 1"):
        await SqliteStore.open(path, IDS)


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"hello " * 1000)
    with pytest.raises(Unavailable, match="cannot be opened"):
        await SqliteStore.open(path, IDS)
    path.unlink()
    # The refusal let go of the lock.
    await (await SqliteStore.open(path, IDS)).close()


@contextmanager
def max_file_bytes(size: int) -> Iterator[None]:
    """Make writes beyond *size* bytes of any file fail, as those to a full disk do."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_is_reported_until_something_can_be_written_again(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = await SqliteStore.open(path, IDS)
    await store.check_writable()
    with max_file_bytes(16 << 10):
        with pytest.raises(Unavailable, match="disk"):
            await store.commit([Write("/big", bytes(64 << 10))])
        asked = [store.check_writable() for _ in range(3)]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(outcome, Unavailable)
        assert await store.get("/big") is None
    # Nobody has written since: who asks finds out.
    before = await store.revision()
    await store.check_writable()
    assert await store.revision() == before
    assert await store.count("") == 0
    await store.close()
    capsys.readouterr()


async def test_a_full_disk_fails_the_write_and_the_store_stays_usable(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = await SqliteStore.open(path, IDS)
    (first,) = await store.commit([Write("/a", b"1")])
    with max_file_bytes(256 << 10):
        results = await asyncio.gather(
            *(store.commit([Write(f"/big/{n}", bytes(64 << 10))]) for n in range(20)),
            return_exceptions=True,
        )
        assert any(isinstance(result, Unavailable) for result in results)
        failed = {n for n, result in enumerate(results) if isinstance(result, BaseException)}
        entry = await store.get("/a")
        assert entry is not None
        assert entry.revision == first
        for number in failed:
            assert await store.get(f"/big/{number}") is None
    watch = store.watch("", after=await store.revision())
    (later,) = await store.commit([Write("/a", b"2", first)])
    assert later > first + len(failed)
    assert [e.revision for e in await anext(watch)] == [later]
    await store.close()
    store = await SqliteStore.open(path, IDS)
    assert await store.count("/big/") == 20 - len(failed)
    assert await store.revision() == later
    await store.close()
    assert "commit failed" in capsys.readouterr().err


async def test_the_wal_stays_short_under_constant_writes_and_reads(path: Path) -> None:
    store = await SqliteStore.open(path, IDS, wal=WalBounds(wanted_pages=200, max_pages=1000))
    wal = path.with_name(path.name + "-wal")
    peak_bytes = 0

    async def write(worker: int) -> None:
        nonlocal peak_bytes
        for number in range(150):
            await store.commit([Write(f"/{worker}/{number % 40}", bytes(16 << 10))])
            peak_bytes = max(peak_bytes, wal.stat().st_size)

    async def read(turns: int) -> None:
        for _ in range(turns):
            await store.range("")
            await asyncio.sleep(0)

    await asyncio.gather(read(50), *(write(worker) for worker in range(8)))
    # 20 MB were written through a WAL that is wanted at 0.8 MB and slowed down at 4 MB.
    assert peak_bytes < 8 << 20
    await store.close()


async def test_a_batch_larger_than_one_statement_is_one_transaction(store: SqliteStore) -> None:
    writes = [Write(f"/{n:04}", b"v") for n in range(1000)]
    revisions = await store.commit(writes)
    assert revisions == list(range(revisions[0], revisions[0] + 1000))
    deleted = await store.commit([Write(f"/{n:04}", None) for n in range(0, 1000, 2)])
    assert len(deleted) == 500
    assert await store.count("") == 500


async def test_a_watcher_slower_than_the_ring_loses_nothing(store: SqliteStore) -> None:
    start = await store.revision()
    watch = store.watch("/k/", after=start)
    first = await store.commit([Write("/k/first", b"")])
    seen = [e.revision for e in await anext(watch)]
    assert seen == first
    for turn in range(25):
        await store.commit(
            [Write(f"/{'k' if n % 10 == 0 else 'j'}/{n}", b"%d" % turn) for n in range(1000)]
        )
    (last,) = await store.commit([Write("/k/last", b"")])
    while seen[-1] < last:
        seen += [e.revision for e in await anext(watch)]
    expected = [e.revision for e in await store.history("/k/", after=start, limit=10_000)]
    assert seen == expected
    assert len(seen) == 2502


async def test_the_history_of_a_few_keys_is_the_same_however_it_is_found(
    store: SqliteStore,
) -> None:
    start = await store.revision()
    for turn in range(6):
        value = None if turn in (2, 4) else b"%d" % turn
        await store.commit([Write("/few/often", value), Write(f"/few/{turn}", b"")])
        await store.commit([Write(f"/many/{n}", b"%d" % turn) for n in range(200)])
    await store.commit([Write("/few/1", None)])
    everything = await store.history("", after=start, limit=10_000)
    assert {event.value is None for event in everything if event.key == "/few/often"} == {
        True,
        False,
    }
    for after in (start, start + 3, start + 300, start + 700, everything[-1].revision):
        expected = [e for e in everything if e.revision > after and e.key.startswith("/few/")]
        assert await store.history("/few/", after=after) == expected
        assert await store.history("/few/", after=after, limit=3) == expected[:3]


async def test_compaction_deletes_what_is_superfluous_and_only_that(
    store: SqliteStore, path: Path
) -> None:
    for turn in range(30):
        await store.commit([Write(f"/{n}", b"%d" % turn) for n in range(100)])
    await store.commit([Write(f"/{n}", None) for n in range(50)])
    await store.compact(await store.revision())
    reader = apsw.Connection(str(path))
    assert reader.execute("SELECT count(*) FROM log").fetchall() == [(50,)]
    assert reader.execute("SELECT count(*) FROM past").fetchall() == [(0,)]
    assert reader.execute("SELECT count(*) FROM cur").fetchall() == [(50,)]
    reader.close()


async def test_commits_are_answered_while_a_long_compaction_runs(store: SqliteStore) -> None:
    for turn in range(20):
        await store.commit([Write(f"/{n}", b"%d" % turn) for n in range(1000)])
    compacting = asyncio.ensure_future(store.compact(await store.revision()))
    answered_before_its_end = 0
    while not compacting.done():
        await store.commit([Write("/x", b"")])
        answered_before_its_end += 1
    await compacting
    assert answered_before_its_end > 10


async def test_a_read_only_view_sees_what_a_server_writes_and_writes_nothing(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    await store.commit([Write("/a", b"1")])
    view = await SqliteStore.open_read_only(path)
    assert view.identity == store.identity
    await store.commit([Write("/b", b"2")])
    assert await view.count("") == 2
    with pytest.raises(Unavailable, match="read only"):
        await view.commit([Write("/c", b"")])
    await backup(view, tmp_path / "backup", SystemClock())
    assert BackupFile(tmp_path / "backup").verify()[0].objects == 2
    await view.close()


async def test_a_read_only_view_of_nothing_is_refused(path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        await SqliteStore.open_read_only(path)
    assert not path.exists()


async def test_the_files_can_be_read_by_their_owner_only(store: SqliteStore, path: Path) -> None:
    await store.commit([Write("/secret", b"")])
    files = [file for file in path.parent.iterdir() if file.is_file()]
    assert {file.name: file.stat().st_mode & 0o077 for file in files} == dict.fromkeys(
        ["store.db", "store.db-wal", "store.db-shm", "store.db.lock"], 0
    )


class SyncSpy(apsw.VFS):
    """Looks, each time the WAL is about to be synced, at what readers see by then."""

    def __init__(self, look: Callable[[], int]) -> None:
        super().__init__("sync-spy", base="unix", makedefault=True)
        self.look = look
        self.seen: list[int] = []

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return SpiedFile(self, name, flags)


class SpiedFile(apsw.VFSFile):
    def __init__(self, spy: SyncSpy, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._spy = spy
        self._is_wal = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xSync(self, flags: int) -> None:
        if self._is_wal:
            self._spy.seen.append(self._spy.look())
        super().xSync(flags)


async def test_nobody_sees_a_commit_before_its_log_is_synced(path: Path) -> None:
    await (await SqliteStore.open(path, IDS)).close()
    other = apsw.Connection(str(path), vfs="unix")

    def visible() -> int:
        return len(other.execute("SELECT k FROM cur").fetchall())

    spy = SyncSpy(visible)
    try:
        store = await SqliteStore.open(path, IDS)
        for number in range(3):
            await store.commit([Write(f"/{number}", b"")])
            assert visible() == number + 1
            assert spy.seen[-1] == number
        assert len(spy.seen) >= 3
        await store.close()
    finally:
        spy.unregister()
        other.close()


async def test_closing_finishes_what_was_accepted(path: Path) -> None:
    store = await SqliteStore.open(path, IDS)
    waiting = [asyncio.ensure_future(store.commit([Write(f"/{n}", b"")])) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert len(await asyncio.gather(*waiting)) == 50
    store = await SqliteStore.open(path, IDS)
    assert await store.count("") == 50
    await store.close()


async def test_reads_in_a_row_see_every_write_that_was_answered(store: SqliteStore) -> None:
    """Also where the reads before it shared a snapshot, and while another write is under way."""
    await store.commit([Write(f"/a/{number}", b"old") for number in range(20)])
    store._recent.clear()
    for round_ in range(3):
        value = str(round_).encode()
        for number in range(10):
            assert await store.get(f"/a/{number}")
        revisions = await store.commit([Write("/a/19", value)])
        under_way = asyncio.ensure_future(store.commit([Write("/a/18", value)]))
        store._recent.clear()
        entry = await store.get("/a/19")
        assert entry is not None
        assert (entry.value, [entry.revision]) == (value, revisions)
        await under_way
        for number in range(10):
            assert await store.get(f"/a/{number}")
        assert await store.revision() == revisions[0] + 1


async def test_reads_in_a_row_do_not_keep_the_log_from_being_started_anew(
    store: SqliteStore, path: Path
) -> None:
    await store.commit([Write(f"/a/{number}", b"x") for number in range(20)])
    store._recent.clear()
    checking = apsw.Connection(str(path))
    busy = True
    while busy:
        for number in range(20):
            assert await store.get(f"/a/{number}")
            store._recent.clear()
        ended = checking.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        busy = bool(ended[0][0])
        await asyncio.sleep(0)
    checking.close()
