"""Subscriptions that begin anywhere, while others write: every event once and in order."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from skerry.server.change import Change
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.sim.loop import run_virtual

ALL = "/core/things/"
ONE = "/core/things/local/a/"
NAMESPACES = ("a", "b")


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
@given(steps, st.integers(1, 6), st.sampled_from([ALL, ONE]))
def test_every_reader_gets_every_event_after_its_beginning_once(
    actions: list[tuple[str, str | int]], remembered: int, prefix: str
) -> None:
    async def story() -> None:
        store = MemoryStore("store")
        (first,) = await store.commit([Write(f"{ONE}first", b"{}")])
        dispatcher = Dispatcher(store, remembered_events=remembered)
        await dispatcher.start()
        written = [(first, f"{ONE}first")]
        readers: list[Reader] = []

        async def write(namespace: str) -> None:
            key = f"{ALL}local/{namespace}/k{len(written) % 3}"
            (revision,) = await store.commit([Write(key, b"{}")])
            written.append((revision, key))

        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(dispatcher.run())
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
                    for _ in range(int(value)):
                        await asyncio.sleep(0)
            await asyncio.gather(*started)
            await dispatcher.reached(await store.revision())
            running.cancel()
        for reader in readers:
            wanted = [r for r, key in written if r > reader.after and key.startswith(prefix)]
            assert reader.revisions == sorted(wanted)

    run_virtual(story())
