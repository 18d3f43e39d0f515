from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.store.base import Compacted, Event, Unavailable, Write
from skerry.store.compaction import Compaction, CompactionPolicy, HistoryBytes, run
from skerry.store.memory import MemoryStore


class SteppedClock:
    """Time that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self._seconds += seconds
        await asyncio.sleep(0)


MINUTES = CompactionPolicy(keep=timedelta(minutes=5), interval=timedelta(minutes=1))


def test_nothing_is_due_before_it_is_old_enough() -> None:
    compaction = Compaction(MINUTES)
    assert [compaction.due(minute * 60, minute * 10) for minute in range(1, 6)] == [0] * 5
    assert compaction.due(6 * 60, 100) == 10
    assert compaction.due(7 * 60, 100) == 20


def test_too_many_revisions_go_however_young() -> None:
    compaction = Compaction(CompactionPolicy(max_revisions=100))
    assert compaction.due(1, 1000) == 900


def test_a_wide_numbering_counts_commits_not_numbers() -> None:
    compaction = Compaction(CompactionPolicy(max_revisions=100), stride=10)
    assert compaction.due(1, 1000) == 0
    assert compaction.due(2, 1500) == 500


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 500)), max_size=40))
def test_what_is_due_was_newest_long_ago_and_never_falls(steps: list[tuple[int, int]]) -> None:
    policy = CompactionPolicy(keep=timedelta(seconds=300), max_revisions=1000)
    compaction = Compaction(policy)
    seconds, newest, before = 0, 1, 0
    noted = []
    for waited, written in steps:
        seconds, newest = seconds + waited, newest + written
        noted.append((seconds, newest))
        due = compaction.due(seconds, newest)
        old = max((r for t, r in noted if t <= seconds - 300), default=0)
        assert due == max(old, newest - 1000, 0)
        assert due >= before
        before = due


def test_an_excess_of_bytes_goes_however_young() -> None:
    compaction = Compaction(MINUTES)
    assert compaction.due(1, 1000, 400) == 400


def test_no_maximum_means_no_excess() -> None:
    history = HistoryBytes(0)
    for revision in range(100):
        history.add(Event(revision, "/a", b"x" * 1000, None, 0))
    assert (history.excess, history.exceeded.is_set()) == (0, False)


@given(st.integers(1, 3000), st.lists(st.integers(0, 400), max_size=60))
def test_bytes_beyond_the_maximum_are_in_excess_and_no_others(
    max_bytes: int, sizes: list[int]
) -> None:
    history = HistoryBytes(max_bytes)
    events = [Event(n, "/a", b"x" * size, None, 0) for n, size in enumerate(sizes, start=1)]
    for count, event in enumerate(events, start=1):
        history.add(event)
        kept = [len("/a") + sizes[n - 1] for n in range(history.excess + 1, count + 1)]
        part = max(max_bytes // 16, 1)
        assert sum(kept) < max_bytes + part
        # One part at the most goes too early, and every part ends with a whole event.
        gone_last = 2 + sizes[history.excess - 1] if history.excess else 0
        assert not history.excess or sum(kept) + part + gone_last > max_bytes
    assert history.exceeded.is_set() == bool(history.excess)


async def test_the_loop_does_not_wait_for_its_time_when_there_are_too_many_bytes() -> None:
    class Still(SteppedClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    store, history = MemoryStore("test"), HistoryBytes(1600)
    task = asyncio.ensure_future(run(store, MINUTES, Still(), history))
    async with asyncio.timeout(60):
        for number in range(40):
            (revision,) = await store.commit([Write("/a", b"x" * 98)])
            history.add(Event(revision, "/a", b"x" * 98, None, 0))
            await asyncio.sleep(0)
            if number < 15:
                assert await store.compacted() == 0
        while await store.compacted() != history.excess:
            await asyncio.sleep(0)
    assert revision - await store.compacted() == 16
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_loop_compacts_what_is_older_than_the_policy_keeps() -> None:
    store, clock = MemoryStore("test"), SteppedClock()
    task = asyncio.ensure_future(run(store, MINUTES, clock, HistoryBytes(0)))
    written = []
    for _ in range(12):
        written += await store.commit([Write("/a", b"")])
        await clock.sleep(0)
    while await store.compacted() < written[-1]:
        await asyncio.sleep(0)
    with pytest.raises(Compacted):
        await store.range("", revision=written[0])
    assert await store.count("") == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Flaky(MemoryStore):
    """Out of reach the first two times."""

    failures = 2

    async def revision(self) -> int:
        if self.failures:
            self.failures -= 1
            raise Unavailable("away")
        return await super().revision()


async def test_the_loop_survives_a_store_that_is_out_of_reach(
    capsys: pytest.CaptureFixture[str],
) -> None:
    store, clock = Flaky("test"), SteppedClock()
    await store.commit([Write("/a", b"")])
    task = asyncio.ensure_future(run(store, MINUTES, clock, HistoryBytes(0)))
    while await store.compacted() == 0:
        await asyncio.sleep(0)
    task.cancel()
    assert capsys.readouterr().err.count("compaction failed; will retry") == 2
