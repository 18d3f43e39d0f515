from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest

from skerry.api.errors import Forbidden, Gone
from skerry.api.kinds import GroupVersionResource
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer, AnswerStream, TransportError
from skerry.runtime.watching import Notice, OrdinaryWatches, Watched
from tests.kit.answering import AnsweringTransport
from tests.kit.sim.loop import run_virtual
from tests.kit.sim.twin import TwinStream

SITES = GroupVersionResource("edge.test", "v1", "sites")


class Server(AnsweringTransport):
    """Tells its version, and what is given as the events of a watch; then it stays silent."""

    def __init__(self, version: Any = None, events: list[Any] | None = None) -> None:
        self.version = version
        self.events = events or []
        self.ends = False
        self.asked: list[dict[str, list[str]]] = []
        self.versions = 0

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.versions += 1
        if isinstance(self.version, Forbidden):
            return Answer(403, {}, orjson.dumps(self.version.status()))
        return Answer(200, {}, orjson.dumps(self.version))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> AsyncIterator[AnswerStream]:
        self.asked.append(parse_qs(query))
        yield TwinStream(200, self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        for event in self.events:
            yield orjson.dumps(event) + b"\n"
        if not self.ends:
            await asyncio.Event().wait()


def watches(server: Server) -> OrdinaryWatches:
    return OrdinaryWatches(Client(server), SeededIds(1))


async def watched_to_the_end(server: Server) -> list[Notice]:
    async with watches(server).watch(Watched(SITES, resource_version="1")) as notices:
        return [notice async for notice in notices]


@pytest.mark.parametrize(
    ("version", "streams"),
    [
        ({"minor": "27"}, True),
        ({"minor": "32+"}, True),
        ({"minor": "26"}, False),
        ({}, False),
        (Forbidden("not for you"), False),
    ],
)
async def test_the_state_comes_with_a_watch_where_the_server_is_new_enough(
    version: Any, *, streams: bool
) -> None:
    server = Server(version)
    source = watches(server)
    assert await source.reports_state() is streams
    assert await source.reports_state() is streams
    assert server.versions == 1


async def test_a_server_that_refused_the_state_once_is_listed_from_then_on() -> None:
    source = watches(Server({"minor": "32"}))
    assert await source.reports_state()
    assert source.state_refused()
    assert not await source.reports_state()


async def test_a_watch_without_a_revision_asks_for_the_state_first() -> None:
    server = Server()
    for revision in ("", "7"):
        async with watches(server).watch(Watched(SITES, resource_version=revision)):
            pass
    first, second = server.asked
    assert first["sendInitialEvents"] == ["true"]
    assert "sendInitialEvents" not in second
    assert second["resourceVersion"] == ["7"]


async def test_watches_end_at_different_times() -> None:
    server = Server()
    source = watches(server)
    for _ in range(20):
        async with source.watch(Watched(SITES, resource_version="1")):
            pass
    seconds = {int(each["timeoutSeconds"][0]) for each in server.asked}
    assert len(seconds) > 10
    assert all(300 <= each < 600 for each in seconds)


async def test_events_come_in_order_and_a_watch_that_ends_well_just_ends() -> None:
    events = [
        {"type": kind, "object": {"metadata": {"name": "a", "resourceVersion": str(n)}}}
        for n, kind in enumerate(("ADDED", "MODIFIED", "DELETED", "BOOKMARK"), start=1)
    ]
    server = Server(events=events)
    server.ends = True
    found = await watched_to_the_end(server)
    assert found == [Notice(each["type"], each["object"]) for each in events]  # type: ignore[arg-type]


async def test_an_error_the_server_reports_is_raised() -> None:
    server = Server(events=[{"type": "ERROR", "object": Gone("too old").status()}])
    with pytest.raises(Gone, match="too old"):
        await watched_to_the_end(server)


def test_a_watch_that_outlives_its_time_is_dead_without_saying_so() -> None:
    async def watch() -> float:
        server = Server()
        with pytest.raises(TransportError, match="the watch went silent"):
            await watched_to_the_end(server)
        return asyncio.get_running_loop().time() - int(server.asked[0]["timeoutSeconds"][0])

    assert run_virtual(watch()) == pytest.approx(30)
