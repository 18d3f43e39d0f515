"""Moments that reads belong to, and pages and histories of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.store.base import Compacted, Event, Future, Write
from skerry.store.sqlite_reader import CHUNK, SNAPSHOTS, Reader, check_kept
from skerry.store.sqlite_schema import rows
from tests.kit.store.sqlite_files import connection, prepared, written


class Bench:
    def __init__(self, path: Path) -> None:
        self.writing = prepared(path)
        self.opened = 0

        def connect() -> apsw.Connection:
            self.opened += 1
            return connection(path)

        self.reader = Reader(connect)

    def write(self, *commits: list[Write]) -> list[Event]:
        return written(self.writing, commits)

    def raise_floor(self, revision: int) -> None:
        rows(self.writing, "UPDATE meta SET floor = ?", (revision,))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "store.db")
    yield made
    made.reader.close()
    made.writing.close()


@pytest.mark.parametrize(
    ("revision", "refusal"), [(4, Compacted), (5, None), (9, None), (10, Future)]
)
def test_what_is_no_longer_or_not_yet_there_is_refused(
    revision: int, refusal: type[Exception] | None
) -> None:
    if refusal is None:
        check_kept(revision, newest=9, compacted=5)
        return
    with pytest.raises(refusal):
        check_kept(revision, newest=9, compacted=5)


async def test_a_key_that_was_deleted_is_not_there_and_an_empty_value_is(bench: Bench) -> None:
    bench.write([Write("/a", b"1")], [Write("/a", None)], [Write("/b", b"")])
    assert bench.reader.get("/a") is None
    entry = bench.reader.get("/b")
    assert entry is not None
    assert (entry.value, entry.revision) == (b"", 4)


# -- moments ---------------------------------------------------------------------------------------


async def test_point_reads_in_a_row_share_a_moment_until_it_is_let_go_of(bench: Bench) -> None:
    for _ in range(6):
        bench.reader.get("/a", steady=True)
    bench.write([Write("/a", b"1")])
    # Only who promises that nothing is written is shown the moment before.
    assert bench.reader.get("/a", steady=True) is None
    bench.reader.let_go()
    assert bench.reader.get("/a", steady=True) is not None


async def test_a_read_while_something_is_written_begins_no_shared_moment(bench: Bench) -> None:
    for _ in range(6):
        bench.reader.get("/a")
    bench.write([Write("/a", b"1")])
    assert bench.reader.get("/a") is not None


async def test_whoever_asks_what_is_newest_ends_the_shared_moment(bench: Bench) -> None:
    for _ in range(6):
        bench.reader.get("/a", steady=True)
    bench.write([Write("/a", b"1")])
    assert bench.reader.bounds() == (2, 0)
    assert bench.reader.get("/a") is not None


async def test_a_shared_moment_ends_by_itself(bench: Bench) -> None:
    for _ in range(6):
        bench.reader.get("/a", steady=True)
    assert bench.reader._connection.in_transaction
    while bench.reader._connection.in_transaction:
        await asyncio.sleep(0.001)


async def test_a_long_range_shows_one_moment_while_writes_go_on(bench: Bench) -> None:
    bench.write([Write(f"/{number:05}", b"old") for number in range(CHUNK + 10)])
    reading = asyncio.create_task(bench.reader.range("/", "", 0, None))
    await asyncio.sleep(0)  # one chunk is read
    assert not reading.done()
    with bench.writing:
        rows(bench.writing, "DELETE FROM cur")
    page = await reading
    assert len(page.entries) == CHUNK + 10
    assert not page.more


async def test_snapshots_are_bounded_and_their_connections_used_again(bench: Bench) -> None:
    bench.write([Write(f"/{number:05}", b"") for number in range(CHUNK + 1)])
    before = bench.opened
    pages = await asyncio.gather(
        *(bench.reader.range("/", "", 0, None) for _ in range(2 * SNAPSHOTS))
    )
    assert {len(page.entries) for page in pages} == {CHUNK + 1}
    assert bench.opened - before <= 2 * SNAPSHOTS
    at_once = bench.opened
    await bench.reader.range("/", "", 1, None)
    assert bench.opened == at_once


async def test_a_range_under_way_when_the_reader_is_closed_leaves_no_connection(
    bench: Bench,
) -> None:
    bench.write([Write(f"/{number:05}", b"") for number in range(CHUNK + 1)])
    reading = asyncio.create_task(bench.reader.range("/", "", 0, None))
    await asyncio.sleep(0)
    bench.reader.close()
    await reading
    assert bench.reader._idle == []


# -- pages -----------------------------------------------------------------------------------------

KEYS = ("/a/1", "/a/2", "/a0", "/b/1", "/c")
_WRITES = st.lists(
    st.builds(Write, st.sampled_from(KEYS), st.sampled_from([None, b"x", b"yy"])), max_size=10
)


@given(
    writes=_WRITES,
    prefix=st.sampled_from(["", "/a/", "/a", "/z"]),
    limit=st.integers(0, 3),
    data=st.data(),
)
@settings(max_examples=8, deadline=None)
def test_pages_together_are_what_there_was_at_their_revision(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    prefix: str,
    limit: int,
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("pages") / "store.db"
    writing = prepared(path)
    events = written(writing, [[write] for write in writes])
    newest = events[-1].revision if events else 1
    at = data.draw(st.integers(1, newest))
    wanted: dict[str, tuple[bytes, int]] = {}
    for event in events[: at - 1]:
        wanted.pop(event.key, None)
        if event.value is not None:
            wanted[event.key] = (event.value, event.revision)
    reader = Reader(partial(connection, path))

    async def read() -> None:
        found: list[Any] = []
        sizes: list[Any] = []
        after = ""
        while True:
            page = await reader.range(prefix, after, limit, at)
            measured = await reader.sizes(prefix, after, limit or 9, at)
            assert (page.revision, measured.more) == (at, page.more)
            found += page.entries
            sizes += measured.entries
            if not page.more:
                break
            after = found[-1].key
        below = sorted(key for key in wanted if key.startswith(prefix))
        assert [(e.key, (e.value, e.revision)) for e in found] == [(k, wanted[k]) for k in below]
        assert sizes == [(key, len(wanted[key][0])) for key in below]

    asyncio.run(read())
    reader.close()
    writing.close()


def test_a_page_of_the_past_costs_no_more_where_other_keys_changed_often(
    tmp_path: Path,
) -> None:
    def steps_of_first_page(changes: int) -> int:
        path = tmp_path / f"{changes}.db"
        writing = prepared(path)
        often = [[Write("/b", b"%d" % number)] for number in range(changes)]
        once = [[Write(f"/a/{number:02}", b"x")] for number in range(20)]
        newest = written(writing, [*once, *often, [Write("/c", b"")]])[-1].revision
        steps = 0

        def stepped() -> bool:
            nonlocal steps
            steps += 1
            return False

        def connect() -> apsw.Connection:
            made = connection(path)
            made.set_progress_handler(stepped, 10)
            return made

        reader = Reader(connect)
        steps = 0
        page = asyncio.run(reader.sizes("/", "", 5, newest - 1))
        assert [key for key, _ in page.entries] == [f"/a/{number:02}" for number in range(5)]
        reader.close()
        writing.close()
        return steps

    few, many = steps_of_first_page(2), steps_of_first_page(2000)
    assert 0 < many <= few + 2


async def test_many_long_reads_share_the_turns_of_the_loop_and_all_end(bench: Bench) -> None:
    bench.write([Write(f"/{number:06}", b"") for number in range(4 * CHUNK)])
    turns, running = 0, True

    async def counted() -> int:
        return len((await bench.reader.range("/", "", 0, None)).entries)

    async def others() -> None:
        nonlocal turns
        while running:
            turns += 1
            await asyncio.sleep(0)

    watching = asyncio.create_task(others())
    reads = [asyncio.create_task(counted()) for _ in range(8)]
    reads[3].cancel()
    found = await asyncio.gather(*reads, return_exceptions=True)
    running = False
    await watching
    assert [each for each in found if each == 4 * CHUNK] == [4 * CHUNK] * 7
    # Seven reads of four chunks each, of which two may be read at a turn.
    assert turns >= 7 * 4 // 2


async def test_a_page_that_takes_all_says_that_nothing_follows(bench: Bench) -> None:
    bench.write([Write("/a", b""), Write("/b", b"")])
    assert not (await bench.reader.range("/", "", 2, None)).more
    assert (await bench.reader.range("/", "", 1, None)).more
    assert bench.reader.count("/") == 2
    assert bench.reader.count("/b") == 1


# -- history ---------------------------------------------------------------------------------------


async def test_a_history_is_the_same_by_its_keys_as_by_the_log(bench: Bench) -> None:
    commits = [[Write("/few/a", b"1")], [Write("/few/a", b"2")], [Write("/few/a", None)]]
    events = bench.write(*commits, *([Write(f"/many/{n}", b"")] for n in range(5)))
    few = [event for event in events if event.key.startswith("/few")]
    scanned = await bench.reader.history("/few", 1, 100)
    # With much that happened elsewhere, the keys say when; here it only seems to have.
    bench.raise_floor(events[-1].revision + 1000)
    looked_up = await bench.reader.history("/few", 1, 100)
    assert scanned == (few, events[-1].revision)
    assert looked_up == (few, events[-1].revision + 1000)


@pytest.mark.parametrize("elsewhere", [0, 1000])
async def test_a_history_cut_short_is_complete_only_up_to_its_last_event(
    bench: Bench, elsewhere: int
) -> None:
    events = bench.write(*([Write("/a", str(n).encode())] for n in range(5)))
    bench.raise_floor(events[-1].revision + elsewhere)
    found, complete = await bench.reader.history("/a", 1, 2)
    assert (found, complete) == (events[:2], events[1].revision)
    rest, complete = await bench.reader.history("/a", complete, 100)
    assert (rest, complete) == (events[2:], events[-1].revision + elsewhere)


async def test_history_from_before_what_is_kept_or_from_the_future_is_refused(bench: Bench) -> None:
    bench.write([Write("/a", b"1")], [Write("/a", b"2")])
    rows(bench.writing, "UPDATE meta SET compacted = 2")
    with pytest.raises(Compacted):
        await bench.reader.history("/", 1, 10)
    with pytest.raises(Future):
        await bench.reader.history("/", 4, 10)
    assert (await bench.reader.history("/", 3, 10)) == ([], 3)
