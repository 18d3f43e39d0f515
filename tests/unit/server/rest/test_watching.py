"""The watch verb: where a stream begins, what it needs to be asked for, and how long it lasts."""

from __future__ import annotations

import asyncio

import pytest

from skerry.api.keys import PLAIN, ObjectKey
from skerry.kit.ids import SeededIds
from skerry.server.codec import encode
from skerry.server.http.message import Response, Stream
from skerry.store.base import Write
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import MemorySender, Reply, Server, serving
from tests.kit.server.objects import CORE, config_map
from tests.kit.sim.loop import virtual

MAPS = f"{CORE}/configmaps"


async def events(server: Server, query: str) -> list[tuple[str, str]]:
    """Return what a watch tells within its second."""
    answer = await server.answer("GET", f"{MAPS}?watch=1&timeoutSeconds=1&{query}")
    assert isinstance(answer, Stream), answer
    sender = MemorySender()
    await answer.run(sender)
    lines = [sender.lines.get_nowait() for _ in range(sender.lines.qsize())]
    return [(line["type"], line["object"]["metadata"].get("name", "")) for line in lines]


async def refusal(server: Server, query: str) -> Reply:
    return await server.request("GET", f"{MAPS}?watch=1&{query}")


@virtual
async def test_a_stream_begins_where_it_is_asked_to() -> None:
    async with serving() as server:
        first = (await server.create(MAPS, config_map("a"))).body["metadata"]["resourceVersion"]
        await server.create(MAPS, config_map("b"))
        both = [("ADDED", "a"), ("ADDED", "b")]
        assert await events(server, "") == both
        assert await events(server, "resourceVersion=0") == both
        assert await events(server, f"resourceVersion={first}") == [("ADDED", "b")]
        only_new = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        assert await events(server, only_new) == []
        asked = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        assert (await events(server, asked))[:3] == [*both, ("BOOKMARK", "")]


@virtual
async def test_who_asks_for_the_state_must_take_the_bookmark_that_ends_it() -> None:
    async with serving() as server:
        answer = await refusal(server, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        assert (answer.status, answer.body["reason"]) == (422, "Invalid")
        assert "sendInitialEvents" in answer.body["message"]


@virtual
async def test_a_stream_of_one_name_is_about_that_object_alone() -> None:
    async with serving() as server:
        for name in ("a", "ab", "b"):
            await server.create(MAPS, config_map(name))
        assert await events(server, "fieldSelector=metadata.name%3Da") == [("ADDED", "a")]
        everywhere = await server.answer(
            "GET",
            "/api/v1/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da",
        )
        assert isinstance(everywhere, Stream)
        sender = MemorySender()
        await everywhere.run(sender)
        assert sender.lines.get_nowait()["object"]["metadata"]["name"] == "a"


@virtual
async def test_a_revision_that_is_not_there_yet_is_refused() -> None:
    async with serving() as server:
        answer = await refusal(
            server,
            "resourceVersion=99999&sendInitialEvents=true&allowWatchBookmarks=true"
            "&resourceVersionMatch=NotOlderThan",
        )
        assert answer.status == 504


@pytest.mark.parametrize("query", ["resourceVersion=soon", "resourceVersion=-1"])
def test_a_revision_that_is_no_number_is_refused(query: str) -> None:
    @virtual
    async def tried() -> None:
        async with serving() as server:
            answer = await server.answer("GET", f"{MAPS}?watch=1&{query}")
            assert isinstance(answer, Response)
            assert answer.status in (400, 422)

    tried()


def test_streams_end_after_half_an_hour_to_an_hour_and_not_all_at_once() -> None:
    lengths: list[float] = []

    @virtual
    async def tried() -> None:
        async with serving(ids=SeededIds(len(lengths))) as server:
            answer = await server.answer("GET", f"{MAPS}?watch=1")
            assert isinstance(answer, Stream)
            began = asyncio.get_running_loop().time()
            await answer.run(MemorySender())
            lengths.append(asyncio.get_running_loop().time() - began)

    for _ in range(3):
        tried()
    assert all(1800 <= length <= 3600 for length in lengths)
    assert len(set(lengths)) == 3


@virtual
async def test_a_large_state_is_sent_whole() -> None:
    store, names = MemoryStore("test"), [f"m{number:04}" for number in range(1010)]
    await store.commit(
        [
            Write(
                ObjectKey("", "configmaps", PLAIN, "default", name).path(), encode(config_map(name))
            )
            for name in names
        ]
    )
    async with serving(store) as server:
        assert await events(server, "") == [("ADDED", name) for name in names]
