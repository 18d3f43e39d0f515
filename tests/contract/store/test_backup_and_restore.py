"""Backup and restore between every pair of backends."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from skerry.kit.clock import SystemClock
from skerry.kit.ids import SeededIds
from skerry.store.backup import JUMP, BackupFile, BadBackup, Sealing, backup, restore
from skerry.store.base import Compacted, Page, Store, StoreError, Write
from skerry.store.memory import MemoryStore
from skerry.store.restoring import UNFINISHED, RestorableStore
from skerry.store.sealed_file import ScryptCost
from tests.kit.store.backends import Backend

IDS = SeededIds(3)


async def contents(store: Store) -> dict[str, bytes]:
    return {entry.key: entry.value for entry in (await store.range("")).entries}


async def test_a_restored_store_has_the_objects_and_another_identity(
    store: RestorableStore, backend: Backend, tmp_path: Path
) -> None:
    old = [(await store.commit([Write(f"/k/{n}", bytes([n]) * n)]))[0] for n in range(20)]
    await store.commit([Write("/k/3", None)])
    written = await backup(store, tmp_path / "b", SystemClock())
    assert written.objects == 19
    await store.commit([Write("/k/after", b"not in the backup")])
    target = await backend.open()
    try:
        assert await restore(target, BackupFile(tmp_path / "b"), IDS) == written
        expected = await contents(store)
        del expected["/k/after"]
        assert await contents(target) == expected
        assert target.identity not in (store.identity, "")
        assert await target.revision() > await store.revision() + JUMP // 2
        for revision in (1, *old, await store.revision()):
            with pytest.raises(Compacted):
                await target.range("", revision=revision)
            with pytest.raises(Compacted):
                await anext(target.watch("", after=revision))
        for entry in (await target.range("")).entries:
            assert entry.revision > await store.revision()
    finally:
        await target.close()


async def test_the_jump_of_a_restored_store_survives_reopening(
    durable_backend: Backend, tmp_path: Path
) -> None:
    source = MemoryStore("source")
    await source.commit([Write("/a", b"1")])
    await backup(source, tmp_path / "b", SystemClock())
    settings = durable_backend.fresh()
    store = await durable_backend.open(settings)
    await restore(store, BackupFile(tmp_path / "b"), IDS)
    identity, entry, newest = store.identity, await store.get("/a"), await store.revision()
    await store.close()
    store = await durable_backend.open(settings)
    try:
        assert store.identity == identity
        assert await store.get("/a") == entry
        assert await store.revision() == newest
        assert await store.compacted() == newest
        (later,) = await store.commit([Write("/b", b"")])
        assert later > newest > JUMP
    finally:
        await store.close()


async def test_a_backup_shows_one_moment_while_writes_go_on(
    store: RestorableStore, tmp_path: Path
) -> None:
    # Both keys of a pair are always written together; a torn backup would show them differ.
    for start in range(0, 1500, 50):
        await store.commit(
            [Write(f"/{s}/{n:04}", b"0") for n in range(start, start + 50) for s in "ab"]
        )
    done = asyncio.Event()

    async def disturb() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            value = str(turn).encode()
            name = f"{turn * 7 % 1500:04}"
            await store.commit([Write(f"/a/{name}", value), Write(f"/b/{name}", value)])

    disturbing = asyncio.ensure_future(disturb())
    await backup(store, tmp_path / "b", SystemClock())
    done.set()
    await disturbing
    target = MemoryStore("target")
    await restore(target, BackupFile(tmp_path / "b"), IDS)
    found = await contents(target)
    assert len(found) == 3000
    assert all(found[f"/a/{n:04}"] == found[f"/b/{n:04}"] for n in range(1500))


async def test_an_empty_store_can_be_backed_up_and_restored(
    store: RestorableStore, tmp_path: Path
) -> None:
    await backup(store, tmp_path / "b", SystemClock())
    target = MemoryStore("target")
    assert (await restore(target, BackupFile(tmp_path / "b"), IDS)).objects == 0
    assert await target.revision() > JUMP


async def test_restore_refuses_a_store_that_is_not_empty(
    store: RestorableStore, tmp_path: Path
) -> None:
    await store.commit([Write("/a", b"1")])
    await backup(store, tmp_path / "b", SystemClock())
    with pytest.raises(StoreError, match="not empty"):
        await restore(store, BackupFile(tmp_path / "b"), IDS)


async def test_a_store_whose_restore_was_not_finished_is_refused(durable_backend: Backend) -> None:
    settings = durable_backend.fresh()
    store = await durable_backend.open(settings)
    await store.adopt(UNFINISHED + "x", 5)
    await store.close()
    with pytest.raises(StoreError, match="begun but not finished"):
        await durable_backend.open(settings)


@pytest.fixture
async def good(tmp_path: Path) -> Path:
    source = MemoryStore("source")
    await source.commit([Write(f"/{n}", b"x" * 50) for n in range(30)])
    await backup(source, tmp_path / "good", SystemClock())
    return tmp_path / "good"


async def test_a_backup_with_any_byte_changed_is_refused_and_nothing_is_written(
    good: Path, tmp_path: Path
) -> None:
    content = good.read_bytes()
    for position in range(0, len(content), 97):
        damaged = tmp_path / "damaged"
        damaged.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        target = MemoryStore("target")
        with pytest.raises(BadBackup):
            await restore(target, BackupFile(damaged), IDS)
        assert await target.count("") == 0


@pytest.mark.parametrize("length", [0, 5, 20, 100, -1, -32])
def test_a_backup_that_was_cut_off_is_refused(good: Path, tmp_path: Path, length: int) -> None:
    (tmp_path / "short").write_bytes(good.read_bytes()[:length])
    with pytest.raises(BadBackup, match=r"damaged or cut off|not a skerry backup"):
        BackupFile(tmp_path / "short").verify()


def test_a_file_that_is_no_backup_is_named_so(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"SQLite format 3\x00" * 20)
    with pytest.raises(BadBackup, match="is not a skerry backup"):
        BackupFile(tmp_path / "other").verify()
    with pytest.raises(BadBackup, match="cannot be read"):
        BackupFile(tmp_path / "absent").verify()


async def test_a_failed_backup_leaves_no_file_behind(tmp_path: Path) -> None:
    source = MemoryStore("source")
    with pytest.raises(StoreError, match="cannot be written"):
        await backup(source, tmp_path / "no" / "such" / "folder", SystemClock())
    assert list(tmp_path.iterdir()) == []


async def test_a_backup_is_readable_by_its_owner_only(good: Path) -> None:
    assert good.stat().st_mode & 0o777 == 0o600


# Sealed with a passphrase.

SEALING = Sealing(b"sesame", SeededIds(5), ScryptCost(n=2, r=1))


@pytest.fixture
async def sealed(tmp_path: Path) -> Path:
    source = MemoryStore("source")
    await source.commit([Write(f"/{n}", b"swordfish" * 50) for n in range(300)])
    header = {"keys": {"ca.key": "the key"}}
    await backup(source, tmp_path / "sealed", SystemClock(), header=header, sealing=SEALING)
    return tmp_path / "sealed"


async def test_a_sealed_backup_restores_with_its_passphrase_and_shows_nothing_without(
    store: RestorableStore, sealed: Path
) -> None:
    assert b"swordfish" not in sealed.read_bytes()
    assert b"the key" not in sealed.read_bytes()
    assert sealed.stat().st_mode & 0o777 == 0o600
    file = BackupFile(sealed, b"sesame")
    _, header = file.verify()
    assert header["keys"] == {"ca.key": "the key"}
    await restore(store, file, IDS, keep=lambda key, _: key != "/7")
    assert len(await contents(store)) == 299


@pytest.mark.parametrize(
    ("passphrase", "wanted"),
    [(None, "is encrypted: its passphrase is needed"), (b"mellon", "not the one it was written")],
)
def test_a_sealed_backup_says_that_the_passphrase_is_wrong_or_missing(
    sealed: Path, passphrase: bytes | None, wanted: str
) -> None:
    with pytest.raises(BadBackup, match=wanted):
        BackupFile(sealed, passphrase)


async def test_a_sealed_backup_that_was_changed_or_cut_off_restores_nothing(
    sealed: Path, tmp_path: Path
) -> None:
    content = sealed.read_bytes()
    damaged = tmp_path / "damaged"
    changed = [
        content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        for at in range(0, len(content), 9973)
    ]
    for broken in [*changed, content[:-1], content[: len(content) // 2], content + b"x"]:
        damaged.write_bytes(broken)
        target = MemoryStore("target")
        with pytest.raises(BadBackup):
            await restore(target, BackupFile(damaged, b"sesame"), IDS)
        assert await target.count("") == 0


async def test_a_backup_that_is_not_confirmed_leaves_the_one_before(tmp_path: Path) -> None:
    source = MemoryStore("source")
    await source.commit([Write("/a", b"1")])
    await backup(source, tmp_path / "b", SystemClock())
    before = (tmp_path / "b").read_bytes()
    await source.commit([Write("/b", b"2")])

    async def refuse() -> None:
        raise StoreError("keys were rotated meanwhile")

    with pytest.raises(StoreError, match="rotated meanwhile"):
        await backup(source, tmp_path / "b", SystemClock(), confirm=refuse)
    assert (tmp_path / "b").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


async def test_nobody_else_can_open_a_backup_while_it_is_written(tmp_path: Path) -> None:
    modes: list[int] = []

    class Watched(MemoryStore):
        async def range(
            self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
        ) -> Page:
            modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())
            return await super().range(prefix, after=after, limit=limit, revision=revision)

    source = Watched("source")
    await source.commit([Write(f"/{n:04}", b"x") for n in range(1500)])
    before = os.umask(0)
    try:
        await backup(source, tmp_path / "b", SystemClock())
    finally:
        os.umask(before)
    assert modes
    assert set(modes) == {0o600}
