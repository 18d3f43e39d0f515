"""The real engine in a simulated world: memory store, no socket, everybody may do everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.errors import ApiError
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.app.api_server import ApiServer, Parts
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client, Selection
from skerry.runtime.embedded import EmbeddedTransport
from skerry.runtime.informer import InformerFactory
from skerry.server.http.message import Answer, Peer, Request, Response
from skerry.server.user import User
from skerry.store.memory import MemoryStore
from tests.kit.server.harness import ADMIN, Everybody
from tests.kit.sim.faults import FaultyTransport, Rates


def request_by(user: User) -> Callable[..., Request]:
    """Return what makes requests of somebody whom the server believes."""

    def request(
        *, method: str, path: str, query_string: str, headers: Mapping[str, str], body: bytes
    ) -> Request:
        return Request(method, path, query_string, headers, body, Peer(user=user))

    return request


request = request_by(ADMIN)


async def version(_: Request, __: str) -> Answer:
    return Response(body=b'{"major":"1","minor":"32","gitVersion":"v1.32.0"}')


async def own_version(_: Request, __: str) -> Answer:
    """Answer as a hub of ours, which is known by what it runs on."""
    return Response(body=b'{"major":"1","minor":"32","gitVersion":"v1.32.0","goVersion":"python3"}')


class EngineWorld:
    """Everything of one seed, around the real engine. ``direct`` has no faults."""

    def __init__(self, seed: int, rates: Rates | None = None) -> None:
        self.clock = LoopClock()
        self.ids = SeededIds(seed)
        everybody, server_ids = Everybody(), SeededIds(seed + 1)
        self.store = MemoryStore(server_ids.uid())
        self.api = ApiServer(
            Parts(
                store=self.store,
                clock=self.clock,
                ids=server_ids,
                authenticator=everybody,
                authorizer=everybody,
                flow=everybody,
                recorder=everybody,
                paths={"/version": version},
            )
        )
        embedded = EmbeddedTransport(self.api.engine.handle, request)
        self.faults = FaultyTransport(embedded, self.ids, rates)
        self.client = Client(self.faults, clock=self.clock)
        self.direct = Client(embedded, clock=self.clock)
        self.factory = InformerFactory(self.client, ids=self.ids, mutation_check=True)

    @asynccontextmanager
    async def running(self, *parts: Any) -> AsyncIterator[None]:
        """Run the server, the informers and *parts* while inside."""
        failure: Exception | None = None
        await self.api.prepare()
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(self.api.run()), tasks.create_task(self.factory.run())]
            started += [tasks.create_task(part()) for part in parts]
            await asyncio.sleep(0.001)  # the server follows its store from here on
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in started:
                task.cancel()
        if failure is not None:
            raise failure
        self.factory.check_unchanged()

    async def compact(self) -> None:
        """Forget all history; watches from before get 410."""
        await self.store.compact(await self.store.revision())

    async def settle(self, seconds: float = 600.0) -> None:
        """Let an idle world find its peace; virtual seconds are free."""
        self.faults.heal()
        await asyncio.sleep(seconds)

    async def found(self, gvr: GroupVersionResource, namespace: str = "") -> dict[str, Object]:
        """Return what the server has, by name."""
        items = (await self.direct.list(gvr, Selection(namespace=namespace))).items
        return {item["metadata"]["name"]: item for item in items}

    async def exists(self, gvr: GroupVersionResource, name: str, namespace: str = "") -> bool:
        try:
            await self.direct.get(gvr, name, namespace)
        except ApiError:
            return False
        return True

    def happens(self, rate: float) -> bool:
        return self.ids.fraction() < rate

    def chosen(self, count: int) -> int:
        return int(self.ids.fraction() * count)
