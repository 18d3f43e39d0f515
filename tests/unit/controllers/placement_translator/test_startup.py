"""What is read once: nothing is derived from half of it, and a hub that is away is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from skerry.api.errors import ServiceUnavailable
from skerry.api.kcp.resources import API_RESOURCE_SCHEMAS, SYNC_TARGETS, WORKSPACES
from skerry.controllers.placement_translator.startup import Startup
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.logic.fleet.translation.workspaces import Workspaces
from skerry.runtime.client import Client
from skerry.runtime.informer import InformerFactory
from skerry.runtime.transport import NO_HEADERS, Answer, TransportError
from tests.kit.answering import AnsweringTransport
from tests.kit.sim.loop import virtual

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
AWAY = Answer(503, {}, orjson.dumps(ServiceUnavailable("away").status()))


class System(AnsweringTransport):
    """The system's own cluster: config maps, and a group that may be away."""

    def __init__(self) -> None:
        self.group_is_away = False
        self.lost = False
        self.asked: list[float] = []

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        if path == "/api":
            self.asked.append(asyncio.get_running_loop().time())
        if self.lost:
            raise TransportError("no way there")
        if path == "/apis/apps/v1" and self.group_is_away:
            return AWAY
        return Answer(200, {}, orjson.dumps(DOCUMENTS[path]))


def _resource(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": True, "verbs": VERBS}


_APPS = {"groupVersion": "apps/v1", "version": "v1"}
DOCUMENTS: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "apps", "versions": [_APPS], "preferredVersion": _APPS}],
    },
    "/api/v1": {"kind": "APIResourceList", "resources": [_resource("configmaps", "ConfigMap")]},
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "resources": [_resource("deployments", "Deployment")],
    },
    "/version": {"gitVersion": "v1.32.0", "goVersion": "python3.11"},
}


class Handlers:
    """Counts what it hears."""

    def __init__(self) -> None:
        self.retyped = self.granted = 0

    def retype_all(self) -> None:
        self.retyped += 1

    def grants_read(self) -> None:
        self.granted += 1


class World:
    def __init__(self) -> None:
        self.system = System()
        self.workspaces = Workspaces(dict)
        self.handlers = Handlers()
        client = Client(self.system, clock=LoopClock())
        self.factory = InformerFactory(client, ids=SeededIds(1))
        self.schemas = self.factory.informer(API_RESOURCE_SCHEMAS)
        self.startup = Startup(client, SeededIds(1), self.workspaces, self.handlers, self.schemas)


@asynccontextmanager
async def running() -> AsyncIterator[World]:
    world = World()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(world.startup.run())
        yield world
        task.cancel()


@virtual
async def test_kinds_are_derived_anew_with_the_types_and_again_with_the_schemas() -> None:
    async with running() as here:
        await asyncio.sleep(1)
        assert here.workspaces.knows_hub
        assert here.handlers.retyped == 1
        here.schemas.synced.set()
        await asyncio.sleep(1)
        assert here.handlers.retyped == 2
        assert here.handlers.granted == 0, "nobody has granted anything"


@pytest.mark.parametrize("trouble", ["lost", "group_is_away"])
@virtual
async def test_what_is_not_answered_in_full_is_asked_for_again_ever_more_seldom(
    trouble: str,
) -> None:
    async with running() as here:
        setattr(here.system, trouble, True)
        await asyncio.sleep(300)
        assert not here.workspaces.knows_hub, "a missing group is not an absent one"
        assert here.handlers.retyped == 0
        times = here.system.asked
        assert 8 < len(times) < 60
        assert times[2] - times[1] < times[-1] - times[-2] < 30.5
        setattr(here.system, trouble, False)
        await asyncio.sleep(35)
        assert here.workspaces.knows_hub
        asked = len(here.system.asked)
        await asyncio.sleep(300)
        assert len(here.system.asked) == asked, "it is read once"


@virtual
async def test_grants_are_known_when_all_they_depend_on_was_read() -> None:
    async with running() as here:
        informers = [here.factory.informer(gvr) for gvr in (WORKSPACES, SYNC_TARGETS)]
        here.startup.grants_depend_on(informers)
        informers[0].synced.set()
        await asyncio.sleep(1)
        assert here.handlers.granted == 0
        informers[1].synced.set()
        await asyncio.sleep(1)
        assert here.handlers.granted == 1


@virtual
async def test_who_leads_again_reads_it_all_again() -> None:
    world = World()
    world.schemas.synced.set()
    world.startup.grants_depend_on([])
    for turn in (1, 2):
        await world.startup.run()
        assert (world.handlers.retyped, world.handlers.granted) == (2 * turn, turn)
