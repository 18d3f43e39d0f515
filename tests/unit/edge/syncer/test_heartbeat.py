"""One Lease, renewed while the syncer lives and its edge answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson

from skerry.api.edge import HEARTBEAT_LEASE, HEARTBEAT_NAMESPACE
from skerry.api.kinds import GroupVersionResource
from skerry.edge.syncer.heartbeat import Heartbeat
from skerry.edge.syncer.metrics import SyncerMetrics
from skerry.edge.syncer.state import SyncerSettings
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.transport import (
    NO_HEADERS,
    Answer,
    ConnectTimeout,
    TransportError,
    Unreachable,
)
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import TYPES, Twin, served

NAMESPACES = GroupVersionResource("", "v1", "namespaces")


class Hub(Twin):
    """A hub that may be away, keeps what it was sent, and may date Leases itself."""

    away = False
    raises: type[TransportError] = TransportError
    dates_leases = True
    # How often a Lease was read.
    read = 0
    sent: list[Any]
    kinds: list[str]

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
    ) -> Answer:
        self.read += method == "GET" and "leases" in path
        if self.away:
            raise self.raises("cut")
        if method in ("PATCH", "POST") and "leases" in path:
            said = orjson.loads(body)
            self.sent.append(said)
            self.kinds.append(headers.get("content-type", ""))
            if self.dates_leases:
                body = orjson.dumps({**said, "spec": {**said["spec"], "renewTime": "by the hub"}})
        return await super().request(method, path, query, headers, body)

    @property
    def lease(self) -> dict[str, Any] | None:
        return self.find("leases", HEARTBEAT_NAMESPACE).get(HEARTBEAT_LEASE)


class Beating:
    def __init__(self, hub: Hub) -> None:
        self.hub, self.metrics, self.edge_answers = hub, SyncerMetrics(), True
        settings = SyncerSettings(name="florin", identity="me", heartbeat_seconds=30.0)
        client = self.client = Client(hub, clock=LoopClock())
        # Set while nothing is left to be reported.
        self.all_said = asyncio.Event()
        self.all_said.set()
        self.asked = 0
        self.heartbeat = Heartbeat(
            client, settings, SeededIds(1), self.metrics, lambda: self.edge_answers, self._reported
        )

    async def _reported(self) -> None:
        self.asked += 1
        await self.all_said.wait()

    def counted(self, result: str) -> float:
        registry, labels = self.metrics.runtime.registry, {"result": result}
        return registry.get_sample_value("skerry_syncer_heartbeats_total", labels) or 0.0


@asynccontextmanager
async def beating(*, answers: bool = True, dates_leases: bool = True) -> AsyncIterator[Beating]:
    types = [*TYPES]
    if not any(info.resource == "leases" for info in types):
        types.append(served("coordination.k8s.io", "v1", "leases", "Lease"))
    hub = Hub(clock=LoopClock(), types=types)
    hub.sent, hub.kinds, hub.dates_leases = [], [], dates_leases
    if HEARTBEAT_NAMESPACE not in hub.find("namespaces"):
        await Client(hub).create(NAMESPACES, {"metadata": {"name": HEARTBEAT_NAMESPACE}})
    here = Beating(hub)
    here.edge_answers = answers
    task = asyncio.get_running_loop().create_task(here.heartbeat.run())
    yield here
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_the_first_heartbeat_makes_the_lease_and_says_how_long_it_lasts() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        lease = here.hub.lease
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "me"
        # Two intervals, so that one may be lost.
        assert lease["spec"]["leaseDurationSeconds"] == 60
        _, made = here.hub.sent
        assert made["spec"]["renewTime"] == made["spec"]["acquireTime"]


@virtual
async def test_renewals_are_small_and_come_a_little_early() -> None:
    async with beating() as here:
        await asyncio.sleep(300)
        assert 10 <= here.counted("sent") <= 12
        *_, last = here.hub.sent
        assert set(last["spec"]) == {"renewTime", "holderIdentity"}
        assert here.counted("failed") == 0


@virtual
async def test_a_hub_that_dates_no_leases_is_made_to_note_each_renewal() -> None:
    """Kubernetes dates fields anew only where others are written, or where they are applied."""
    async with beating(dates_leases=False) as here:
        await asyncio.sleep(100)
        _, made, *renewed = here.hub.kinds
        assert made == "application/json"
        assert len(renewed) > 2
        assert all("apply-patch" in kind for kind in renewed)
        # All of them the same fields: what is applied no more is taken away.
        assert {tuple(sorted(each["spec"])) for each in here.hub.sent[2:]} == {
            ("holderIdentity", "leaseDurationSeconds", "renewTime")
        }
        assert here.counted("failed") == 0


@virtual
async def test_there_is_no_sign_of_life_of_an_edge_that_does_not_answer() -> None:
    async with beating(answers=False) as here:
        await asyncio.sleep(600)
        assert here.hub.lease is None
        here.edge_answers = True
        await asyncio.sleep(2)
        assert here.hub.lease is not None


@virtual
async def test_a_hub_that_comes_back_hears_of_the_edge_within_half_a_minute() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        here.hub.away = True
        await asyncio.sleep(600)
        assert here.counted("failed") > 10
        sent = here.counted("sent")
        here.hub.away = False
        await asyncio.sleep(46)
        assert here.counted("sent") > sent


@virtual
async def test_a_hub_of_many_edges_hears_of_them_one_after_the_other() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        here.client.facts.return_seconds = 10_000.0
        here.hub.away = True
        await asyncio.sleep(120)
        assert here.counted("failed") == 1, "the next one is a long time off"


@virtual
async def test_where_many_return_the_heartbeat_comes_once_the_watches_are_back() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        facts = here.client.facts
        facts.return_seconds = 50.0
        here.hub.away, here.hub.raises = True, Unreachable
        while not here.counted("failed"):
            await asyncio.sleep(0.1)
        await asyncio.sleep(50)
        assert here.counted("failed") == 1, "it takes nobody's place while it waits"
        sent, here.hub.away = here.counted("sent"), False
        facts.heard()
        await asyncio.sleep(1.5)
        assert here.counted("sent") == sent + 1


@virtual
async def test_who_was_not_served_in_its_turn_takes_the_next_one_soon() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        here.client.facts.return_seconds = 50.0
        here.hub.away, here.hub.raises = True, ConnectTimeout
        await asyncio.sleep(30)
        failed, sent = here.counted("failed"), here.counted("sent")
        assert failed
        await asyncio.sleep(60)
        assert here.counted("failed") >= failed + 4
        here.hub.away = False
        await asyncio.sleep(16)
        assert here.counted("sent") == sent + 1


@virtual
async def test_a_lease_that_somebody_removed_is_made_anew() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        for place in [place for place in here.hub.objects if place.resource == "leases"]:
            del here.hub.objects[place]
        await asyncio.sleep(31)
        lease = here.hub.lease
        assert lease is not None
        assert lease["spec"]["leaseDurationSeconds"] == 60


@virtual
async def test_after_a_silence_the_hub_hears_first_what_it_missed() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        assert here.asked == 0, "the hub knew nothing that could be outdated"
        await asyncio.sleep(120)
        assert here.asked == 0, "there was no silence"
        here.hub.away = True
        await asyncio.sleep(300)
        here.all_said.clear()
        here.hub.away = False
        asked, sent = here.asked, here.counted("sent")
        while here.asked == asked:
            await asyncio.sleep(0.1)
        await asyncio.sleep(3)
        assert here.counted("sent") == sent, "what it reported before must not count yet"
        here.all_said.set()
        await asyncio.sleep(0.1)
        assert here.counted("sent") == sent + 1


@virtual
async def test_who_was_heard_of_before_asks_nothing_of_a_hub_that_comes_back() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        asked = here.hub.read
        here.hub.away = True
        await asyncio.sleep(60)
        here.hub.away = False
        await asyncio.sleep(60)
        assert here.counted("sent") > 1
        assert here.hub.read == asked, "each of ten thousand would"


@virtual
async def test_an_edge_with_very_much_to_say_is_heard_of_nevertheless() -> None:
    async with beating() as here:
        await asyncio.sleep(1)
        here.edge_answers = False
        await asyncio.sleep(60)
        here.all_said.clear()
        sent, here.edge_answers = here.counted("sent"), True
        await asyncio.sleep(10)
        assert here.counted("sent") == sent + 1
