"""Lists are shown and searched in turns, so that others are served in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from skerry.server.offload.offload import Offload, OffloadSettings
from tests.kit.server.harness import Server, serving
from tests.kit.server.loopback import Loopback

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def filled(server: Server, count: int, size: int = 1) -> None:
    for index in range(count):
        data = {f"k{i}": "v" for i in range(size)}
        labels = {"number": str(index % 10)}
        body = {"metadata": {"name": f"m{index:03}", "labels": labels}, "data": data}
        assert (await server.create(MAPS, body)).status == 201


async def turns_while(server: Server, path: str, **headers: str) -> tuple[Any, int]:
    """Return an answer, and how often others had their turn while it was made."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(other())
        reply = await server.get(path, headers=headers)
        running.cancel()
    assert reply.status == 200, reply.body
    return reply.body, turns


def listed(body: Any) -> list[Any]:
    found: list[Any] = body.get("items", body.get("rows"))
    return found


@pytest.mark.parametrize("accept", ["application/yaml", TABLE])
async def test_what_is_decoded_is_shown_in_turns(accept: str) -> None:
    async with serving() as server:
        await filled(server, 40, 300)
        few, alone = await turns_while(server, f"{MAPS}?limit=1", accept=accept)
        many, turns = await turns_while(server, MAPS, accept=accept)
        assert len(listed(many)) == 40
        assert listed(few)[0].keys() == listed(many)[0].keys()
        assert turns >= alone + 2


MANY_TERMS = "%2C".join(f"!a{i}" for i in range(100))


@pytest.mark.parametrize(
    "selector",
    [
        "labelSelector=number%3D3",
        "fieldSelector=metadata.name%3Dm003",
        f"labelSelector={MANY_TERMS}",
    ],
)
async def test_what_is_searched_is_found_in_turns(selector: str) -> None:
    async with serving() as server:
        await filled(server, 60)
        body, _ = await turns_while(server, f"{MAPS}?{selector}")
        assert 0 < len(listed(body)) <= 61


@pytest.mark.parametrize("accept", ["application/json", "application/yaml", TABLE])
@pytest.mark.parametrize("query", ["", "?pretty=true", "?limit=2", "?labelSelector=number%3Dnone"])
async def test_a_list_holds_the_same_however_it_is_shown(accept: str, query: str) -> None:
    async with serving() as server:
        await filled(server, 3)
        reply = await server.get(MAPS + query, headers={"accept": accept})
        plain = await server.get(MAPS + query.replace("?pretty=true", ""))
        assert len(listed(reply.body)) == len(plain.body["items"])
        assert reply.body["metadata"] == plain.body["metadata"]
        if accept != TABLE:
            assert listed(reply.body) == plain.body["items"]


async def test_items_that_take_long_are_shown_by_a_worker() -> None:
    loopback = Loopback()
    async with serving(offload=Offload(loopback, OffloadSettings())) as server:
        await filled(server, 1, 2)
        await filled_large(server)
        loopback.done.clear()
        for accept, shown in (("application/yaml", 1), (TABLE, 1), ("application/json", 0)):
            reply = await server.get(MAPS, headers={"accept": accept})
            assert len(listed(reply.body)) == 2
            assert loopback.done.count("Render") == shown
            loopback.done.clear()


async def filled_large(server: Server) -> None:
    body = {"metadata": {"name": "large"}, "data": {f"k{i}": "v" for i in range(2000)}}
    assert (await server.create(MAPS, body)).status == 201


@pytest.mark.parametrize("selector", ["labelSelector", "fieldSelector"])
async def test_selectors_of_too_many_terms_are_refused(selector: str) -> None:
    terms = "%2C".join(f"metadata.name!%3Da{i}" for i in range(101))
    async with serving() as server:
        reply = await server.get(f"{MAPS}?{selector}={terms}")
        assert reply.status == 400
        assert "more than 100" in reply.body["message"]
