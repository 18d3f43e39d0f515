"""Watches: what they show arrives, and a stopped one is deaf at once."""

from __future__ import annotations

import asyncio

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.placement_translator.feeds import Feed, Feeds, WatchSet
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.translation.sources import Record, Records, WatchKey, record_of, wide
from skerry.logic.fleet.translation.workspaces import Workspaces
from skerry.runtime.client import Client
from skerry.runtime.metrics import RuntimeMetrics
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin

MAPS = wide("", "v1", "configmaps")


class Handlers:
    """Notes what it is asked to do, and keeps the records as the real ones do."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def watch_started(self, key: WatchKey) -> None:
        self.events.append("started")

    def watch_synced(self, key: WatchKey) -> None:
        self.events.append("synced")

    def put(self, records: Records, record: Record) -> None:
        records.put(record)
        self.events.append(f"put {record.name}")

    def removed(self, records: Records, last: Record) -> None:
        records.remove(last)
        self.events.append(f"removed {last.name}")


def _record(name: str) -> Record:
    metadata = {"name": name, "annotations": {"kcp.io/cluster": "one"}, "resourceVersion": "1"}
    return record_of(MAPS, {"metadata": metadata})


def _feed() -> tuple[Feed, WatchSet, Handlers]:
    watches, handlers = WatchSet(), Handlers()
    watches.follow(MAPS)
    return Feed(MAPS, Records(MAPS), watches, handlers), watches, handlers


async def test_a_list_puts_what_is_there_removes_what_is_not_and_is_read_then() -> None:
    feed, _, handlers = _feed()
    await feed.replace([_record("a"), _record("b")])
    assert handlers.events == ["put a", "put b", "synced"]
    handlers.events.clear()
    await feed.replace([_record("b")])
    assert handlers.events == ["put b", "removed a", "synced"]


async def test_changes_arrive_one_by_one() -> None:
    feed, _, handlers = _feed()
    feed.apply("ADDED", _record("a"))
    feed.apply("DELETED", _record("a"))
    assert handlers.events == ["put a", "removed a"]


async def test_a_stopped_watch_is_deaf_even_when_its_kind_is_followed_again() -> None:
    feed, watches, handlers = _feed()
    watches.stop(MAPS)
    feed.apply("ADDED", _record("a"))
    watches.follow(MAPS)
    await feed.replace([_record("a")])
    assert handlers.events == []


async def test_the_set_says_when_it_is_different_and_only_then() -> None:
    _, watches, _ = _feed()
    assert watches.changed.is_set()
    watches.changed.clear()
    watches.follow(MAPS)
    assert not watches.changed.is_set()
    watches.stop(MAPS)
    assert watches.changed.is_set()
    watches.changed.clear()
    watches.stop(MAPS)
    assert not watches.changed.is_set()


@virtual
async def test_each_watch_of_the_set_is_followed_while_it_is_in_the_set() -> None:
    twin = Twin(clock=LoopClock())
    client = Client(twin, clock=LoopClock())
    namespaces = GroupVersionResource("", "v1", "namespaces")
    await client.create(namespaces, {"metadata": {"name": "n"}})

    async def put(name: str) -> None:
        page: Object = {"metadata": {"name": name, "namespace": "n"}, "data": {}}
        await client.create(MAPS.gvr, page)

    await put("a")
    watches, handlers, workspaces = WatchSet(), Handlers(), Workspaces(dict)
    key = MAPS._replace(cluster="")
    watches.follow(key)
    feeds = Feeds(client, SeededIds(0), RuntimeMetrics(), watches, workspaces, handlers)
    task = asyncio.get_running_loop().create_task(feeds.run())
    await asyncio.sleep(1)
    assert handlers.events == ["started", "put a", "synced"]
    await put("b")
    await asyncio.sleep(1)
    assert handlers.events[3:] == ["put b"]
    watches.stop(key)
    await asyncio.sleep(1)
    await put("c")
    await asyncio.sleep(1)
    assert handlers.events[4:] == []
    watches.follow(key)
    await asyncio.sleep(1)
    assert "put c" in handlers.events
    assert handlers.events[-1] == "synced"
    task.cancel()
    await asyncio.wait([task])
