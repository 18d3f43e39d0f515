"""Types of a server that does not let its edge watch what makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from skerry.api.errors import Forbidden, ServiceUnavailable
from skerry.api.kinds import GroupVersionResource
from skerry.edge.syncer.tables.served_types import ServedTypes
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import NO_HEADERS, Answer
from tests.kit.answering import AnsweringTransport
from tests.kit.sim.loop import virtual

WIDGETS = GroupVersionResource("example.io", "v1", "widgets")


class NarrowHub(AnsweringTransport):
    """Tells its types to whoever asks, and forbids to read definitions and bindings."""

    def __init__(self) -> None:
        self.types = {
            "apiextensions.k8s.io/v1": ["customresourcedefinitions"],
            "apis.kcp.io/v1alpha1": ["apibindings"],
        }
        self.discoveries = 0
        self.forbidden: list[str] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path == "/api":
            self.discoveries += 1
            return _answer({"kind": "APIVersions", "versions": []})
        if path == "/apis":
            groups = [
                {"name": name.split("/")[0], "versions": [{"version": name.split("/")[1]}]}
                for name in self.types
            ]
            return _answer({"kind": "APIGroupList", "groups": groups})
        plurals = self.types.get(path.removeprefix("/apis/"))
        if plurals is not None:
            verbs = ["get", "list", "watch"]
            resources = [{"name": each, "kind": each, "verbs": verbs} for each in plurals]
            return _answer({"kind": "APIResourceList", "resources": resources})
        self.forbidden.append(path.rsplit("/", 1)[1])
        return Answer(403, {}, orjson.dumps(Forbidden("no").status()))


def _answer(document: dict[str, Any]) -> Answer:
    return Answer(200, {}, orjson.dumps(document))


@virtual
async def test_an_expected_type_is_found_without_watching_what_makes_types() -> None:
    hub, changes = NarrowHub(), list[bool]()
    client = Client(hub, clock=LoopClock())
    factory = InformerFactory(client, ids=SeededIds(1))
    served = ServedTypes(client, factory, SeededIds(1))
    served.changed.connect(lambda: changes.append(True))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(served.run())
        await asyncio.sleep(600)
        assert hub.discoveries == 1, "nothing is expected, nothing is asked"
        served.expect([WIDGETS])
        await asyncio.sleep(5)
        hub.types["example.io/v1"] = ["widgets"]
        await asyncio.sleep(70)
        assert served.find(WIDGETS) is not None
        asked = hub.discoveries
        await asyncio.sleep(600)
        assert hub.discoveries == asked, "it has been found"
        assert sorted(hub.forbidden) == ["apibindings", "customresourcedefinitions"]
        running.cancel()


@virtual
async def test_what_is_said_to_have_come_is_found_at_once_however_long_it_was_missed() -> None:
    hub = NarrowHub()
    client = Client(hub, clock=LoopClock())
    served = ServedTypes(client, InformerFactory(client, ids=SeededIds(1)), SeededIds(1))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(served.run())
        served.expect([WIDGETS])
        await asyncio.sleep(3600)
        hub.types["example.io/v1"] = ["widgets"]
        served.renew()
        await asyncio.sleep(0.2)
        assert served.find(WIDGETS) is not None
        running.cancel()


@virtual
async def test_a_type_that_is_expected_only_now_is_asked_for_at_once() -> None:
    hub = NarrowHub()
    client = Client(hub, clock=LoopClock())
    served = ServedTypes(client, InformerFactory(client, ids=SeededIds(1)), SeededIds(1))
    missing = GroupVersionResource("example.io", "v1", "never")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(served.run())
        served.expect([missing])
        await asyncio.sleep(3600)
        hub.types["example.io/v1"] = ["widgets"]
        served.expect([missing, WIDGETS])
        await asyncio.sleep(0.2)
        assert served.find(WIDGETS) is not None
        running.cancel()


class BrokenHub(NarrowHub):
    """Answers no discovery at all, or that of one group not, while it is broken."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = ""

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if self.broken and self.broken in path:
            self.discoveries += 1
            return Answer(503, {}, orjson.dumps(ServiceUnavailable("away").status()))
        return await super().request(method, path, query, headers, body)


@virtual
async def test_a_group_whose_server_is_away_keeps_the_types_that_were_known() -> None:
    hub = BrokenHub()
    hub.types["example.io/v1"] = ["widgets"]
    client = Client(hub, clock=LoopClock())
    served = ServedTypes(client, InformerFactory(client, ids=SeededIds(1)), SeededIds(1))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(served.run())
        await asyncio.sleep(5)
        hub.broken = "example.io"
        hub.types["other.io/v1"] = ["gears"]
        served.renew()
        await asyncio.sleep(5)
        assert served.find(GroupVersionResource("other.io", "v1", "gears")) is not None
        assert served.find(WIDGETS) is not None, "a server that is away has types all the same"
        hub.broken = ""
        del hub.types["example.io/v1"]
        served.renew()
        await asyncio.sleep(5)
        assert served.find(WIDGETS) is None
        running.cancel()


@virtual
async def test_discovery_that_fails_is_tried_again_with_growing_pauses() -> None:
    hub = BrokenHub()
    hub.broken = "/api"
    client = Client(hub, clock=LoopClock())
    served = ServedTypes(client, InformerFactory(client, ids=SeededIds(1)), SeededIds(1))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(served.run())
        await asyncio.sleep(600)
        assert not served.known
        early = hub.discoveries
        await asyncio.sleep(600)
        late = hub.discoveries - early
        assert 0 < late < early
        hub.broken = ""
        await asyncio.sleep(120)
        assert served.known
        running.cancel()
