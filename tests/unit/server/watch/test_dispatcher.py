"""Subscriptions that begin anywhere, while others write: every event once and in order."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.kit.steps import Steps
from skerry.server.change import Change
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Event, Write
from skerry.store.memory import MemoryStore
from tests.kit.sim.loop import run_virtual

ALL = "/core/things/"
ONE = "/core/things/local/a/"
PLACE = "/core/things/local/"
# Most of what happens does not happen where somebody watches.
NAMESPACES = ("local/a", "local/b", "other/a", "other/b", "third/a")


class Reader:
    """A subscriber that remembers the revisions it was offered."""

    view = ""

    def __init__(self, prefix: str, after: int) -> None:
        self.prefix = prefix
        self.after = after
        self.revisions: list[int] = []
        self.ended = False

    def offer(self, change: Change) -> bool:
        # What lies before the beginning may still be on its way out; a watch passes over it too.
        if change.event.revision <= self.after:
            return False
        self.revisions.append(change.event.revision)
        return True

    def flush(self) -> None:
        return None

    def expire(self, oldest: int) -> None:
        self.ended = True


async def pause(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMESPACES)),
        # How far back a subscription begins.
        st.tuples(st.just("subscribe"), st.integers(0, 30)),
        st.tuples(st.just("pause"), st.integers(0, 3)),
    ),
    min_size=5,
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(
    steps,
    st.lists(st.sampled_from(NAMESPACES), max_size=20),
    st.integers(1, 6),
    st.sampled_from([ALL, PLACE, ONE]),
    st.integers(0, 3),
)
def test_every_reader_gets_every_event_after_its_beginning_once(
    actions: list[tuple[str, str | int]],
    before: list[str],
    remembered: int,
    prefix: str,
    turns: int,
) -> None:
    observed: list[int] = []

    def observe(change: Change) -> Steps[None]:
        for _ in range(turns):
            yield
        observed.append(change.event.revision)

    async def story() -> None:
        store = MemoryStore("store")
        (first,) = await store.commit([Write(f"{ONE}first", b"{}")])
        written = [(first, f"{ONE}first")]
        readers: list[Reader] = []

        async def write(namespace: str) -> None:
            key = f"{ALL}{namespace}/k{len(written) % 3}"
            (revision,) = await store.commit([Write(key, b"{}")])
            written.append((revision, key))

        for namespace in before:
            await write(namespace)
        dispatcher = Dispatcher(store, remembered_events=remembered)
        dispatcher.observe(ALL, observe)
        await dispatcher.start()
        started_at = await store.revision()
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(dispatcher.run())
            looking = tasks.create_task(dispatcher.look_back())
            started = []
            for kind, value in actions:
                if kind == "write":
                    started.append(tasks.create_task(write(str(value))))
                elif kind == "subscribe":
                    # Never before the store's first event, never in the future.
                    after = max(1, await store.revision() - int(value))
                    reader = Reader(prefix, after)
                    readers.append(reader)
                    started.append(tasks.create_task(dispatcher.subscribe(reader, after)))
                else:
                    await pause(int(value))
            await asyncio.gather(*started)
            await dispatcher.reached(await store.revision())
            running.cancel()
            looking.cancel()
        for reader in readers:
            wanted = [r for r, key in written if r > reader.after and key.startswith(prefix)]
            assert reader.revisions == sorted(wanted)
        assert observed == sorted(revision for revision, _ in written if revision > started_at)

    run_virtual(story())


class Key(str):
    """A key that counts how often it is compared with what somebody watches."""

    __slots__ = ()
    looked_at = 0

    def startswith(self, *arguments: Any) -> bool:
        Key.looked_at += 1
        return super().startswith(*arguments)


async def test_who_begins_in_the_past_is_not_shown_all_that_happened_elsewhere() -> None:
    store = MemoryStore("store")
    dispatcher = Dispatcher(store, remembered_events=300)
    await dispatcher.start()
    running = asyncio.ensure_future(dispatcher.run())
    written: list[tuple[int, str]] = []
    for number in range(400):
        key = Key(f"{ALL}cluster-{number % 100}/a/b")
        written += [(r, key) for r in await store.commit([Write(key, b"{}")])]
    await dispatcher.reached(written[-1][0])
    begin = written[200][0]
    Key.looked_at = 0
    for prefix in (f"{ALL}cluster-7/", f"{ALL}cluster-7/a/", f"{ALL}cluster-7/a/b"):
        reader = Reader(prefix, begin)
        await dispatcher.subscribe(reader, begin)
        assert reader.revisions == [written[207][0], written[307][0]]
    assert Key.looked_at <= 3 * 3
    everywhere, nowhere = Reader(ALL, begin), Reader(f"{ALL}cluster-x/", begin)
    await dispatcher.subscribe(everywhere, begin)
    await dispatcher.subscribe(nowhere, begin)
    assert everywhere.revisions == [revision for revision, _ in written[201:]]
    assert nowhere.revisions == []
    running.cancel()


class Asked(MemoryStore):
    """A store that counts how often its history is read."""

    read = 0

    async def history(self, prefix: str, *, after: int, limit: int = 1000) -> list[Event]:
        self.read += 1
        return await super().history(prefix, after=after, limit=limit)


async def test_watches_that_missed_nothing_while_the_server_was_away_ask_the_store_nothing() -> (
    None
):
    store = Asked("store")
    written: list[int] = []
    for number in range(40):
        written += await store.commit([Write(f"{ALL}cluster-{number % 4}/a/b", b"{}")])
    dispatcher = Dispatcher(store, remembered_events=5)
    await dispatcher.start()
    begin = written[36]
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        looking = tasks.create_task(dispatcher.look_back())
        await dispatcher.subscribe(Reader(f"{ALL}cluster-x/", begin), begin)
        assert store.read == 1, "somebody has to be the first"
        await looking
        # More than memory holds, elsewhere.
        newest = written[-1]
        for _ in range(10):
            (newest,) = await store.commit([Write(f"{ALL}cluster-9/a/b", b"{}")])
        await dispatcher.reached(newest)
        places = ("cluster-x/", "cluster-y/a/", "cluster-0/a/b", "cluster-1/", "cluster-9/")
        readers = [Reader(f"{ALL}{place}", begin) for place in places]
        for each in readers:
            await dispatcher.subscribe(each, begin)
        running.cancel()
    assert [len(each.revisions) for each in readers] == [0, 0, 0, 1, 10]
    assert store.read == 1 + 2, "two of the places were written to meanwhile"


async def test_nobody_is_shown_a_change_before_all_steps_of_its_observers() -> None:
    store = MemoryStore("store")
    dispatcher = Dispatcher(store)
    reader = Reader(ALL, 0)
    seen: list[tuple[int, list[int]]] = []

    def observe(change: Change) -> Steps[None]:
        for _ in range(5):
            seen.append((dispatcher.position, list(reader.revisions)))
            yield

    dispatcher.observe(ALL, observe)
    await dispatcher.start()
    await dispatcher.subscribe(reader, 0)
    running = asyncio.ensure_future(dispatcher.run())
    (revision,) = await store.commit([Write(f"{ONE}first", b"{}")])
    await dispatcher.reached(revision)
    running.cancel()
    assert seen == [(revision - 1, [])] * 5
    assert reader.revisions == [revision]


async def test_large_changes_of_one_batch_are_shown_in_turns() -> None:
    store = MemoryStore("store")
    dispatcher = Dispatcher(store)
    turns: list[int] = []
    shown: list[int] = []
    dispatcher.observe(ALL, lambda change: shown.append(change.event.revision))
    await dispatcher.start()

    async def other() -> None:
        while len(shown) < 8:
            turns.append(len(shown))
            await asyncio.sleep(0)

    large = b"{%s}" % (b" " * 100_000)
    await store.commit([Write(f"{ONE}{number}", large) for number in range(8)])
    running = asyncio.ensure_future(dispatcher.run())
    await other()
    running.cancel()
    assert max(later - sooner for sooner, later in pairwise([*turns, 8])) <= 2
