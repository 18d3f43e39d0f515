from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.store.base import Compacted, Unavailable, Write
from skerry.store.compaction import Compaction, CompactionPolicy, run
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
    compaction = Compaction(CompactionPolicy(most_revisions=100))
    assert compaction.due(1, 1000) == 900


def test_a_wide_numbering_counts_commits_not_numbers() -> None:
    compaction = Compaction(CompactionPolicy(most_revisions=100), stride=10)
    assert compaction.due(1, 1000) == 0
    assert compaction.due(2, 1500) == 500


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 500)), max_size=40))
def test_what_is_due_was_newest_long_ago_and_never_falls(steps: list[tuple[int, int]]) -> None:
    policy = CompactionPolicy(keep=timedelta(seconds=300), most_revisions=1000)
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


async def test_the_loop_compacts_what_is_older_than_the_policy_keeps() -> None:
    store, clock = MemoryStore("test"), SteppedClock()
    task = asyncio.ensure_future(run(store, MINUTES, clock))
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
    task = asyncio.ensure_future(run(store, MINUTES, clock))
    while await store.compacted() == 0:
        await asyncio.sleep(0)
    task.cancel()
    assert capsys.readouterr().err.count("compaction failed; will retry") == 2
