"""A real hub without sockets, with Locations and SyncTargets, and the controllers on the feed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from skerry.api.edge import STATUS_QUERIES
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.objects import Object
from skerry.app.edge_controllers import EDGE_CONTROLLERS
from skerry.app.edge_environment import EdgeEnvironment, HubAccess, Role
from skerry.logic.machinery.conditions import find_condition
from skerry.runtime.client import Client
from tests.kit.chain import summarizer_hub
from tests.kit.chain.summarizer_hub import DEPLOYMENTS, PROVIDER, deployment

DEPLOYED: Object = {"apiGroup": "apps", "resources": ["deployments"]}
COUNT: Object = {"name": "edges", "function": "Count"}
REGION: Object = {"name": "region", "value": "location.labels[?'region'].orValue('none')"}
_INVENTORY = "root:imw"
_ROLES: tuple[Role, ...] = ("espw", "root", "base", "admin")


class Hub(summarizer_hub.Hub):
    """Edges have a Location ``loc-<name>`` and a SyncTarget in ``root:imw``."""

    async def _furnish(self, edges: Sequence[str]) -> None:
        await self.workspace("root", "imw")
        self._inventory = await self.cluster_of(_INVENTORY)
        await super()._furnish(edges)

    async def add_edge(self, name: str) -> None:
        inventory = self.at(_INVENTORY)
        made = await inventory.create(
            SYNC_TARGETS,
            {"kind": "SyncTarget", "apiVersion": "workload.kcp.io/v1alpha1",
             "metadata": {"name": name}, "spec": {}},
        )  # fmt: skip
        resource = {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}
        await inventory.create(
            LOCATIONS,
            {"kind": "Location", "apiVersion": "scheduling.kcp.io/v1alpha1",
             "metadata": {"name": f"loc-{name}"}, "spec": {"resource": resource}},
        )  # fmt: skip
        self.uids[name] = made["metadata"]["uid"]
        await super().add_edge(name)

    def destination(self, edge: str) -> Object:
        return {**super().destination(edge), "cluster": self._inventory}

    async def relabel(self, edge: str, **labels: str) -> None:
        patch = {"metadata": {"labels": labels}}
        await self.at(_INVENTORY).patch(LOCATIONS, f"loc-{edge}", patch)

    @asynccontextmanager
    async def controlled(self, *names: str) -> AsyncIterator[None]:
        """Run controllers of one process while inside."""
        access = HubAccess(dict.fromkeys(_ROLES, Client(self.faults, clock=self.clock)), {})
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            environment = EdgeEnvironment(
                access, PROVIDER, self.clock, self.ids, tasks, mutation_check=True
            )
            started = [tasks.create_task(_run(environment, name)) for name in names]
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again below, unwrapped
                failure = error
            for task in started:
                task.cancel()
            environment.stop()
        if failure is not None:
            raise failure

    async def deploy(self, name: str, *edges: str, space: str = "shop") -> None:
        """Have a Deployment with copies at edges, all reporting one replica."""
        await self.owner.create(DEPLOYMENTS, deployment(name), space)
        for edge in edges:
            await self.project(edge, DEPLOYMENTS, deployment(name), space)
            await self.reports(edge, name, 1, space)

    async def reports(self, edge: str, name: str, ready: int, space: str = "shop") -> None:
        status = summarizer_hub.running(ready)
        await self.report(edge, DEPLOYMENTS, name, space, status)

    async def ask(
        self, name: str, where: str = "root:wmw", source: Object = DEPLOYED, **spec: Any
    ) -> None:
        body = {"apiVersion": "edge.kcp.io/v1alpha1", "kind": "StatusQuery"}
        whole = {"from": source, **spec}
        if "select" not in whole:
            whole.setdefault("aggregates", [COUNT])
        obj = {**body, "metadata": {"name": name}, "spec": whole}
        await self.at(where).create(STATUS_QUERIES, obj)

    async def answer(self, name: str, where: str = "root:wmw") -> Object:
        found = await self.at(where).get(STATUS_QUERIES, name)
        status: Object = found.get("status") or {}
        return status

    async def rows(self, name: str, where: str = "root:wmw") -> list[list[Any]]:
        return [row["values"] for row in (await self.answer(name, where)).get("rows") or ()]

    async def complete(self, name: str, where: str = "root:wmw") -> tuple[str, str]:
        """Return the status and reason of the condition Complete."""
        found = find_condition({"status": await self.answer(name, where)}, "Complete") or {}
        return found.get("status", ""), found.get("reason", "")


async def _run(environment: EdgeEnvironment, name: str) -> None:
    controller = await EDGE_CONTROLLERS[name].build(environment)
    await controller.run()
