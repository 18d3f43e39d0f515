"""The file a backup is, and the store it becomes; tests/contract runs it over every store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.store.backup import JUMP, BackupFile, BadBackup, backup, restore
from skerry.store.base import Compacted, Page, StoreError, Write
from skerry.store.memory import MemoryStore
from skerry.store.restoring import UNFINISHED

IDS = SeededIds(1)
CLOCK = LoopClock()


async def filled(objects: dict[str, bytes]) -> MemoryStore:
    store = MemoryStore("source")
    if objects:
        await store.commit([Write(key, value) for key, value in objects.items()])
    return store


async def contents(store: MemoryStore) -> dict[str, bytes]:
    return {entry.key: entry.value for entry in (await store.range("")).entries}


@given(st.dictionaries(st.text(min_size=1), st.binary(max_size=20), max_size=10))
@settings(max_examples=20, deadline=None)
def test_a_restored_store_holds_what_was_backed_up(
    tmp_path_factory: pytest.TempPathFactory, objects: dict[str, bytes]
) -> None:
    path = tmp_path_factory.mktemp("backup") / "b"

    async def there_and_back() -> dict[str, bytes]:
        target = MemoryStore("target")
        await backup(await filled(objects), path, CLOCK)
        await restore(target, BackupFile(path), IDS)
        return await contents(target)

    assert asyncio.run(there_and_back()) == objects


async def test_more_objects_than_a_page_are_counted_and_restored_in_small_commits(
    tmp_path: Path,
) -> None:
    sizes: list[int] = []

    class Counting(MemoryStore):
        async def commit(self, writes: Sequence[Write]) -> list[int]:
            sizes.append(len(writes))
            return await super().commit(writes)

    source = await filled({f"/{n:05}": b"x" for n in range(1050)})
    summary = await backup(source, tmp_path / "b", CLOCK)
    assert summary.objects == 1050
    target = Counting("target")
    await restore(target, BackupFile(tmp_path / "b"), IDS)
    assert await target.count("") == 1050
    assert (max(sizes), sum(sizes)) == (100, 1050)


async def test_a_restored_history_begins_beyond_everything_given_out_and_is_compacted(
    tmp_path: Path,
) -> None:
    source = await filled({"/a": b"1"})
    await source.adopt("source", 3 * JUMP + 7)
    await backup(source, tmp_path / "b", CLOCK)
    target = MemoryStore("target")
    await restore(target, BackupFile(tmp_path / "b"), IDS)
    newest = await target.revision()
    assert 5 * JUMP <= newest < 6 * JUMP
    assert target.identity not in ("source", "target")
    with pytest.raises(Compacted):
        await target.history("", after=4 * JUMP)


async def test_a_restore_that_breaks_off_leaves_a_store_that_says_so(tmp_path: Path) -> None:
    class Breaking(MemoryStore):
        async def commit(self, writes: Sequence[Write]) -> list[int]:
            raise StoreError("the disk is full")

    await backup(await filled({"/a": b"1"}), tmp_path / "b", CLOCK)
    target = Breaking("target")
    with pytest.raises(StoreError, match="the disk is full"):
        await restore(target, BackupFile(tmp_path / "b"), IDS)
    assert target.identity.startswith(UNFINISHED)


async def test_what_is_not_to_be_kept_is_left_out(tmp_path: Path) -> None:
    await backup(await filled({"/a": b"1", "/b": b"2"}), tmp_path / "b", CLOCK)
    target = MemoryStore("target")
    await restore(target, BackupFile(tmp_path / "b"), IDS, keep=lambda key, _: key != "/a")
    assert await contents(target) == {"/b": b"2"}


async def test_the_header_says_what_the_caller_added_and_what_the_store_was(tmp_path: Path) -> None:
    source = await filled({"/a": b"1"})
    written = await backup(source, tmp_path / "b", CLOCK, header={"keys": {"a": "b"}})
    visited: list[tuple[str, bytes]] = []
    summary, header = BackupFile(tmp_path / "b").verify(lambda *each: visited.append(each))
    assert summary == written
    assert header["keys"] == {"a": "b"}
    assert (summary.identity, summary.revision) == ("source", await source.revision())
    assert visited == [("/a", b"1")]


async def test_a_backup_overtaken_by_compaction_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    class Compacting(MemoryStore):
        async def range(
            self, prefix: str, *, after: str = "", limit: int = 0, revision: int | None = None
        ) -> Page:
            if after:
                raise Compacted(revision or 0, 99)
            return await super().range(prefix, after=after, limit=limit, revision=revision)

    source = Compacting("source")
    await source.commit([Write(f"/{n}", b"") for n in range(1001)])
    with pytest.raises(StoreError, match="compacted before the backup was complete; try again"):
        await backup(source, tmp_path / "b", CLOCK)
    assert list(tmp_path.iterdir()) == []


# -- files that are not whole ----------------------------------------------------------------------


def cut(content: bytes) -> bytes:
    return content[:-1]


def other_format(content: bytes) -> bytes:
    return content.replace(b"backup 1", b"backup 9", 1)


def flipped(content: bytes) -> bytes:
    return content[:-40] + bytes([content[-40] ^ 1]) + content[-39:]


@pytest.mark.parametrize("damage", [cut, flipped, other_format])
async def test_a_file_that_is_not_as_it_was_written_is_refused_before_anything_is_restored(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "b"
    await backup(await filled({"/a": b"1"}), path, CLOCK)
    path.write_bytes(damage(path.read_bytes()))
    target = MemoryStore("target")
    with pytest.raises(BadBackup, match=r"damaged|format"):
        await restore(target, BackupFile(path), IDS)
    assert target.identity == "target"


def test_a_backup_of_nothing_but_its_first_line_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "b"
    path.write_bytes(b"skerry-backup 1\n" + json.dumps({}).encode())
    with pytest.raises(BadBackup, match="damaged or cut off"):
        BackupFile(path).verify()


# -- one at a time ---------------------------------------------------------------------------------


async def test_what_a_killed_backup_left_behind_does_not_stop_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "b.partial").write_bytes(b"half of")
    await backup(await filled({"/a": b"1"}), tmp_path / "b", CLOCK)
    assert BackupFile(tmp_path / "b").verify()[0].objects == 1
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


async def test_a_second_backup_to_the_same_file_is_refused_and_the_first_unharmed(
    tmp_path: Path,
) -> None:
    source = await filled({"/a": b"1"})

    async def meanwhile() -> None:
        with pytest.raises(StoreError, match="being written by another backup"):
            await backup(source, tmp_path / "b", CLOCK)

    await backup(source, tmp_path / "b", CLOCK, confirm=meanwhile)
    assert BackupFile(tmp_path / "b").verify()[0].objects == 1
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
