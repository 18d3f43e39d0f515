"""The scheduler as a service, against the real API engine and its wire format."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
import pytest

from skerry.api.errors import AlreadyExists
from skerry.api.kinds import GroupVersionResource
from skerry.api.objects import Object
from skerry.runtime.client import Client, DeleteOptions
from skerry.runtime.election import LEASES
from skerry.runtime.event_series import EVENTS
from skerry.scheduler.config.errors import ConfigurationError
from skerry.scheduler.config.load import Configuration, complete
from skerry.scheduler.debug import PAGES as DEBUG_PAGES
from skerry.scheduler.registry import in_tree_registry
from skerry.scheduler.service import (
    NODES,
    CannotListen,
    LeadershipLost,
    PodSlimming,
    SchedulerOptions,
    SchedulerService,
    run_service,
)
from skerry.scheduler.survey import explain_pod
from skerry.scheduler.writer import PODS
from tests.kit.scheduler.fixtures import node, pod
from tests.kit.sim.engine import EngineWorld

pytestmark = pytest.mark.looptime

ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
PRIORITIES = GroupVersionResource("scheduling.k8s.io", "v1", "priorityclasses")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")


def configuration(**fields: Any) -> Configuration:
    return complete({"leaderElection": {"leaderElect": False}, **fields})


@asynccontextmanager
async def scheduling(
    world: EngineWorld,
    config: Configuration | None = None,
    client: Client | None = None,
    **options: Any,
) -> AsyncIterator[SchedulerService]:
    """Run a server with a namespace, and a scheduler on it that is ready."""
    chosen = SchedulerOptions(config or configuration(), "here_1", secure_port=None, **options)
    service = SchedulerService(chosen, client or world.client, world.ids)
    async with world.running():
        await settle(world, "default")
        task = asyncio.get_running_loop().create_task(service.run())
        try:
            await asyncio.wait_for(chosen.ready.wait(), 60)
            yield service
        finally:
            task.cancel()
            await asyncio.wait([task])


async def settle(world: EngineWorld, *namespaces: str) -> None:
    """Make namespaces pods can be created in."""
    for name in namespaces:
        with suppress(AlreadyExists):
            await world.direct.create(NAMESPACES, {"metadata": {"name": name}})
        with suppress(AlreadyExists):
            await world.direct.create(ACCOUNTS, {"metadata": {"name": "default"}}, name)


def real_node(name: str, **fields: Any) -> Object:
    found = node(name, **fields)
    found["status"]["capacity"] = found["status"]["allocatable"]
    return {"apiVersion": "v1", "kind": "Node", **found}


async def add_node(world: EngineWorld, name: str, **fields: Any) -> None:
    await world.direct.create(NODES, real_node(name, **fields))


async def add_pod(world: EngineWorld, name: str, **spec: Any) -> None:
    found = pod(name, **spec)
    del found["metadata"]["uid"], found["status"]
    await world.direct.create(PODS, {"apiVersion": "v1", "kind": "Pod", **found}, "default")


async def get_pod(world: EngineWorld, name: str) -> Object:
    return await world.direct.get(PODS, name, "default")


async def until(world: EngineWorld, name: str, holds: Any) -> Object:
    """Wait until the pod satisfies *holds*."""
    for _ in range(600):
        found = await get_pod(world, name)
        if holds(found):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"pod {name} never got there: {found}")


async def test_pods_are_bound_through_the_api() -> None:
    world = EngineWorld(1)
    # Without faults: whoever never hears that its binding arrived has nothing to tell.
    async with scheduling(world, client=world.direct):
        await add_node(world, "a")
        await add_pod(world, "p")
        bound = await until(world, "p", lambda p: p["spec"].get("nodeName"))
        assert bound["spec"]["nodeName"] == "a"
        conditions = {c["type"]: c["status"] for c in bound["status"]["conditions"]}
        assert conditions["PodScheduled"] == "True"
        events = await world.direct.list(EVENTS)
        while not events.items:
            await asyncio.sleep(0.1)
            events = await world.direct.list(EVENTS)
        assert [(e["reason"], e["note"], e["reportingController"]) for e in events.items] == [
            ("Scheduled", "Successfully assigned default/p to a", "default-scheduler")
        ]


async def test_an_unschedulable_pod_says_so_and_is_placed_when_a_node_comes() -> None:
    world = EngineWorld(2)
    async with scheduling(world):
        await add_node(world, "small", allocatable={"cpu": "10m"})
        await add_pod(world, "p")
        # The pod may be heard of first; then there were no nodes at all for a moment.
        waiting = await until(
            world, "p", lambda p: "Insufficient cpu" in str(p.get("status", {}).get("conditions"))
        )
        condition = waiting["status"]["conditions"][0]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        await add_node(world, "large")
        bound = await until(world, "p", lambda p: p["spec"].get("nodeName"))
        assert bound["spec"]["nodeName"] == "large"


async def test_preemption_goes_through_the_api() -> None:
    world = EngineWorld(3)
    # Without faults: a lost answer to a status write is not repeated, and this looks at one.
    async with scheduling(world, client=world.direct):
        await add_node(world, "a", allocatable={"cpu": "1"})
        await add_pod(world, "low", requests={"cpu": "1"})
        await until(world, "low", lambda p: p["spec"].get("nodeName"))
        await world.direct.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
        await add_pod(world, "high", requests={"cpu": "1"}, priorityClassName="high")
        waiting = await until(
            world, "high", lambda p: (p.get("status") or {}).get("nominatedNodeName")
        )
        assert waiting["status"]["nominatedNodeName"] == "a"
        terminating = await get_pod(world, "low")
        assert terminating["metadata"]["deletionTimestamp"]
        reasons = {c.get("reason") for c in terminating["status"]["conditions"]}
        assert "PreemptionByScheduler" in reasons
        # Nobody runs the pod, so nobody but us can say that it has ended.
        await world.direct.delete(PODS, "low", "default", DeleteOptions(grace_seconds=0))
        bound = await until(world, "high", lambda p: p["spec"].get("nodeName"))
        assert bound["spec"]["nodeName"] == "a"


async def test_a_scheduler_that_starts_late_knows_what_is_taken() -> None:
    world = EngineWorld(4)
    chosen = SchedulerOptions(configuration(), "here_1", secure_port=None)
    service = SchedulerService(chosen, world.client, world.ids)
    async with world.running():
        await settle(world, "default")
        await add_node(world, "a", allocatable={"cpu": "150m"})
        await add_pod(world, "old", nodeName="a")
        await add_pod(world, "new")
        task = asyncio.get_running_loop().create_task(service.run())
        refused = await until(world, "new", lambda p: (p.get("status") or {}).get("conditions"))
        assert "Insufficient cpu" in refused["status"]["conditions"][0]["message"]
        task.cancel()
        await asyncio.wait([task])


async def test_only_the_leader_decides_and_the_next_takes_over() -> None:
    world = EngineWorld(5)
    config = complete({})
    first = SchedulerOptions(config, "first", secure_port=None)
    second = SchedulerOptions(config, "second", secure_port=None)
    async with world.running():
        await settle(world, "default", "kube-system")
        await add_node(world, "a")
        loop = asyncio.get_running_loop()
        one = loop.create_task(SchedulerService(first, world.client, world.ids).run())
        await asyncio.wait_for(first.ready.wait(), 60)
        two = loop.create_task(SchedulerService(second, world.client, world.ids).run())
        await asyncio.sleep(5)
        assert not second.ready.is_set()
        one.cancel()
        await asyncio.wait([one])
        await asyncio.wait_for(second.ready.wait(), 60)
        await add_pod(world, "p")
        await until(world, "p", lambda p: p["spec"].get("nodeName"))
        two.cancel()
        await asyncio.wait([two])


async def test_a_reload_takes_over_profiles_or_keeps_the_old_ones() -> None:
    world = EngineWorld(6)
    answers: list[Configuration | ConfigurationError] = [
        ConfigurationError("nonsense"),
        configuration(profiles=[{"schedulerName": "mine"}]),
    ]

    def read() -> Configuration:
        answer = answers.pop(0)
        if isinstance(answer, ConfigurationError):
            raise answer
        return answer

    reload = asyncio.Event()
    async with scheduling(world, read_configuration=read, reload=reload) as service:
        reload.set()
        await asyncio.sleep(0.1)
        assert list(service.scheduler.profiles) == ["default-scheduler"]
        reload.set()
        await asyncio.sleep(0.1)
        assert list(service.scheduler.profiles) == ["mine"]


async def test_a_reload_takes_over_extenders() -> None:
    """The new extender cannot be reached, so nothing is placed; without it things go on."""
    world = EngineWorld(24)
    unreachable = {"urlPrefix": "http://127.0.0.1:1/x", "filterVerb": "filter", "httpTimeout": "1s"}
    answers = [configuration(extenders=[unreachable]), configuration()]
    reload = asyncio.Event()
    async with scheduling(
        world, read_configuration=lambda: answers.pop(0), reload=reload
    ) as service:
        await add_node(world, "a")
        reload.set()
        await asyncio.sleep(0.1)
        await add_pod(world, "p")
        found = await until(world, "p", lambda p: (p.get("status") or {}).get("conditions"))
        message = found["status"]["conditions"][0]["message"]
        assert message.startswith('Post "http://127.0.0.1:1/x/filter": ')
        assert "nodeName" not in found["spec"]
        reload.set()
        await until(world, "p", lambda p: p["spec"].get("nodeName"))
        assert service._extenders == []


async def test_a_reload_that_cannot_trust_its_extender_is_refused() -> None:
    world = EngineWorld(25)
    tls = {"caFile": "/nonexistent/ca.pem"}
    extender = {"urlPrefix": "https://127.0.0.1:1/x", "filterVerb": "filter", "tlsConfig": tls}
    reload = asyncio.Event()
    answer = configuration(extenders=[extender])
    async with scheduling(world, read_configuration=lambda: answer, reload=reload) as service:
        reload.set()
        await asyncio.sleep(0.1)
        assert service._options.configuration.extenders == ()


async def test_profiling_pages_are_there_while_profiling_is_configured() -> None:
    world = EngineWorld(26)
    reload = asyncio.Event()
    answer = configuration(enableProfiling=False)
    async with scheduling(world, read_configuration=lambda: answer, reload=reload) as service:
        page = service._profiling(DEBUG_PAGES["/debug/pprof/goroutine"])
        shown = page()
        assert shown is not None
        assert b"run_loop" in shown[1]
        reload.set()
        await asyncio.sleep(0.1)
        assert page() is None


async def test_the_endpoint_reports_health_metrics_and_configuration() -> None:
    world = EngineWorld(7)
    # Without faults: whose binding is not heard of shows the pod only when a watch brings it.
    async with scheduling(world, client=world.direct) as service:
        await add_node(world, "a")
        await add_pod(world, "p")
        await until(world, "p", lambda p: p["spec"].get("nodeName"))
        kind, body = service._configz()
        assert kind == "application/json"
        assert orjson.loads(body)["componentconfig"]["kind"] == "KubeSchedulerConfiguration"
        assert service._sync_check() == ""
        _, text = service._resources()
        assert b'kube_pod_resource_request{namespace="default",node="a",pod="p"' in text


async def test_whoever_loses_the_lease_ends() -> None:
    world = EngineWorld(11)
    options = SchedulerOptions(complete({}), "here_1", secure_port=None)
    async with world.running():
        await settle(world, "default", "kube-system")
        service = SchedulerService(options, world.direct, world.ids)
        task = asyncio.get_running_loop().create_task(run_service(service))
        await asyncio.wait_for(options.ready.wait(), 60)
        lease = await world.direct.get(LEASES, "kube-scheduler", "kube-system")
        assert lease["spec"]["holderIdentity"] == "here_1"
        lease["spec"] |= {"holderIdentity": "there_2", "leaseDurationSeconds": 600}
        await world.direct.update(LEASES, lease)
        with pytest.raises(LeadershipLost, match="here_1 no longer leads"):
            await asyncio.wait_for(task, 60)


async def test_a_port_that_is_taken_ends_the_start() -> None:
    world = EngineWorld(12)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = SchedulerOptions(configuration(), "here_1", secure_port=port)
        async with world.running():
            with pytest.raises(CannotListen, match=f"failed to listen on 127.0.0.1:{port}"):
                await run_service(SchedulerService(options, world.direct, world.ids))


async def test_a_decision_is_explained_from_outside_and_nothing_is_written() -> None:
    world = EngineWorld(13)
    async with world.running():
        await settle(world, "default")
        await add_node(world, "a")
        await add_node(world, "b")
        for name in ("there", "wanted"):
            await add_pod(world, name)
        bound = {"metadata": {"name": "there"}, "target": {"kind": "Node", "name": "b"}}
        await world.direct.create(PODS, bound, "default", name="there", subresource="binding")
        there = await get_pod(world, "there")
        answer = await explain_pod(world.direct, configuration(), in_tree_registry(), there)
        assert answer.chosen in ("a", "b"), "as if it had no node yet"
        assert {verdict.node for verdict in answer.nodes} == {"a", "b"}
        cordoned = await world.direct.get(NODES, "b")
        cordoned.setdefault("spec", {})["unschedulable"] = True
        await world.direct.update(NODES, cordoned)
        wanted = await get_pod(world, "wanted")
        answer = await explain_pod(world.direct, configuration(), in_tree_registry(), wanted)
        assert answer.chosen == "a"
        assert "b: refused by NodeUnschedulable: node(s) were unschedulable" in answer.text()
        assert await get_pod(world, "wanted") == wanted


def test_pods_are_kept_slim_and_share_what_they_have_in_common() -> None:
    slimming = PodSlimming()

    def slim(name: str, cpu: str) -> Object:
        found = pod(name, {"app": "web"}, requests={"cpu": cpu})
        found["metadata"]["managedFields"] = [{"manager": "me"}]
        token = {"name": f"token-{name}", "projected": {"sources": []}}
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        found["spec"] |= {"volumes": [token, claim], "serviceAccountName": "default"}
        return slimming.slim(found)

    one, two, other = slim("one", "1"), slim("two", "1"), slim("other", "2")
    assert one["spec"]["containers"] is two["spec"]["containers"]
    assert one["metadata"]["labels"] is other["metadata"]["labels"]
    assert other["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert [volume["name"] for volume in one["spec"]["volumes"]] == ["data"]
    assert "managedFields" not in one["metadata"]
    assert "serviceAccountName" not in one["spec"]
