"""Long answers are made in turns: others are served in between, however much there is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from skerry.server.access import Attributes, Decision
from skerry.server.http.message import Sender, Stream
from skerry.server.open_streams import OpenStreams
from skerry.server.user import User
from skerry.store.base import Write
from tests.kit.server.harness import MemorySender, Server, serving
from tests.kit.server.objects import CORE, config_map

MAPS = f"{CORE}/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
YAML = {"accept": "application/yaml"}


async def filled(server: Server, count: int, size: int = 1000) -> None:
    """Store *count* ConfigMaps of *size* bytes."""
    made = config_map("one") | {"data": {"k": "x" * size}}
    assert (await server.create(MAPS, made)).status == 201
    store = server.api.store
    found = (await store.range("/")).entries
    (entry,) = [e for e in found if "configmaps" in e.key and e.key.endswith("/one")]
    writes = [
        Write(f"{entry.key}-{n}", entry.value.replace(b'"one"', b'"one-%d"' % n), expected=0)
        for n in range(count)
    ]
    await store.commit(writes)


async def turns_during(action: Callable[[], Awaitable[Any]]) -> int:
    """Return how many turns somebody else has while *action* is done."""
    turns = 0
    doing = asyncio.ensure_future(action())
    while not doing.done():
        turns += 1
        await asyncio.sleep(0)
    doing.result()
    return turns


class Counting(MemorySender):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, chunk: bytes) -> None:
        self.written += chunk.count(b'"ADDED"')


async def streamed(server: Server, method: str, path: str, body: Any, headers: Any) -> int:
    answer = await server.answer(method, path, body, headers=headers)
    assert isinstance(answer, Stream), answer
    sender = Counting()
    running = asyncio.ensure_future(answer.run(sender))
    while sender.written < 301:
        await asyncio.sleep(0)
    running.cancel()
    return sender.written


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("GET", f"{MAPS}?watch=1&resourceVersion=0", None, {}),
        ("GET", f"{MAPS}?watch=1&resourceVersion=0&labelSelector=a!%3Db", None, {}),
        ("GET", f"{MAPS}?watch=1&resourceVersion=0", None, TABLE),
        (
            "POST",
            "/extensions/v1/watch",
            {"watches": [{"id": "a", "version": "v1", "resource": "configmaps"}]},
            {},
        ),
    ],
    ids=["watch", "selecting", "table", "shared stream"],
)
async def test_the_state_a_watch_begins_with_is_sent_in_turns(
    method: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    async with serving() as server:
        await filled(server, 300, 4000)
        turns = await turns_during(lambda: streamed(server, method, path, body, headers))
    assert turns >= (3 if headers or body else 2)


@pytest.mark.parametrize("headers", [TABLE, YAML], ids=["table", "yaml"])
async def test_lists_that_must_be_decoded_are_made_in_turns(headers: dict[str, str]) -> None:
    async with serving() as server:
        await filled(server, 300)
        turns = await turns_during(lambda: server.answer("GET", MAPS, headers=headers))
    assert turns >= (20 if headers is YAML else 4)


async def test_a_burst_of_changes_is_offered_to_many_watchers_in_turns() -> None:
    async with serving() as server:
        senders = [Counting() for _ in range(200)]
        answers = [await server.answer("GET", f"{MAPS}?watch=1&resourceVersion=1") for _ in senders]
        running = [
            asyncio.ensure_future(answer.run(sender))  # type: ignore[union-attr]
            for answer, sender in zip(answers, senders, strict=True)
        ]
        await asyncio.sleep(0.01)

        async def seen() -> None:
            await filled(server, 100, 10)
            while any(sender.written < 101 for sender in senders):
                await asyncio.sleep(0)

        turns = await turns_during(seen)
        for each in running:
            each.cancel()
    assert turns >= 30


class Rights:
    """Allows what it is asked to, and counts what it is asked at one turn."""

    def __init__(self) -> None:
        self.allowed = True
        self.asked = 0

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        self.asked += 1
        return Decision(self.allowed)


async def opened(streams: OpenStreams, count: int) -> list[asyncio.Task[None]]:
    async def run(_: Sender) -> None:
        await asyncio.Event().wait()

    rights = [(User("ann"), Attributes("c", "watch"))]
    tasks = [
        asyncio.ensure_future(streams.guarded(rights, run)(MemorySender())) for _ in range(count)
    ]
    await asyncio.sleep(0)
    return tasks


async def test_rights_of_very_many_streams_are_asked_again_in_turns() -> None:
    rights = Rights()
    streams = OpenStreams(rights, now=lambda: 0.0)
    tasks = await opened(streams, 2000)
    streams.recheck()
    assert rights.asked == 500
    # Whatever changes while they are being asked has all of them asked once more, and only once.
    for _ in range(10):
        streams.recheck()
    at_once, before = 0, rights.asked
    while streams._unasked:
        await asyncio.sleep(0)
        at_once, before = max(at_once, rights.asked - before), rights.asked
    assert at_once <= 1000
    assert rights.asked == 4000
    rights.allowed = False
    streams.recheck()
    await asyncio.wait(tasks)
    assert not streams._held


async def test_where_rights_are_long_to_look_through_fewer_streams_are_asked_at_a_turn() -> None:
    rights = Rights()
    streams = OpenStreams(rights, now=lambda: rights.asked * 0.002)
    tasks = await opened(streams, 20)
    streams.recheck()
    assert rights.asked == 3
    while streams._unasked:
        await asyncio.sleep(0)
    assert rights.asked == 20
    rights.allowed = False
    streams.recheck()
    await asyncio.wait(tasks)
