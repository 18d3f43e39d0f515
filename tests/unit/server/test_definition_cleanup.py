"""A type goes when its last object has gone; whatever holds one of them holds the type."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.keys import ObjectKey
from skerry.api.objects import Object
from skerry.server.admission.definitions import CLEANUP
from skerry.server.catalogue import CRD_GROUP, CRD_RESOURCE
from skerry.server.codec import decode, encode
from skerry.server.definition_cleanup import DefinitionCleanup
from skerry.server.watch.dispatcher import Dispatcher
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.clock import HandClock
from tests.kit.server.objects import definition, thing

TYPE = ObjectKey(CRD_GROUP, CRD_RESOURCE, "root", "", "things.example.org").path()


def key(name: str, cluster: str = "root") -> str:
    return ObjectKey("example.org", "things", cluster, "default", name).path()


def held(obj: Object, *finalizers: str, **metadata: Any) -> bytes:
    obj["metadata"].update(finalizers=list(finalizers), **metadata)
    return encode(obj)


def terminating(*more: str) -> bytes:
    return held(definition(), CLEANUP, *more, deletionTimestamp="2030-01-01T00:00:00Z")


class Place:
    """A store that a clean-up follows."""

    def __init__(self, store: MemoryStore, dispatcher: Dispatcher) -> None:
        self.store, self._dispatcher = store, dispatcher

    async def write(self, *writes: Write) -> None:
        await self.store.commit(writes)

    async def settled(self) -> dict[str, Object]:
        """Return everything once nobody writes any more."""
        revision = -1
        while revision != (revision := await self.store.revision()):
            await self._dispatcher.reached(revision)
            for _ in range(50):
                await asyncio.sleep(0)
        entries = (await self.store.range("/")).entries
        return {entry.key: decode(entry.value, entry.revision) for entry in entries}


@asynccontextmanager
async def cleaning(*writes: Write) -> AsyncIterator[Place]:
    store = MemoryStore("test")
    await store.commit([Write("/core/firsts/root/default/first", encode(thing("first"))), *writes])
    dispatcher = Dispatcher(store)
    await dispatcher.start()
    cleanup = DefinitionCleanup(store, dispatcher, HandClock())
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(dispatcher.run()), tasks.create_task(cleanup.run())]
        place = Place(store, dispatcher)
        await place.write(Write("/core/firsts/root/default/first", None))
        yield place
        for task in running:
            task.cancel()


async def test_objects_go_first_and_the_type_with_the_last_of_its_own_cluster() -> None:
    things = [Write(key(name), encode(thing(name))) for name in ("a", "b")]
    elsewhere = Write(key("a", "away"), encode(thing("a")))
    async with cleaning(*things, elsewhere, Write(TYPE, terminating())) as place:
        assert set(await place.settled()) == {key("a", "away")}


async def test_a_type_that_is_not_being_deleted_keeps_everything() -> None:
    kept = Write(TYPE, held(definition(), CLEANUP))
    async with cleaning(Write(key("a"), encode(thing("a"))), kept) as place:
        assert set(await place.settled()) == {key("a"), TYPE}
        await place.write(Write(TYPE, terminating()))
        assert await place.settled() == {}


async def test_an_object_with_a_finalizer_is_marked_and_holds_the_type_until_it_goes() -> None:
    async with cleaning(
        Write(key("a"), held(thing("a"), "x/y")), Write(TYPE, terminating())
    ) as place:
        found = await place.settled()
        assert set(found) == {key("a"), TYPE}
        metadata = found[key("a")]["metadata"]
        assert metadata["deletionTimestamp"] == "2030-01-01T00:00:00Z"
        assert metadata["deletionGracePeriodSeconds"] == 0
        await place.write(Write(key("a"), None))
        assert await place.settled() == {}


async def test_other_finalizers_of_a_type_are_left_to_their_owners() -> None:
    async with cleaning(Write(TYPE, terminating("x/y"))) as place:
        found = await place.settled()
        assert found[TYPE]["metadata"]["finalizers"] == ["x/y"]
