from __future__ import annotations

import asyncio

import pytest

from skerry.api.kinds import GroupVersionResource
from skerry.kit.clock import LoopClock
from skerry.kit.ids import SeededIds
from skerry.runtime.client import Client
from skerry.runtime.election import LEASES, LeaderElection
from tests.kit.sim.faults import FaultyTransport, Rates
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Twin
from tests.kit.sim.world import SEEDS

NAMESPACES = GroupVersionResource("", "v1", "namespaces")


class Hall:
    """A server with candidates, and a record of who led when."""

    def __init__(self, rates: Rates | None = None, seed: int = 1) -> None:
        self.twin = Twin()
        self.ids = SeededIds(seed)
        self.rates = rates or Rates(0, 0, 0, 0, 0)
        self.faults: dict[str, FaultyTransport] = {}
        self.leading: set[str] = set()
        self.led: list[tuple[str, float]] = []

    async def open(self) -> None:
        await Client(self.twin).create(NAMESPACES, {"metadata": {"name": "kube-system"}})

    def candidate(self, name: str) -> LeaderElection:
        if name not in self.faults:
            self.faults[name] = FaultyTransport(self.twin, self.ids, self.rates)
        client = Client(self.faults[name], clock=LoopClock())
        return LeaderElection(client, "lock", "kube-system", name, ids=self.ids)

    async def stand(self, name: str) -> None:
        """Stand for election again and again."""
        while True:
            await self.candidate(name).run(lambda: self.lead(name))
            await asyncio.sleep(1)

    async def lead(self, name: str) -> None:
        assert not self.leading, f"{name} leads beside {self.leading}"
        self.leading.add(name)
        self.led.append((name, LoopClock().monotonic()))
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.discard(name)


@virtual
async def test_one_leads_and_the_other_takes_over_at_once_when_it_stops() -> None:
    hall = Hall()
    await hall.open()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(hall.stand("a"))
        await asyncio.sleep(1)
        second = tasks.create_task(hall.stand("b"))
        await asyncio.sleep(100)
        assert hall.leading == {"a"}
        first.cancel()
        await asyncio.sleep(4)
        assert hall.leading == {"b"}
        second.cancel()
    lease = hall.twin.find("leases", "kube-system")["lock"]
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["spec"]["leaseTransitions"] == 1


@virtual
async def test_a_leader_cut_off_stops_before_another_begins() -> None:
    hall = Hall()
    await hall.open()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(hall.stand("a"))
        await asyncio.sleep(1)
        second = tasks.create_task(hall.stand("b"))
        await asyncio.sleep(20)
        hall.faults["a"].rates = Rates(1.0, 0, 0, 0, 0)
        await asyncio.sleep(11)
        assert not hall.leading
        await asyncio.sleep(10)
        assert hall.leading == {"b"}
        first.cancel()
        second.cancel()


@virtual
async def test_leadership_ends_when_the_work_does() -> None:
    hall = Hall()
    await hall.open()
    candidate = hall.candidate("a")

    async def work() -> None:
        assert candidate.leading.is_set()
        assert candidate.holder == "a"

    await candidate.run(work)
    assert not candidate.leading.is_set()
    assert hall.twin.find("leases", "kube-system")["lock"]["spec"]["holderIdentity"] == ""


@virtual
async def test_a_lease_taken_by_force_ends_leadership() -> None:
    hall = Hall()
    await hall.open()
    async with asyncio.TaskGroup() as tasks:
        standing = tasks.create_task(hall.candidate("a").run(lambda: hall.lead("a")))
        await asyncio.sleep(5)
        spec = {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 1000}}
        await Client(hall.twin).patch(LEASES, "lock", spec, "kube-system")
        await asyncio.sleep(5)
        assert not hall.leading
        assert standing.done()


@pytest.mark.parametrize("seed", SEEDS[:20])
@virtual
async def test_there_are_never_two_leaders_and_soon_there_is_one(seed: int) -> None:
    hall = Hall(Rates(0.3, 0.2, 0.05, 0, 1.0), seed)
    await hall.open()
    async with asyncio.TaskGroup() as tasks:
        standing = [tasks.create_task(hall.stand(name)) for name in ("a", "b", "c")]
        await asyncio.sleep(600)
        for faults in hall.faults.values():
            faults.heal()
        await asyncio.sleep(60)
        assert len(hall.leading) == 1
        for task in standing:
            task.cancel()


@virtual
async def test_who_waits_says_once_whom_for(capsys: pytest.CaptureFixture[str]) -> None:
    hall = Hall()
    await hall.open()
    async with asyncio.TaskGroup() as tasks:
        standing = [tasks.create_task(hall.stand("a"))]
        await asyncio.sleep(1)
        standing.append(tasks.create_task(hall.stand("b")))
        await asyncio.sleep(60)
        for task in standing:
            task.cancel()
    said = capsys.readouterr().err
    assert said.count('another process leads; waiting for its lease" controller') == 1
    assert 'holder="a"' in said
