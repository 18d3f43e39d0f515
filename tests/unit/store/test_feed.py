from __future__ import annotations

import asyncio

import pytest

from skerry.store.base import Event, Unavailable
from skerry.store.feed import BATCH, Feed, Watch


def event(revision: int, key: str = "/k", size: int = 0) -> Event:
    return Event(revision, key, b"v" * size, None, 0)


class Log:
    """Everything that ever happened, and how often it was asked for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.reads = 0

    async def replay(self, prefix: str, position: int) -> tuple[list[Event], int]:
        self.reads += 1
        found = [e for e in self.events if e.revision > position and e.key.startswith(prefix)]
        newest = self.events[-1].revision
        return found[:BATCH], found[BATCH - 1].revision if len(found) >= BATCH else newest


async def admit(after: int) -> None:
    """Every revision is good here."""


def watch(feed: Feed, log: Log, prefix: str = "", after: int = 1) -> Watch:
    return Watch(feed, prefix, after, admit=admit, replay=log.replay)


def publish(feed: Feed, log: Log, *events: Event) -> None:
    log.events.extend(events)
    feed.publish(events)


def test_the_ring_never_holds_more_than_its_bounds() -> None:
    feed = Feed(1, max_events=100, max_bytes=10_000)
    for revision in range(2, 1000):
        feed.publish([event(revision)])
        assert len(feed.after(feed.oldest)) <= 100
    assert feed.after(feed.oldest)[0].revision == feed.oldest + 1
    feed.publish([event(1000, size=9_000), event(1001, size=9_000)])
    assert [e.revision for e in feed.after(feed.oldest)] in ([1001], [])
    assert feed.newest == 1001


async def test_a_watcher_that_keeps_up_never_reads_history() -> None:
    feed, log = Feed(1), Log()
    watcher = watch(feed, log)
    for revision in range(2, 50):
        publish(feed, log, event(revision))
        assert [e.revision for e in await anext(watcher)] == [revision]
    assert log.reads == 0


async def test_a_watcher_slower_than_the_ring_reads_history_and_misses_nothing() -> None:
    feed, log = Feed(1, max_events=50), Log()
    watcher = watch(feed, log)
    for revision in range(2, 5000):
        publish(feed, log, event(revision))
    seen: list[int] = []
    while len(seen) < 4998:
        seen += [e.revision for e in await anext(watcher)]
    assert seen == list(range(2, 5000))
    assert log.reads > 0


async def test_a_quiet_prefix_does_not_fall_out_of_the_ring() -> None:
    feed, log = Feed(1, max_events=50), Log()
    waiting = asyncio.ensure_future(anext(watch(feed, log, "/quiet/")))
    await asyncio.sleep(0)
    for revision in range(2, 500):
        publish(feed, log, event(revision, "/loud/"))
    await asyncio.sleep(0)
    assert not waiting.done()
    publish(feed, log, event(500, "/quiet/a"))
    assert [e.revision for e in await waiting] == [500]
    assert log.reads == 0


async def test_events_below_the_position_are_not_repeated() -> None:
    # A reader can learn of a revision before the feed does, and watch from there.
    feed, log = Feed(1), Log()
    waiting = asyncio.ensure_future(anext(watch(feed, log, after=3)))
    await asyncio.sleep(0)
    publish(feed, log, event(2), event(3))
    await asyncio.sleep(0)
    assert not waiting.done()
    publish(feed, log, event(4))
    assert [e.revision for e in await waiting] == [4]


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    feed, log = Feed(1), Log()
    waiting = asyncio.ensure_future(anext(watch(feed, log)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not feed._waiting


async def test_closing_ends_waiting_and_later_watchers() -> None:
    feed, log = Feed(1), Log()
    watcher = watch(feed, log)
    waiting = asyncio.ensure_future(anext(watcher))
    await asyncio.sleep(0)
    feed.close(Unavailable("the store is closed"))
    for attempt in (waiting, anext(watcher), anext(watch(feed, log))):
        with pytest.raises(Unavailable, match="closed"):
            await attempt


async def test_a_restarted_ring_sends_everybody_to_history() -> None:
    feed, log = Feed(1), Log()
    watcher = watch(feed, log)
    publish(feed, log, event(2), event(3))
    feed.restart(3)
    assert [e.revision for e in await anext(watcher)] == [2, 3]
    assert log.reads == 1


async def test_a_watcher_that_waits_while_the_ring_restarts_misses_nothing() -> None:
    feed, log = Feed(1), Log()
    waiting = asyncio.ensure_future(anext(watch(feed, log)))
    await asyncio.sleep(0)
    log.events += [event(2), event(3)]
    feed.restart(3)
    async with asyncio.timeout(60):
        assert [e.revision for e in await waiting] == [2, 3]
