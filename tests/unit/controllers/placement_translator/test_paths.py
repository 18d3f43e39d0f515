"""Paths of workspaces, read when rows wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson

from skerry.controllers.placement_translator.paths import WorkspacePaths
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from tests.kit.answering import AnsweringTransport


class Hub(AnsweringTransport):
    """Knows the path of workspace ``one``; fails as often as it is asked to before it answers."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.asked: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        cluster = path.split("/")[2]
        self.asked.append(cluster)
        if self.failures:
            self.failures -= 1
            raise TransportError("no answer")
        if cluster != "one":
            return Answer(404, {}, b'{"kind":"Status","code":404,"reason":"NotFound"}')
        notes = {"kcp.io/path": "root:org:one"}
        return Answer(
            200, {}, orjson.dumps({"metadata": {"name": "cluster", "annotations": notes}})
        )


async def _read(hub: Hub, *clusters: str) -> dict[str, str]:
    found: dict[str, str] = {}
    enough = asyncio.Event()

    def take(cluster: str, path: str) -> None:
        found[cluster] = path
        if len(found) == len(set(clusters)):
            enough.set()

    paths = WorkspacePaths(Client(hub), SeededIds(1), take)
    for cluster in clusters:
        paths.read(cluster)
    running = asyncio.create_task(paths.run())
    await asyncio.wait_for(enough.wait(), 10)
    running.cancel()
    return found


async def test_a_path_is_read_once_and_one_that_cannot_be_read_is_empty() -> None:
    hub = Hub()
    assert await _read(hub, "one", "gone", "one") == {"one": "root:org:one", "gone": ""}
    assert hub.asked == ["one", "gone"]


async def test_a_hub_that_does_not_answer_is_asked_again() -> None:
    hub = Hub(failures=2)
    assert await _read(hub, "one") == {"one": "root:org:one"}
    assert hub.asked == ["one", "one", "one"]
