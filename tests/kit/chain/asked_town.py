"""A small town to ask about: a hub with an inventory of two edges, one of them in production."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from skerry.api.edge import SINGLE_PLACEMENT_SLICES, Mailbox
from skerry.api.kcp.resources import LOCATIONS, SYNC_TARGETS
from skerry.api.refs import ObjectRef
from skerry.app.hub_reading import HubReader
from skerry.kit.timestamps import rfc3339
from tests.kit.chain.summarizer_hub import CONFIG_MAPS, DEPLOYMENTS, PROVIDER, Hub, deployment

Raw = dict[str, Any]


class Town(Hub):
    """A hub with an inventory: florin is in production, guilder is not."""

    @asynccontextmanager
    async def furnished(self) -> AsyncIterator[HubReader]:
        async with self.running([]):
            await self.workspace("root", "imw")
            for name, env in (("florin", "prod"), ("guilder", "dev")):
                await self._edge(name, {"env": env})
            await self.namespace("shop", go="yes")
            await self.namespace("bank", go="no")
            await self.owner.create(DEPLOYMENTS, deployment("web"), "shop")
            loot = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "loot"}}
            await self.owner.create(CONFIG_MAPS, loot, "bank")
            await self.place("p", locationSelectors=[{"matchLabels": {"env": "prod"}}])
            revision = await self.store.revision()
            yield self.reader("root:wmw")
            self.writes = await self.store.revision() - revision

    def reader(self, workspace: str) -> HubReader:
        """Return somebody who may read everything, in a workspace."""
        return HubReader(self.client, self.client, self.client, workspace, clock=self.clock)

    async def beat(self, name: str, seconds_ago: float = 0.0) -> None:
        """Have an edge heard of."""
        moment = self.clock.now() - timedelta(seconds=seconds_ago)
        status = {"status": {"lastSyncerHeartbeatTime": rfc3339(moment)}}
        await self.at("root:imw").patch(SYNC_TARGETS, name, status, subresource="status")

    async def _edge(self, name: str, labels: dict[str, str]) -> None:
        inventory = self.at("root:imw")
        target = await inventory.create(
            SYNC_TARGETS,
            {
                "apiVersion": "workload.kcp.io/v1alpha1",
                "kind": "SyncTarget",
                "metadata": {"name": name, "labels": {"id": name}},
                "spec": {"cells": {}},
            },
        )
        await inventory.create(LOCATIONS, location(name, labels))
        self.uids[name] = target["metadata"]["uid"]
        imw = ObjectRef.of(SYNC_TARGETS.group_resource, target).cluster
        workspace = Mailbox(imw, self.uids[name]).workspace
        await self.workspace(PROVIDER, workspace)
        self.clusters[name] = await self.cluster_of(f"{PROVIDER}:{workspace}")
        await self.bind(self.clusters[name], "bind-kubernetes", "root:compute", "kubernetes")
        self.imw = imw

    async def slice(self) -> None:
        destination = {
            "cluster": self.imw,
            "locationName": "florin",
            "syncTargetName": "florin",
            "syncTargetUID": self.uids["florin"],
        }
        await self.owner.patch(SINGLE_PLACEMENT_SLICES, "p", {"destinations": [destination]})


def location(name: str, labels: dict[str, str]) -> Raw:
    return {
        "apiVersion": "scheduling.kcp.io/v1alpha1",
        "kind": "Location",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "resource": {
                "group": "workload.kcp.io",
                "version": "v1alpha1",
                "resource": "synctargets",
            },
            "instanceSelector": {"matchLabels": {"id": name}},
        },
    }
