"""What a store remembers never differs from what it would read."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.ids import SeededIds
from skerry.store.base import Entry, Event, Write
from skerry.store.recent import RecentEntries
from skerry.store.sqlite import SqliteStore


def test_what_is_being_written_is_not_given_out_and_the_rest_is() -> None:
    recent = RecentEntries()
    recent.put(Entry("/a", b"1", 1))
    recent.put(Entry("/b", b"2", 2))
    writes = [Write("/a", b"3")]
    recent.begin(writes)
    assert recent.get("/a") is None
    recent.put(Entry("/a", b"3", 3))
    assert recent.get("/a") is None, "read while it was being written"
    assert recent.get("/b") == Entry("/b", b"2", 2)
    recent.settle(writes, [Event(3, "/a", b"3", b"1", 1)])
    assert recent.get("/a") == Entry("/a", b"3", 3)


def test_of_several_writes_the_last_to_end_decides() -> None:
    recent = RecentEntries()
    first, second, deletion = (Write("/a", value) for value in (b"1", b"2", None))
    recent.begin([first])
    recent.begin([second])
    recent.settle([first], [Event(1, "/a", b"1", None, 0)])
    assert recent.get("/a") is None, "the second may be on disk already"
    recent.settle([second], [Event(2, "/a", b"2", b"1", 1)])
    assert recent.get("/a") == Entry("/a", b"2", 2)
    recent.begin([deletion])
    recent.settle([deletion], [Event(3, "/a", None, b"2", 2)])
    assert recent.get("/a") is None


def test_a_write_that_failed_leaves_nothing_remembered() -> None:
    recent = RecentEntries()
    recent.put(Entry("/a", b"1", 1))
    recent.begin([Write("/a", b"2")])
    recent.settle([Write("/a", b"2")], [])
    assert recent.get("/a") is None


def test_what_is_read_a_second_time_is_remembered() -> None:
    recent = RecentEntries()
    recent.was_read(Entry("/a", b"1", 1))
    assert recent.get("/a") is None
    recent.was_read(Entry("/a", b"1", 1))
    assert recent.get("/a") == Entry("/a", b"1", 1)


def test_reading_ever_new_keys_does_not_push_out_what_is_hot() -> None:
    recent = RecentEntries()
    for _ in range(2):
        recent.was_read(Entry("/hot", b"x" * 1000, 1))
    for number in range(60_000):
        recent.was_read(Entry(f"/{number}", b"x" * 1000, number))
    assert recent.get("/hot") is not None


def test_writing_ever_new_keys_does_not_push_out_what_is_read_meanwhile() -> None:
    recent = RecentEntries()
    recent.put(Entry("/hot", b"x" * 1000, 1))
    for number in range(60_000):
        recent.put(Entry(f"/{number}", b"x" * 1000, number))
        if number % 5_000 == 0:
            assert recent.get("/hot") is not None, f"after {number} writes"


def test_what_is_not_read_makes_room() -> None:
    recent = RecentEntries()
    for number in range(60_000):
        recent.put(Entry(f"/{number}", b"x" * 1000, number))
    assert recent.get("/0") is None
    assert recent.get("/59999") is not None


def test_a_write_is_forgotten_in_whichever_generation_its_key_is() -> None:
    recent = RecentEntries()
    recent.put(Entry("/a", b"1", 1))
    for number in range(12_000):
        recent.put(Entry(f"/{number}", b"x" * 1000, number))
    writes = [Write("/a", None)]
    recent.begin(writes)
    recent.settle(writes, [Event(3, "/a", None, b"1", 1)])
    assert recent.get("/a") is None
    assert recent.get("/0") is not None, "the old generation is still there"


def test_memory_is_bounded_and_large_values_are_not_kept() -> None:
    recent = RecentEntries()
    recent.put(Entry("/large", b"x" * (1 << 20), 1))
    assert recent.get("/large") is None
    for number in range(2000):
        recent.put(Entry(f"/{number}", b"x" * 20_000, number))
    kept = sum(recent.get(f"/{number}") is not None for number in range(2000))
    assert 0 < kept < 1300


_BUDGET = 100_000
_NAMES = st.sampled_from([f"/{name}" * length for name in "abcdefgh" for length in (1, 20)])
_SIZES = st.integers(0, 70_000) | st.integers(0, 40)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["read", "write", "begin"]), _NAMES, _SIZES),
            st.tuples(st.sampled_from(["get", "delete", "settle"]), _NAMES, st.just(0)),
            st.tuples(st.just("fill"), _NAMES, st.integers(0, 400)),
        ),
        max_size=60,
    )
)
def test_whatever_is_read_and_written_memory_stays_within_its_budget(
    steps: list[tuple[str, str, int]],
) -> None:
    recent = RecentEntries(_BUDGET)
    begun: list[Write] = []
    for number, (step, key, size) in enumerate(steps, start=1):
        if step == "read":
            recent.was_read(Entry(key, bytes(size), number))
        elif step == "get":
            recent.get(key)
        elif step == "fill":
            for other in range(size):
                recent.put(Entry(f"{key}/{number}/{other}", b"", number))
        elif step == "begin":
            begun.append(Write(key, bytes(size)))
            recent.begin(begun[-1:])
        else:
            writes = [begun.pop(0)] if step == "settle" and begun else []
            if step in ("write", "delete"):
                writes.append(Write(key, bytes(size) if step == "write" else None))
                recent.begin(writes[-1:])
            recent.settle(writes, [Event(number, w.key, w.value, None, 0) for w in writes])
        assert taken(recent) <= 2 * _BUDGET


def taken(recent: RecentEntries) -> int:
    """Return what the entries take of the process's memory, the tables they are in included."""
    generations = (recent._young, recent._old)
    return sum(
        sum(sys.getsizeof(part) for part in (entry, entry.key, entry.value, entry.revision))
        for generation in generations
        for entry in generation.values()
    ) + sum(sys.getsizeof(generation) for generation in generations if len(generation) > 100)


async def test_a_read_after_a_write_returns_what_was_written(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "s.db", SeededIds(1))
    try:
        for number in range(50):
            await store.commit([Write("/k", str(number).encode())])
            first, second = await store.get("/k"), await store.get("/k")
            assert first is not None
            assert first.value == str(number).encode()
            assert first == second
        await store.commit([Write("/k", None)])
        assert await store.get("/k") is None
    finally:
        await store.close()


async def test_reads_during_writes_never_go_back(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "s.db", SeededIds(1))
    try:
        await store.commit([Write("/k", b"0"), Write("/l", b"0")])

        async def write() -> None:
            for number in range(1, 200):
                text = str(number).encode()
                await store.commit([Write("/k", text), Write("/l", text)])

        async def read() -> None:
            newest = 0
            while newest < 199:
                for key in ("/k", "/l", "/k"):
                    entry = await store.get(key)
                    assert entry is not None
                    assert int(entry.value) >= newest
                    newest = int(entry.value)
                page = await store.range("/")
                values = {int(each.value) for each in page.entries}
                assert len(values) == 1
                assert min(values) >= newest
                newest = max(newest, *values)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())
            tasks.create_task(read())
    finally:
        await store.close()
