"""A dispatcher whose past was compacted away starts over, and nobody is left with a wrong view."""

from __future__ import annotations

import asyncio

from skerry.api.keys import ObjectKey, type_prefix
from skerry.server.change import Change
from skerry.server.codec import encode
from skerry.server.observed import ObservedObjects
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.hub import config_map


def written(name: str) -> Write:
    return Write(_key(name), encode(config_map(name)))


def _key(name: str) -> str:
    return ObjectKey("", "configmaps", "c", "default", name).path()


class Watching:
    """A subscriber that remembers its events."""

    view = ""

    def __init__(self) -> None:
        self.prefix = type_prefix("", "configmaps")
        self.seen: list[str] = []
        self.expired = asyncio.Event()

    def offer(self, change: Change) -> bool:
        self.seen.append(change.event.key.rsplit("/", 1)[1])
        return False

    def flush(self) -> None:
        return None

    def expire(self, oldest: int) -> None:
        self.expired.set()


async def test_observers_learn_what_came_and_what_went_while_nobody_looked() -> None:
    store = MemoryStore("test")
    await store.commit([written("stays"), written("goes")])
    dispatcher = Dispatcher(store)
    await dispatcher.start()
    observed = ObservedObjects("", "configmaps")
    await observed.follow(store, dispatcher)
    awaited: list[str] = []
    dispatcher.observe_once(
        type_prefix("", "configmaps"), _key("goes"), lambda: awaited.append("x")
    )
    watching = Watching()
    await dispatcher.subscribe(watching, dispatcher.position)
    await store.commit([Write(_key("goes"), None), written("comes")])
    await store.compact(await store.revision())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        await dispatcher.reached(await store.revision())
        assert set(observed.within("c", "default")) == {"stays", "comes"}
        assert watching.expired.is_set()
        assert awaited == ["x"]
        await store.commit([written("later")])
        await dispatcher.reached(await store.revision())
        assert set(observed.within("c", "default")) == {"stays", "comes", "later"}
        assert watching.seen == ["later"]
        running.cancel()


async def test_watches_through_a_view_end_when_the_view_changes() -> None:
    dispatcher = Dispatcher(MemoryStore("test"))
    await dispatcher.start()
    through, plain = Watching(), Watching()
    through.view = "apiexport/c/e"
    for each in (through, plain):
        await dispatcher.subscribe(each, 0)
    dispatcher.expire("apiexport/c/e")
    assert (through.expired.is_set(), plain.expired.is_set()) == (True, False)
