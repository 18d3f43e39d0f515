"""Nodes, which arrive knowing how they are."""

from __future__ import annotations

from typing import Any

from tests.sim.loop import virtual
from tests.unit.server.harness import serving

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
