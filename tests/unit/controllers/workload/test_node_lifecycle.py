"""Nodes that fall silent, in virtual time on the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.controllers.workload import node_lifecycle
from skerry.controllers.workload.kinds import NODES, PODS
from skerry.controllers.workload.node_lifecycle import LEASES
from skerry.kit.timestamps import rfc3339, rfc3339_micro
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.context import ControllerContext
from skerry.runtime.events import EventRecorder
from tests.kit.sim.engine import EngineWorld
from tests.kit.sim.faults import Rates
from tests.kit.sim.loop import virtual

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
EVENTS = GroupVersionResource("", "v1", "events")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")


class Cluster:
    """Nodes that renew their Leases until they are taken out of ``live``."""

    def __init__(self, world: EngineWorld) -> None:
        self.client = world.direct
        self.clock = world.client.clock
        self.live: set[str] = set()

    async def add(self, name: str) -> None:
        made = await self.client.create(NODES, {"metadata": {"name": name}})
        await self.post(made)
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40}
        body = {"metadata": {"name": name}, "spec": spec}
        await self.client.create(LEASES, body, "kube-node-lease")
        self.live.add(name)

    async def post(self, node: Object, ready: str = "True") -> None:
        now = rfc3339(self.clock.now())
        dates = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        node["status"] = {"conditions": [{"type": "Ready", "status": ready, **dates}]}
        await self.client.update_status(NODES, node)

    async def pod(self, name: str, node: str, tolerations: list[Object] | None = None) -> None:
        container = {"name": "c", "image": "i"}
        spec: dict[str, Any] = {"nodeName": node, "containers": [container]}
        if tolerations is not None:
            spec["tolerations"] = tolerations
        made = await self.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")
        ready = {"type": "Ready", "status": "True"}
        made["status"] = {"phase": "Running", "conditions": [ready]}
        await self.client.update_status(PODS, made)

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(10)
            for name in sorted(self.live):
                found = await self.client.get(LEASES, name, "kube-node-lease")
                found["spec"]["renewTime"] = rfc3339_micro(self.clock.now())
                await self.client.update(LEASES, found)

    async def taints(self, name: str) -> set[tuple[str, str]]:
        found = await self.client.get(NODES, name)
        listed = (found.get("spec") or {}).get("taints") or ()
        return {(each["key"].rpartition("/")[2], each["effect"]) for each in listed}

    async def pods(self) -> set[str]:
        return {
            each["metadata"]["name"]
            for each in (await self.client.list(PODS)).items
            if "deletionTimestamp" not in each["metadata"]
        }


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    world = EngineWorld(1, Rates(0.0, 0.0, 0.0, 0.0, 0.0))
    recorder = EventRecorder(world.client, node_lifecycle.NAME)
    context = ControllerContext(world.client, world.factory, world.ids, recorder=recorder)
    cluster = Cluster(world)
    controller = node_lifecycle.build(context)
    async with world.running(controller.run, recorder.run, cluster.renew):
        await asyncio.sleep(1)
        await world.direct.create(ACCOUNTS, {"metadata": {"name": "default"}}, "default")
        yield cluster


@virtual
async def test_a_silent_node_is_tainted_and_its_pods_go_when_they_no_longer_tolerate_it() -> None:
    async with running() as cluster:
        for name in ("a", "b"):
            await cluster.add(name)
        await cluster.pod("default-tolerations", "a")
        forever = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
        await cluster.pod("stays", "a", [forever])
        await cluster.pod("elsewhere", "b")
        await asyncio.sleep(100)
        assert await cluster.taints("a") == set()
        cluster.live.discard("a")
        await asyncio.sleep(60)
        silent = ("unreachable", "NoSchedule"), ("unreachable", "NoExecute")
        assert await cluster.taints("a") == set(silent)
        assert await cluster.taints("b") == set()
        found = find_condition(await cluster.client.get(NODES, "a"), "Ready")
        assert found is not None
        assert (found["status"], found["reason"]) == ("Unknown", "NodeStatusUnknown")
        ready = find_condition(await cluster.client.get(PODS, "stays", "default"), "Ready")
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("False", "NodeNotReady")
        assert await cluster.pods() == {"default-tolerations", "stays", "elsewhere"}
        # 300 seconds are what admission gives every pod.
        await asyncio.sleep(330)
        assert await cluster.pods() == {"stays", "elsewhere"}
        reasons = {each["reason"] for each in (await cluster.client.list(EVENTS)).items}
        assert {"NodeNotReady", "TaintManagerEviction"} <= reasons


@virtual
async def test_a_node_that_comes_back_is_taken_as_it_is_and_its_pods_stay() -> None:
    async with running() as cluster:
        for name in ("a", "b"):
            await cluster.add(name)
        await cluster.pod("p", "a")
        cluster.live.discard("a")
        await asyncio.sleep(120)
        assert await cluster.taints("a")
        cluster.live.add("a")
        await cluster.post(await cluster.client.get(NODES, "a"))
        await asyncio.sleep(400)
        assert await cluster.taints("a") == set()
        assert await cluster.pods() == {"p"}


@virtual
async def test_when_every_node_is_silent_nothing_is_evicted() -> None:
    async with running() as cluster:
        for name in ("a", "b"):
            await cluster.add(name)
        await cluster.pod("p", "a", [])
        cluster.live.clear()
        await asyncio.sleep(1000)
        assert await cluster.taints("a") == {("unreachable", "NoSchedule")}
        assert await cluster.pods() == {"p"}


@virtual
async def test_cordoning_is_a_taint_and_a_taint_by_hand_evicts_at_once() -> None:
    async with running() as cluster:
        await cluster.add("a")
        await cluster.pod("p", "a")
        await cluster.client.patch(NODES, "a", {"spec": {"unschedulable": True}})
        await asyncio.sleep(5)
        assert await cluster.taints("a") == {("unschedulable", "NoSchedule")}
        taints = [{"key": "maintenance", "effect": "NoExecute"}]
        await cluster.client.patch(NODES, "a", {"spec": {"taints": taints}})
        await asyncio.sleep(5)
        assert await cluster.pods() == set()
        assert ("unschedulable", "NoSchedule") in await cluster.taints("a")


@virtual
async def test_pods_of_a_node_that_is_no_more_are_deleted_after_a_while() -> None:
    async with running() as cluster:
        await cluster.add("a")
        await cluster.pod("p", "a")
        await asyncio.sleep(5)
        await cluster.client.delete(NODES, "a")
        await asyncio.sleep(20)
        assert await cluster.pods() == {"p"}
        await asyncio.sleep(30)
        assert (await cluster.client.list(PODS)).items == []
