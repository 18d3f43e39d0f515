"""The Node, what it promises of its pods, and its heartbeat in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from skerry.api.objects import Object
from skerry.edge.agent.control_groups import ControlGroups
from skerry.edge.agent.node import (
    ISOLATION,
    LEASES,
    NODES,
    NodeHeartbeat,
    isolation_condition,
    limits_condition,
    node_object,
    node_status,
)
from skerry.runtime.transport import TransportError
from tests.kit.agent.nodes import HeldNode
from tests.kit.sim.loop import virtual
from tests.kit.sim.twin import Place

NOW = datetime(2030, 1, 1, tzinfo=UTC)


async def test_a_node_says_where_it_is_and_how_isolated_its_pods_are(tmp_path: Path) -> None:
    node = HeldNode(tmp_path).context
    worker = node_object(node, control_plane=False, tainted=False)
    assert worker["spec"]["podCIDR"] == "10.244.1.0/24"
    assert worker["metadata"]["annotations"][ISOLATION] == "none"
    assert "taints" not in worker["spec"]
    leader = node_object(node, control_plane=True, tainted=True)
    assert "node-role.kubernetes.io/control-plane" in leader["metadata"]["labels"]
    assert leader["spec"]["taints"][0]["effect"] == "NoSchedule"


@pytest.mark.parametrize(
    ("abilities", "status", "text"),
    [
        ({}, "False", "plain processes of this machine"),
        ({"isolated": True, "users": "any"}, "True", "any user and group"),
        ({"isolated": True}, "True", "share the machine's network, no filter of system calls"),
        (
            {"isolated": True, "network": True, "seccomp": True},
            "True",
            "a network of their own, filtered system calls",
        ),
    ],
)
async def test_a_node_promises_no_more_isolation_than_is_enforced(
    tmp_path: Path, abilities: dict[str, Any], status: str, text: str
) -> None:
    runtime = HeldNode(tmp_path, abilities=abilities).context.runtime
    kind, said, _, message = isolation_condition(runtime)
    assert (kind, said) == ("ProcessIsolation", status)
    assert text in message


def test_limits_that_are_not_enforced_are_said_not_to_be() -> None:
    assert limits_condition(ControlGroups(why="no delegation"))[1] == "False"
    assert "no delegation" in limits_condition(ControlGroups(why="no delegation"))[3]
    found = limits_condition(ControlGroups(controllers=frozenset({"memory", "cpu"})))
    assert (found[1], found[3]) == ("True", "limits are enforced by control groups: cpu, memory")


async def test_a_condition_keeps_the_time_of_its_last_change(tmp_path: Path) -> None:
    node = HeldNode(tmp_path).context
    first = node_status(node, [], NOW)
    later = node_status(node, first["conditions"], NOW.replace(hour=5))
    ready = next(c for c in later["conditions"] if c["type"] == "Ready")
    assert ready["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert ready["lastHeartbeatTime"] == "2030-01-01T05:00:00Z"
    assert later["capacity"]["pods"] == "110"


# -- the heartbeat ---------------------------------------------------------------------------------


class Desk:
    def __init__(self, root: Path) -> None:
        self.held = HeldNode(root)
        self.server = self.held.server
        place = Place("", "namespaces", "", "", "kube-node-lease")
        self.server.objects[place] = {"metadata": {"name": "kube-node-lease"}}
        self.heartbeat = NodeHeartbeat(self.held.context, control_plane=False, tainted=False)

    @property
    def lease(self) -> Object:
        return self.server.find("leases", "kube-node-lease")["node-1"]

    @property
    def node(self) -> Object:
        return self.server.find("nodes")["node-1"]

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        await self.heartbeat.register()
        task = asyncio.create_task(self.heartbeat.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@virtual
async def test_a_lease_is_renewed_every_ten_seconds_and_the_status_rarely(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.beating():
        version = desk.node["metadata"]["resourceVersion"]
        await asyncio.sleep(31)
        assert desk.lease["spec"]["renewTime"].startswith("2030-01-01T00:00:30")
        assert desk.node["metadata"]["resourceVersion"] == version
        await asyncio.sleep(280)
        assert desk.node["metadata"]["resourceVersion"] != version


@virtual
async def test_a_node_that_was_there_before_is_brought_up_to_date(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    await desk.heartbeat.register()
    await desk.held.client.patch(
        NODES, "node-1", {"metadata": {"annotations": {ISOLATION: "old", "own": "kept"}}}
    )
    again = NodeHeartbeat(desk.held.context, control_plane=False, tainted=False)
    await again.register()
    annotations = desk.node["metadata"]["annotations"]
    assert (annotations[ISOLATION], annotations["own"]) == ("none", "kept")


@virtual
async def test_a_node_whose_lease_was_deleted_comes_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    async with desk.beating():
        await desk.held.client.delete(LEASES, "node-1", "kube-node-lease")
        await desk.held.client.delete(NODES, "node-1")
        await asyncio.sleep(11)
        assert desk.node["metadata"]["name"] == "node-1"
        assert desk.lease["spec"]["holderIdentity"] == "node-1"


@virtual
async def test_a_heartbeat_outlives_a_server_that_is_away(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    served = desk.server.request
    async with desk.beating():

        async def away(*_: Any, **__: Any) -> Any:
            raise TransportError("no answer")

        desk.server.request = away  # type: ignore[method-assign]
        await asyncio.sleep(35)
        desk.server.request = served  # type: ignore[method-assign]
        await asyncio.sleep(10)
        assert desk.lease["spec"]["renewTime"].startswith("2030-01-01T00:00:40")
