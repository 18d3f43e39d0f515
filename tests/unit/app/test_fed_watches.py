"""Watches fed by the dispatcher tell what ordinary ones do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from skerry.api.errors import Gone
from skerry.api.kinds import GroupVersionResource
from skerry.app import fed_watches
from skerry.app.core_controllers import embedded_transport
from skerry.app.fed_watches import FedWatches
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import EVERYTHING, Client, Selection
from skerry.runtime.watching import Notice, OrdinaryWatches, Watched
from tests.kit.server.harness import Server, serving

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
EVENTS = GroupVersionResource("", "v1", "events")
PATH = "/api/v1/namespaces/default/configmaps"
METADATA = Selection(metadata_only=True)


@asynccontextmanager
async def sources() -> AsyncIterator[tuple[Server, FedWatches, OrdinaryWatches, Client]]:
    async with serving() as server:
        await server.create("/api/v1/namespaces", {"metadata": {"name": "default"}})
        transport = embedded_transport(server.api)
        client = Client(transport, clock=LoopClock())
        ordinary = OrdinaryWatches(client, SeededIds(1))
        yield server, FedWatches(server.api, ordinary), ordinary, client
        await transport.close()


async def taken(notices: AsyncIterator[Notice], count: int) -> list[Notice]:
    found: list[Notice] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            notice = await anext(notices)
            if notice.kind != "BOOKMARK":
                found.append(notice)
    return found


def a_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


OWNED = a_map(
    "b",
    labels={"app": "x"},
    annotations={"n": "1"},
    finalizers=["ex.io/f"],
    ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"}],
)


async def act(server: Server) -> None:
    """Create, change, begin to delete and delete."""
    await server.create(PATH, a_map("a"))
    made = await server.create(PATH, OWNED)
    await server.request("DELETE", f"{PATH}/a")
    await server.request("DELETE", f"{PATH}/b")
    made = (await server.request("GET", f"{PATH}/b")).body
    del made["metadata"]["finalizers"]
    await server.request("PUT", f"{PATH}/b", made)


def shown(notice: Notice) -> tuple[str, dict[str, Any]]:
    obj = notice.object
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return notice.kind, {**obj, "metadata": metadata}


@pytest.mark.parametrize("selection", [EVERYTHING, METADATA], ids=["whole", "metadata"])
async def test_every_change_is_reported_as_an_ordinary_watch_does(selection: Selection) -> None:
    async with sources() as (server, fed, ordinary, client):
        # One that is there before is not reported again.
        await server.create(PATH, a_map("before"))
        version = (await client.list(CONFIG_MAPS, selection)).resource_version
        watched = Watched(CONFIG_MAPS, selection, version)
        async with fed.watch(watched) as ours, ordinary.watch(watched) as theirs:
            await act(server)
            wanted = [shown(notice) for notice in await taken(theirs, 5)]
            found = [shown(notice) for notice in await taken(ours, 5)]
        assert found == wanted
        assert [kind for kind, _ in found] == ["ADDED", "ADDED", "DELETED", "MODIFIED", "DELETED"]


async def test_whole_objects_have_their_managed_fields() -> None:
    async with sources() as (server, fed, _, client):
        version = (await client.list(CONFIG_MAPS)).resource_version
        async with fed.watch(Watched(CONFIG_MAPS, EVERYTHING, version)) as notices:
            await server.create(PATH, a_map("a"))
            (notice,) = await taken(notices, 1)
        assert notice.object == (await server.request("GET", f"{PATH}/a")).body


async def test_of_parts_nothing_else_is_read() -> None:
    async with sources() as (server, fed, _, client):
        version = (await client.list(CONFIG_MAPS)).resource_version
        some = Selection(parts=("data.k", "data.absent", "binaryData.x"))
        async with fed.watch(Watched(CONFIG_MAPS, some, version)) as notices:
            await server.create(
                PATH, a_map("a", labels={"x": "y"}) | {"data": {"k": "v", "l": "w"}}
            )
            (notice,) = await taken(notices, 1)
        made = (await server.request("GET", f"{PATH}/a")).body
        del made["metadata"]["managedFields"]
        assert notice.object == made | {"data": {"k": "v"}}


async def test_what_happened_since_the_list_is_reported_once() -> None:
    async with sources() as (server, fed, _, client):
        version = (await client.list(CONFIG_MAPS)).resource_version
        await server.create(PATH, a_map("a"))
        async with fed.watch(Watched(CONFIG_MAPS, METADATA, version)) as notices:
            await server.create(PATH, a_map("b"))
            names = [notice.object["metadata"]["name"] for notice in await taken(notices, 2)]
            assert names == ["a", "b"]


async def test_who_asks_for_a_part_of_a_type_is_answered_by_an_ordinary_watch() -> None:
    async with sources() as (server, fed, _, client):
        version = (await client.list(CONFIG_MAPS)).resource_version
        some = Selection(labels="app=x")
        async with fed.watch(Watched(CONFIG_MAPS, some, version)) as notices:
            await server.create(PATH, a_map("a"))
            await server.create(PATH, OWNED)
            (notice,) = await taken(notices, 1)
            assert notice.object["metadata"]["name"] == "b"


async def test_a_namespace_is_watched_alone() -> None:
    async with sources() as (server, fed, _, client):
        await server.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
        version = (await client.list(CONFIG_MAPS)).resource_version
        watched = Watched(CONFIG_MAPS, Selection(namespace="other"), version)
        async with fed.watch(watched) as notices:
            await server.create(PATH, a_map("a"))
            await server.create("/api/v1/namespaces/other/configmaps", a_map("b"))
            (notice,) = await taken(notices, 1)
            assert notice.object["metadata"]["name"] == "b"


async def test_a_watch_of_a_past_that_is_gone_says_so() -> None:
    async with sources() as (server, fed, _, client):
        version = (await client.list(CONFIG_MAPS)).resource_version
        async with fed.watch(Watched(CONFIG_MAPS, METADATA, version)) as notices:
            for subscribers in server.api.dispatcher._subscribers.values():
                for subscriber in subscribers:
                    subscriber.expire(server.api.dispatcher.position)
            with pytest.raises(Gone):
                await taken(notices, 1)


async def test_who_does_not_read_loses_the_watch_and_resumes_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fed_watches, "MAX_WAITING_BYTES", 1000)
    async with sources() as (server, fed, _, client):
        version = (await client.list(CONFIG_MAPS)).resource_version
        async with fed.watch(Watched(CONFIG_MAPS, METADATA, version)) as notices:
            for number in range(6):
                await server.create(PATH, a_map(f"m{number}"))
            await server.api.dispatcher.reached(await server.api.store.revision())
            assert [notice async for notice in notices] == []
        monkeypatch.undo()
        async with fed.watch(Watched(CONFIG_MAPS, METADATA, version)) as notices:
            assert len(await taken(notices, 6)) == 6


async def test_nobody_is_subscribed_after_a_watch() -> None:
    async with sources() as (server, fed, _, client):
        version = (await client.list(NAMESPACES)).resource_version
        async with fed.watch(Watched(NAMESPACES, METADATA, version)):
            assert server.api.dispatcher._subscribers
        assert not server.api.dispatcher._subscribers
