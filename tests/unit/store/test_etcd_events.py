"""Events out of etcd's changes, replays of the past, and a stream that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.kit.clock import SystemClock
from skerry.kit.invariant import InvariantError
from skerry.store.base import Compacted, Event
from skerry.store.etcd_cache import ReadCache
from skerry.store.etcd_client import EtcdClient
from skerry.store.etcd_events import Live, Replays, events_of
from skerry.store.etcd_layout import FACTOR, Identity, Layout, Numbering, packed, packed_count
from skerry.store.etcd_messages import Change, KeyValue
from skerry.store.feed import Feed
from tests.kit.store.tiny_etcd import TinyEtcd, client_of, tiny_etcd

LAYOUT = Layout("/t/")
PLAIN = Numbering(0)
MARK = bytes(8)
CACHE = ReadCache(LAYOUT, PLAIN, max_operations=8)


def put(key: str, value: bytes, revision: int, position: int) -> Change:
    stored = KeyValue(LAYOUT.key(key), packed(value, position, MARK), revision)
    return Change(False, stored, None)


def last(revision: int) -> Change:
    return Change(False, KeyValue(LAYOUT.last, packed_count(1), revision), None)


def test_the_keys_of_our_own_are_no_events() -> None:
    assert events_of(LAYOUT, PLAIN, [put("/a", b"1", 7, 0), last(7)]) == [
        Event(7 * FACTOR, "/a", b"1", None, 0)
    ]


def test_a_delete_has_the_place_among_the_events_of_its_revision() -> None:
    before = KeyValue(LAYOUT.key("/b"), packed(b"old", 2, MARK), 5)
    delete = Change(True, KeyValue(LAYOUT.key("/b"), b"", 7), before)
    events = events_of(LAYOUT, PLAIN, [put("/a", b"1", 7, 0), delete, put("/c", b"3", 7, 2)])
    assert [event.revision - 7 * FACTOR for event in events] == [0, 1, 2]
    assert events[1] == Event(7 * FACTOR + 1, "/b", None, b"old", 5 * FACTOR + 2)


def test_a_position_that_does_not_fit_is_a_bug_and_not_an_event() -> None:
    # Part of a revision was not seen: what follows would be numbered wrongly.
    with pytest.raises(InvariantError, match="position 1 seen as 0"):
        events_of(LAYOUT, PLAIN, [put("/a", b"1", 7, 1)])


@given(
    sizes=st.lists(st.integers(1, 4), max_size=6),
    offset=st.integers(0, 10**6),
    cut=st.integers(0, 6),
)
def test_events_are_numbered_alike_however_whole_revisions_are_batched(
    sizes: list[int], offset: int, cut: int
) -> None:
    numbering = Numbering(offset)
    revisions = [
        [*(put(f"/{n}", b"x", at, n) for n in range(size)), last(at)]
        for at, size in enumerate(sizes, start=2)
    ]
    whole = events_of(LAYOUT, numbering, chain(*revisions))
    parts = [chain(*revisions[:cut]), chain(*revisions[cut:])]
    assert whole == [event for part in parts for event in events_of(LAYOUT, numbering, part)]
    assert [e.revision for e in whole] == sorted({e.revision for e in whole})


# -- with an etcd ----------------------------------------------------------------------------------


@dataclass
class Bench:
    etcd: TinyEtcd
    client: EtcdClient

    def write(self, **values: bytes | None) -> int:
        """Commit as the store does; return etcd's revision."""
        changes: list[tuple[bytes, bytes | None]] = [
            (LAYOUT.key(f"/{name}"), None if value is None else packed(value, position, MARK))
            for position, (name, value) in enumerate(values.items())
        ]
        self.etcd.write([*changes, (LAYOUT.last, packed_count(len(changes)))])
        return self.etcd.revision

    async def replayed(self, first: int, last: int) -> list[Event]:
        replays = Replays(self.client, LAYOUT, lambda: PLAIN)
        async with aclosing(replays.batches(first, last)) as batches:  # type: ignore[type-var]
            return [event async for batch in batches for event in batch]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with tiny_etcd() as etcd, client_of(etcd.url) as client:
        yield Bench(etcd, client)


def reported(events: Sequence[Event]) -> list[tuple[str, bytes | None]]:
    return [(event.key, event.value) for event in events]


async def test_a_replay_ends_with_the_revision_it_goes_up_to(bench: Bench) -> None:
    first = bench.write(a=b"1", b=b"1")
    middle = bench.write(a=None)
    bench.write(c=b"later")
    assert reported(await bench.replayed(first, middle)) == [
        ("/a", b"1"),
        ("/b", b"1"),
        ("/a", None),
    ]
    assert reported(await bench.replayed(middle, middle)) == [("/a", None)]


async def test_a_replay_of_nothing_asks_nobody(bench: Bench) -> None:
    assert await bench.replayed(5, 4) == []
    assert not bench.etcd.watching.is_set()


async def test_a_replay_from_before_what_is_kept_says_what_is(bench: Bench) -> None:
    first = bench.write(a=b"1")
    second = bench.write(a=b"2")
    bench.etcd.forget(second)
    with pytest.raises(Compacted) as raised:
        await bench.replayed(first, second)
    assert raised.value.requested == first * FACTOR - 1
    assert raised.value.oldest == second * FACTOR + FACTOR - 1


@asynccontextmanager
async def following(bench: Bench, feed: Feed, seen: int = 1) -> AsyncIterator[None]:
    live = Live(bench.client, LAYOUT, lambda: PLAIN, feed, CACHE, SystemClock())
    task = asyncio.create_task(live.run(seen, lambda: "ours"))
    await bench.etcd.watching.wait()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_happens_is_published(bench: Bench) -> None:
    feed = Feed(0)
    async with following(bench, feed):
        waiting = asyncio.create_task(feed.next("/a"))
        await asyncio.sleep(0)
        revision = bench.write(a=b"1")
        await waiting
    assert reported(feed.after(0)) == [("/a", b"1")]
    assert feed.newest == revision * FACTOR


async def test_a_stream_that_breaks_goes_on_where_it_ended(bench: Bench) -> None:
    feed = Feed(0)
    async with following(bench, feed):
        first = asyncio.create_task(feed.next("/a"))
        await asyncio.sleep(0)
        bench.write(a=b"1")
        await first
        second = asyncio.create_task(feed.next("/b"))
        await asyncio.sleep(0)
        bench.etcd.break_watches()
        bench.write(b=b"2")
        await second
    assert reported(feed.after(0)) == [("/a", b"1"), ("/b", b"2")]


async def test_what_was_compacted_unread_makes_the_watchers_turn_to_history(bench: Bench) -> None:
    bench.write(a=b"1")
    newest = bench.write(a=b"2", b=b"2")
    bench.etcd.forget(newest)
    feed = Feed(0)
    waiting = asyncio.create_task(feed.next("/quiet"))
    await asyncio.sleep(0)
    async with following(bench, feed, seen=1):
        assert await waiting == 0
    assert (feed.oldest, feed.newest) == (newest * FACTOR + 1, newest * FACTOR + 1)


@pytest.mark.parametrize(("name", "replaced"), [("another", True), ("ours", False)])
async def test_a_store_that_another_process_replaced_ends_every_watch(
    bench: Bench, name: str, *, replaced: bool
) -> None:
    feed = Feed(0)
    async with following(bench, feed):
        waiting = asyncio.create_task(feed.next("/a"))
        await asyncio.sleep(0)
        bench.etcd.write([(LAYOUT.identity, Identity(name, 0).pack())])
        if not replaced:
            bench.write(a=b"1")
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(outcome, Exception) is replaced
    assert (feed.closed is not None) is replaced
