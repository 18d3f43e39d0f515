"""What a cluster begins with: complete objects, written once, and never over somebody's changes."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.api.objects import Object
from skerry.kit.ids import SeededIds
from skerry.logic.machinery.workspaces.stamp import ClusterStamp
from skerry.server.catalogue import TypeSet, builtin_types
from skerry.server.codec import decode
from skerry.server.seeding import NAMESPACES, Seeder, plain_objects
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.clock import HandClock

TYPES = TypeSet(builtin_types())


class Slow(MemoryStore):
    """Another server writes first, once."""

    first: Sequence[Write] = ()

    async def commit(self, writes: Sequence[Write]) -> list[int]:
        if self.first:
            first, self.first = self.first, ()
            await super().commit(first)
        return await super().commit(writes)


def seeder(store: MemoryStore, seed: int = 1) -> Seeder:
    return Seeder(store, HandClock(), SeededIds(seed), ClusterStamp())


async def stored(store: MemoryStore) -> dict[str, Object]:
    return {e.key: decode(e.value, e.revision) for e in (await store.range("/")).entries}


def namespaces() -> list[Object]:
    return plain_objects(priority_classes=False)


async def test_what_is_missing_is_written_complete_and_in_one_transaction() -> None:
    store = MemoryStore("test")
    await seeder(store).ensure(TYPES, "root", namespaces())
    found = await stored(store)
    assert sorted(key.rsplit("/", 1)[1] for key in found) == sorted(NAMESPACES)
    assert await store.revision() - len(NAMESPACES) <= 1
    for obj in found.values():
        assert obj["metadata"]["uid"]
        assert obj["metadata"]["creationTimestamp"] == "2030-01-01T00:00:00Z"
        assert obj["metadata"]["annotations"]["kcp.io/cluster"] == "root"
        assert obj["spec"] == {"finalizers": ["kubernetes"]}
        assert obj["status"] == {"phase": "Active"}


async def test_what_is_there_is_left_as_it_is() -> None:
    store = MemoryStore("test")
    await seeder(store).ensure(TYPES, "root", namespaces()[:1])
    before = await stored(store)
    await seeder(store, 2).ensure(TYPES, "root", namespaces())
    after = await stored(store)
    assert len(after) == len(NAMESPACES)
    assert before.items() <= after.items()
    revision = await store.revision()
    await seeder(store, 3).ensure(TYPES, "root", namespaces())
    assert await store.revision() == revision


async def test_of_two_servers_that_begin_at_once_one_writes_and_both_are_content() -> None:
    store = Slow("test")
    other = seeder(store, 2)
    store.first = [other.born(TYPES, "root", obj) for obj in namespaces()[:2]]
    await seeder(store, 1).ensure(TYPES, "root", namespaces())
    assert len(await stored(store)) == len(NAMESPACES)


async def test_a_status_that_is_given_survives_the_defaults() -> None:
    obj: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "n", "uid": "given"},
        "status": {"phase": "Terminating"},
    }
    write = seeder(MemoryStore("test")).born(TYPES, "root", obj, "2020-01-01T00:00:00Z")
    assert write.value is not None
    made = decode(write.value, 1)
    assert (made["status"], made["metadata"]["uid"]) == ({"phase": "Terminating"}, "given")
    assert made["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"
    assert write.expected == 0
