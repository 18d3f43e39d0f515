from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Selection
from skerry.runtime.index import Key, MutatedObject
from skerry.runtime.informer import enqueue_present
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.world import World

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
SECRETS = GroupVersionResource("", "v1", "secrets")

CALM = Rates(0.0, 0.0, 0.0, 0.0, 0.0)


async def calm() -> World:
    world = World(1, CALM)
    await world.direct.create(NAMESPACES, {"metadata": {"name": "ns"}})
    return world


async def make(world: World, name: str, **fields: Any) -> None:
    await world.direct.create(CONFIG_MAPS, {"metadata": {"name": name, **fields}}, "ns")


class Story:
    """What a handler was notified of, in short."""

    def __init__(self) -> None:
        self.notified: list[str] = []

    def __call__(self, old: Object | None, new: Object | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        sign = "+" if old is None else "-" if new is None else "~"
        self.notified.append(sign + name)


@virtual
async def test_handlers_are_notified_before_the_informer_is_synced() -> None:
    world = await calm()
    await make(world, "a")
    informer = world.factory.informer(CONFIG_MAPS)
    story = Story()
    informer.add_handler(story)
    async with world.running():
        await informer.wait_synced()
        assert story.notified == ["+a"]


@virtual
async def test_a_late_handler_is_notified_of_what_is_there() -> None:
    world = await calm()
    await make(world, "a")
    informer = world.factory.informer(CONFIG_MAPS)
    story = Story()
    async with world.running():
        await informer.wait_synced()
        informer.add_handler(story)
        await world.direct.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, "ns")
        await asyncio.sleep(1)
        informer.remove_handler(story)
        await world.direct.delete(CONFIG_MAPS, "a", "ns")
        await asyncio.sleep(1)
    assert story.notified == ["+a", "~a"]


@virtual
async def test_a_relist_reports_only_the_differences() -> None:
    world = await calm()
    for name in ("same", "changed", "gone", "remade"):
        await make(world, name)
    informer = world.factory.informer(CONFIG_MAPS)
    story = Story()
    informer.add_handler(story)
    async with world.running():
        await informer.wait_synced()
        story.notified.clear()
        # Cut off while things happen, and forgotten meanwhile.
        world.faults.rates = Rates(lost_request=1.0, broken_stream=1.0, max_delay_seconds=0)
        await make(world, "new")
        await asyncio.sleep(1)
        await world.direct.patch(CONFIG_MAPS, "changed", {"data": {"x": "1"}}, "ns")
        for name in ("gone", "remade"):
            await world.direct.delete(CONFIG_MAPS, name, "ns")
        await make(world, "remade")
        world.server.compact()
        await world.settle()
    assert sorted(story.notified) == sorted(["+new", "~changed", "-gone", "-remade", "+remade"])


@virtual
async def test_a_watch_resumes_where_it_was_without_listing_again() -> None:
    world = await calm()
    informer = world.factory.informer(CONFIG_MAPS)
    async with world.running():
        await informer.wait_synced()
        await asyncio.sleep(4000)  # several watches have come to their time's end
        await make(world, "a")
        await asyncio.sleep(1)
    asked = [query for _, path, query in world.server.requests if "configmaps" in path]
    initial = [query for query in asked if "sendInitialEvents" in query]
    assert len(initial) == 1
    assert len(asked) > 5
    assert len(informer.index) == 1


@virtual
async def test_a_server_without_streaming_lists_is_listed_in_pages() -> None:
    world = await calm()
    world.server.minor = "20"
    for number in range(3):
        await make(world, f"cm-{number}")
    informer = world.factory.informer(CONFIG_MAPS)
    async with world.running():
        await informer.wait_synced()
    assert len(informer.index) == 3
    assert any("limit=500" in query for _, _, query in world.server.requests)


@virtual
async def test_informers_are_shared_by_those_who_want_the_same() -> None:
    world = await calm()
    one = world.factory.informer(CONFIG_MAPS)
    assert world.factory.informer(CONFIG_MAPS) is one
    assert world.factory.informer(CONFIG_MAPS, Selection(namespace="ns")) is not one
    assert world.factory.informer(CONFIG_MAPS, packed=True) is not one


@virtual
async def test_an_informer_can_start_late_and_stop_early() -> None:
    world = await calm()
    await make(world, "a")
    async with world.running():
        await asyncio.sleep(1)
        informer = world.factory.informer(CONFIG_MAPS)
        await world.factory.wait_synced()
        world.factory.stop(informer)
        await make(world, "b")
        await asyncio.sleep(60)
        assert len(informer.index) == 1


@virtual
async def test_a_transform_decides_what_is_kept() -> None:
    world = await calm()
    await make(world, "a", labels={"x": "y"})

    def bare(obj: Object) -> Object:
        return {"metadata": {k: v for k, v in obj["metadata"].items() if k != "labels"}}

    informer = world.factory.informer(CONFIG_MAPS, transform=bare)
    async with world.running():
        await informer.wait_synced()
    (kept,) = informer.index.objects()
    assert "labels" not in kept["metadata"]


@virtual
async def test_what_is_not_to_be_kept_is_as_if_it_were_not_there() -> None:
    world = await calm()
    await make(world, "listed", labels={"kept": "no"})
    await make(world, "changing")
    story = Story()
    informer = world.factory.informer(
        CONFIG_MAPS, keeps=lambda obj: (obj["metadata"].get("labels") or {}).get("kept") != "no"
    )
    informer.add_handler(story)
    async with world.running():
        await informer.wait_synced()
        await make(world, "watched", labels={"kept": "no"})
        for kept in ("no", "yes", "no"):
            patch = {"metadata": {"labels": {"kept": kept}}}
            await world.direct.patch(CONFIG_MAPS, "changing", patch, "ns")
        await world.direct.delete(CONFIG_MAPS, "changing", "ns")
        await asyncio.sleep(1)
    assert story.notified == ["+changing", "-changing", "+changing", "-changing"]
    assert not len(informer.index)


@virtual
async def test_changing_a_cached_object_is_found_out() -> None:
    world = await calm()
    await make(world, "a")
    informer = world.factory.informer(CONFIG_MAPS)

    async def changing() -> None:
        async with world.running():
            await informer.wait_synced()
            next(iter(informer.index.objects()))["data"] = {}

    with pytest.raises(MutatedObject):
        await changing()


def test_an_object_enqueues_itself_until_it_is_gone() -> None:
    obj = {"metadata": {"name": "one", "namespace": "ns"}}
    added: list[Key] = []
    handle = enqueue_present(added.append)
    handle(None, obj)
    handle(obj, obj)
    handle(obj, None)
    assert added == [Key("", "ns", "one")] * 2
