"""Nodes, which arrive knowing how they are, and pods that come to them."""

from __future__ import annotations

from typing import Any

from tests.kit.server.harness import serving
from tests.kit.server.objects import CORE, pod
from tests.kit.sim.loop import virtual

NODES = "/api/v1/nodes"


def node(**status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "florin"},
        "status": {"capacity": {"cpu": "4", "pods": "110"}, **status},
    }


@virtual
async def test_a_node_registers_with_its_status() -> None:
    async with serving() as server:
        made = await server.create(NODES, node(phase="Running"))
        assert made.status == 201
        status = made.body["status"]
        assert status["capacity"] == {"cpu": "4", "pods": "110"}
        assert status["allocatable"] == status["capacity"], "all there is may be used"
        assert (await server.get(f"{NODES}/florin")).body["status"] == status


@virtual
async def test_an_update_of_a_node_leaves_its_status_alone() -> None:
    async with serving() as server:
        made = (await server.create(NODES, node())).body
        changed = {**made, "status": {"capacity": {"cpu": "64"}}, "spec": {"unschedulable": True}}
        updated = await server.put(f"{NODES}/florin", changed)
        assert updated.body["spec"]["unschedulable"] is True
        assert updated.body["status"] == made["status"]


@virtual
async def test_watchers_by_field_see_pods_come_to_their_node() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        await server.create(f"{CORE}/pods", pod("p"))
        by_node = f"{CORE}/pods?watch=1&fieldSelector=spec.nodeName%3D"
        async with (
            server.watch(f"{by_node}florin") as first,
            server.watch(f"{by_node}florin") as second,
            server.watch(f"{by_node}guilder") as other,
        ):
            target = {"target": {"kind": "Node", "name": "florin"}}
            made = await server.create(f"{CORE}/pods/p/binding", target)
            assert made.status == 201
            event = await first.lines.get()
            assert event["type"] == "ADDED"
            assert event["object"]["spec"]["nodeName"] == "florin"
            assert await second.lines.get() == event
            await server.delete(f"{CORE}/pods/p?gracePeriodSeconds=0")
            assert (await first.lines.get())["type"] == "DELETED"
            assert other.lines.empty()


@virtual
async def test_whoever_binds_a_pod_does_not_own_its_node_name() -> None:
    async with serving() as server:
        await server.create(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        before = (await server.create(f"{CORE}/pods", pod("p"))).body["metadata"]
        await server.create(f"{CORE}/pods/p/binding", {"target": {"name": "florin"}})
        after = (await server.get(f"{CORE}/pods/p")).body
        assert after["spec"]["nodeName"] == "florin"
        assert after["metadata"].get("managedFields") == before.get("managedFields")
