"""Many edges on a hub: SyncTargets and their status as syncers would write it, without syncers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skerry.api.kcp.resources import SYNC_TARGETS
from skerry.kit.timestamps import rfc3339
from skerry.runtime.client import Client
from skerry.runtime.kubeconfig import connect, load

_AT_ONCE = 16


@dataclass(frozen=True)
class Simulated:
    """One edge: its labels, and how its syncer says it is; no status at all: never heard of."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, int] | None = None
    ready: bool = True
    heard: datetime | None = None

    def target(self) -> dict[str, Any]:
        metadata = {"name": self.name, "labels": dict(self.labels)}
        return {
            "apiVersion": "workload.kcp.io/v1alpha1",
            "kind": "SyncTarget",
            "metadata": metadata,
        }

    def status(self) -> dict[str, Any]:
        heard = rfc3339(self.heard or datetime.now(UTC))
        condition = {
            "type": "Ready",
            "status": str(self.ready),
            "reason": "Ready" if self.ready else "ErrorHeartbeat",
            "message": "" if self.ready else f"No heartbeat since {heard}",
            "lastTransitionTime": heard,
        }
        return {
            "lastSyncerHeartbeatTime": heard,
            "objects": dict(self.objects or {}),
            "conditions": [condition],
        }


def populate(kubeconfig: Path, workspace: str, edges: Sequence[Simulated]) -> None:
    """Create *edges* in a workspace, and write the status of those that have one."""
    # In a thread of its own: playwright's loop has this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(_populate(kubeconfig, workspace, edges))).result()


async def _populate(kubeconfig: Path, workspace: str, edges: Iterable[Simulated]) -> None:
    config = load([kubeconfig])
    base = config.server.split("/clusters/")[0]
    transport = connect(replace(config, server=f"{base}/clusters/{workspace}"))
    client = Client(transport)
    room = asyncio.Semaphore(_AT_ONCE)

    async def create(edge: Simulated) -> None:
        async with room:
            await client.create(SYNC_TARGETS, edge.target())
            if edge.objects is not None:
                patch = {"status": edge.status()}
                await client.patch(SYNC_TARGETS, edge.name, patch, subresource="status")

    try:
        await asyncio.gather(*map(create, edges))
    finally:
        await transport.close()
