"""Batches, the two hands that share the connection, and what is said when the disk fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import apsw
import pytest

from skerry.store import sqlite_writer
from skerry.store.base import Conflict, Event, Overloaded, StoreError, Unavailable, Write
from skerry.store.sqlite_schema import NEWEST_AND_COMPACTED, rows
from skerry.store.sqlite_upkeep import WalBounds
from skerry.store.sqlite_writer import BATCH_BYTES, BATCH_WRITES, Outcome, Pending, Writer
from tests.kit.store.sqlite_files import connection, prepared


class Bench:
    """A writer, and the batches it completed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writing = prepared(path)
        self.batches: list[list[Pending]] = []
        self.events: list[Event] = []
        self.writer = Writer(self.writing, partial(connection, path), self._completed, WalBounds())

    def _completed(
        self, batch: list[Pending], outcomes: Sequence[Outcome], events: list[Event]
    ) -> None:
        self.batches.append(batch)
        self.events += events
        for pending, outcome in zip(batch, outcomes, strict=True):
            if pending.waiter.done():
                continue
            if isinstance(outcome, StoreError):
                pending.waiter.set_exception(outcome)
            else:
                pending.waiter.set_result(outcome)

    def durable(self) -> list[tuple[str, int]]:
        """Return what another connection sees."""
        other = connection(self.path)
        found = rows(other, "SELECT k, rv FROM cur ORDER BY k")
        other.close()
        return found

    def refuse(self, statement: str) -> None:
        """Have the database refuse *statement* (BEGIN, COMMIT, INSERT), as a failing disk would."""

        def authorize(operation: int, name: str | None, *_: object) -> int:
            is_insert = operation == apsw.SQLITE_INSERT and statement == "INSERT"
            return apsw.SQLITE_DENY if is_insert or name == statement else apsw.SQLITE_OK

        self.writing.authorizer = authorize

    def repair(self) -> None:
        self.writing.authorizer = None


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "store.db")
    yield made
    await made.writer.stop()


async def test_what_arrives_in_one_turn_of_the_loop_is_one_batch(bench: Bench) -> None:
    waiting = [bench.writer.submit([Write(f"/{name}", b"")]) for name in "abc"]
    assert await asyncio.gather(*waiting) == [[2], [3], [4]]
    assert [len(batch) for batch in bench.batches] == [3]
    assert bench.durable() == [("/a", 2), ("/b", 3), ("/c", 4)]


async def test_a_batch_is_bounded_by_writes_and_by_bytes(bench: Bench) -> None:
    few = [bench.writer.submit([Write(f"/{n}", b"")]) for n in range(BATCH_WRITES + 1)]
    await asyncio.gather(*few)
    assert [len(batch) for batch in bench.batches] == [BATCH_WRITES, 1]
    bench.batches.clear()
    large = [bench.writer.submit([Write(f"/{n}", bytes(BATCH_BYTES))]) for n in range(2)]
    await asyncio.gather(*large)
    assert [len(batch) for batch in bench.batches] == [1, 1]


async def test_commits_of_a_batch_see_those_before_them_and_a_misfit_harms_nobody(
    bench: Bench,
) -> None:
    first = bench.writer.submit([Write("/a", b"1", 0)])
    second = bench.writer.submit([Write("/a", b"2", 0), Write("/b", b"2")])
    third = bench.writer.submit([Write("/a", b"3", 2)])
    assert await first == [2]
    with pytest.raises(Conflict):
        await second
    assert await third == [3]
    assert bench.durable() == [("/a", 3)]
    assert [event.revision for event in bench.events] == [2, 3]


async def test_more_rows_than_one_statement_takes_are_written_whole(bench: Bench) -> None:
    writes = [Write(f"/{n:03}", b"") for n in range(100)]
    await bench.writer.submit(writes)
    await bench.writer.submit([Write(write.key, None) for write in writes[:70]])
    assert [key for key, _ in bench.durable()] == [write.key for write in writes[70:]]
    assert rows(bench.writing, "SELECT count(*) FROM past") == [(70,)]


async def test_who_no_longer_waits_is_written_all_the_same(bench: Bench) -> None:
    bench.writer.submit([Write("/a", b"1")]).cancel()
    await bench.writer.submit([Write("/b", b"1")])
    assert [key for key, _ in bench.durable()] == ["/a", "/b"]


async def test_stopping_finishes_what_was_accepted_and_takes_no_more(bench: Bench) -> None:
    waiting = [bench.writer.submit([Write(f"/{n}", b"")]) for n in range(BATCH_WRITES + 5)]
    await bench.writer.stop()
    assert all(each.result() for each in waiting)
    with pytest.raises(Unavailable, match="this was not written"):
        bench.writer.submit([Write("/late", b"")])


async def test_an_overload_is_said_to_who_comes_too_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "MAX_WAITING", 2)
    waiting = [bench.writer.submit([Write("/a", b"")]) for _ in range(2)]
    with pytest.raises(Overloaded, match="too many writes are waiting; this one was not written"):
        bench.writer.submit([Write("/a", b"")])
    await asyncio.gather(*waiting)


async def test_an_overload_in_bytes_is_said_too_and_ends_when_they_are_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer, "MAX_WAITING_BYTES", 2000)
    # Who no longer waits has left something behind all the same.
    bench.writer.submit([Write("/a", bytes(1000))]).cancel()
    waiting = bench.writer.submit([Write("/b", bytes(1000)), Write("/c", None)])
    with pytest.raises(Overloaded):
        bench.writer.submit([Write("/d", b"")])
    await waiting
    await bench.writer.submit([Write("/d", b"")])
    assert [key for key, _ in bench.durable()] == ["/a", "/b", "/d"]


async def test_a_disk_that_hangs_keeps_nobody_waiting_and_works_again_when_it_returns(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sqlite_writer, "PATIENCE_SECONDS", 0.05)
    free = threading.Event()
    bench.writing.set_commit_hook(lambda: not free.wait(30))
    sent = bench.writer.submit([Write("/sent", b"1")])
    while not bench.writer._staged:
        await asyncio.sleep(0)
    queued = bench.writer.submit([Write("/queued", b"1")])
    with pytest.raises(
        Unavailable, match=r"the disk has not answered for .* its outcome is unknown"
    ):
        await sent
    with pytest.raises(Unavailable, match="this was not written"):
        await queued
    with pytest.raises(Unavailable, match="this was not written"):
        bench.writer.submit([Write("/late", b"1")])
    with pytest.raises(Unavailable, match="nothing can be written"):
        await bench.writer.check_writable()
    free.set()
    while bench.writer._hanging:
        await asyncio.sleep(0.001)
    await bench.writer.check_writable()
    (revision,) = await bench.writer.submit([Write("/again", b"1")])
    assert [key for key, _ in bench.durable()] == ["/again", "/sent"]
    assert [event.key for event in bench.events] == ["/sent", "/again"]
    # Whoever waited was settled once, with its batch or when it was given up.
    settled = [write.key for batch in bench.batches for each in batch for write in each.writes]
    assert settled == ["/queued", "/sent", "/again"]
    assert revision > bench.events[0].revision
    assert "the disk does not answer" in capsys.readouterr().err


async def test_a_disk_that_answered_meanwhile_is_waited_for_anew(bench: Bench) -> None:
    await bench.writer.submit([Write("/before", b"")])
    earlier = bench.writer._turns
    free = threading.Event()
    bench.writing.set_commit_hook(lambda: not free.wait(30))
    waiting = bench.writer.submit([Write("/slow", b"")])
    while not bench.writer._staged:
        await asyncio.sleep(0)
    bench.writer._check_turn(earlier)
    assert not waiting.done()
    free.set()
    assert await waiting == [3]


# -- a disk that fails -----------------------------------------------------------------------------


async def test_a_batch_that_cannot_be_written_did_not_happen_and_the_next_one_does(
    bench: Bench,
) -> None:
    bench.refuse("INSERT")
    waiting = [bench.writer.submit([Write(f"/{name}", b"")]) for name in "ab"]
    for each in waiting:
        with pytest.raises(Unavailable, match="the write did not happen"):
            await each
    bench.repair()
    (revision,) = await bench.writer.submit([Write("/c", b"")])
    assert bench.durable() == [("/c", revision)]


async def test_a_commit_the_disk_did_not_take_is_unknown_and_its_revision_never_used_again(
    bench: Bench,
) -> None:
    bench.refuse("COMMIT")
    with pytest.raises(Unavailable, match="its outcome is unknown"):
        await bench.writer.submit([Write("/a", b"")])
    assert bench.events == []
    bench.repair()
    # A crash could have left revision 2 on disk.
    assert await bench.writer.submit([Write("/b", b"")]) == [3]
    assert bench.durable() == [("/b", 3)]


async def test_a_store_that_fails_is_tried_again_once_for_all_who_ask(bench: Bench) -> None:
    await bench.writer.check_writable()
    bench.refuse("INSERT")
    with pytest.raises(Unavailable):
        await bench.writer.submit([Write("/a", b"")])
    asked = [asyncio.create_task(bench.writer.check_writable()) for _ in range(3)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    bench.repair()
    await bench.writer.check_writable()
    assert bench.durable() == []
    assert rows(bench.writing, "SELECT count(*) FROM past") == [(0,)]


async def test_a_chore_that_fails_is_answered_and_the_next_one_done(bench: Bench) -> None:
    bench.refuse("BEGIN")
    with pytest.raises(Unavailable):
        await bench.writer.compact(1)
    bench.repair()
    await bench.writer.compact(1)
    assert rows(bench.writing, NEWEST_AND_COMPACTED) == [(1, 1)]


# -- chores ----------------------------------------------------------------------------------------


async def test_commits_are_answered_between_the_steps_of_a_compaction(bench: Bench) -> None:
    for number in range(3):
        await bench.writer.submit([Write(f"/{number}{n}", b"") for n in range(100)])
    compacting = bench.writer.compact(301)
    commit = bench.writer.submit([Write("/a", b"")])
    await commit
    assert not compacting.done()
    await compacting


async def test_a_new_history_begins_beyond_every_revision_given_out(bench: Bench) -> None:
    await bench.writer.submit([Write("/a", b"")])
    await bench.writer.adopt("another", 1000)
    assert await bench.writer.submit([Write("/b", b"")]) == [1001]
    assert rows(bench.writing, "SELECT identity FROM meta") == [("another",)]
    await bench.writer.adopt("third", 5)
    assert await bench.writer.submit([Write("/c", b"")]) == [1002]
